"""Comparisons with intervals, statuses, dates and units."""

from datetime import date, timedelta
from fractions import Fraction
from math import inf

import pytest
from criteria_world import define
from hypothesis import given
from hypothesis import strategies as st

from cda.contracts.facts import FactType, Interval
from cda.criteria.compare import compare, contradict, elapsed, later, typed_value
from cda.criteria.expression import Elapsed, Leaf
from cda.criteria.icd import is_pattern, matches
from cda.criteria.parse import COMPARISONS
from cda.criteria.truth import Truth, negation
from cda.criteria.units import convert
from cda.errors import CriterionError

pytestmark = pytest.mark.promise("criteria.comparison")

RELATIONS = {
    "=": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
    ">=": lambda x, y: x >= y,
    ">": lambda x, y: x > y,
    "<=": lambda x, y: x <= y,
    "<": lambda x, y: x < y,
}


def leaf(kind: FactType, op: str, value: object) -> Leaf:
    return Leaf("f", kind, op, value, "covers_if", "f")  # type: ignore[arg-type]


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    low, high = sorted(draw(st.tuples(st.integers(-3, 6), st.integers(-3, 6))))
    if low == high:
        return Interval.exactly(low)
    return Interval(
        draw(st.sampled_from([low, -inf])), draw(st.sampled_from([high, inf])), draw(st.booleans()), draw(st.booleans())
    )


def points(interval: Interval) -> list[Fraction]:
    """Points of an interval whose ends are whole: its ends, and points between and beyond every whole number near."""
    grid = [Fraction(n, 4) for n in range(-40, 41)]
    lower = [x for x in grid if x > interval.lo or (x == interval.lo and not interval.lo_open)]
    return [x for x in lower if x < interval.hi or (x == interval.hi and not interval.hi_open)]


@given(intervals(), st.sampled_from(COMPARISONS), st.integers(-4, 7))
def test_an_interval_is_compared_as_all_of_its_points_are(interval: Interval, op: str, bound: int) -> None:
    found = {RELATIONS[op](x, bound) for x in points(interval)}
    expected = Truth.UNKNOWN if len(found) == 2 else Truth.MET if found == {True} else Truth.NOT_MET
    assert compare(leaf(FactType.RATE, op, float(bound)), interval) is expected


@pytest.mark.parametrize(
    ("interval", "op", "bound", "expected"),
    [
        (Interval(4, 5), ">=", 4, Truth.MET),
        (Interval(2, 6), ">=", 4, Truth.UNKNOWN),
        (Interval(4, inf, lo_open=True), ">", 4, Truth.MET),
        (Interval(4, inf), ">", 4, Truth.UNKNOWN),
        (Interval(-inf, 4, hi_open=True), ">=", 4, Truth.NOT_MET),
        (Interval(3, 3, lo_open=True), ">=", 1, Truth.UNKNOWN),
    ],
)
def test_open_ends_exclude_their_bound(interval: Interval, op: str, bound: float, expected: Truth) -> None:
    assert compare(leaf(FactType.RATE, op, float(bound)), interval) is expected


@pytest.mark.parametrize(
    ("chart", "asked", "expected"),
    [
        ("confirmed", "suspected", Truth.MET),
        ("confirmed", "confirmed", Truth.MET),
        ("suspected", "suspected", Truth.MET),
        ("suspected", "confirmed", Truth.UNKNOWN),
        ("suspected", "absent", Truth.UNKNOWN),
        ("absent", "suspected", Truth.NOT_MET),
        ("absent", "confirmed", Truth.NOT_MET),
        ("confirmed", "absent", Truth.NOT_MET),
    ],
)
def test_a_status_is_a_ladder(chart: str, asked: str, expected: Truth) -> None:
    assert compare(leaf(FactType.STATUS, "=", asked), chart) is expected
    assert compare(leaf(FactType.STATUS, "!=", asked), chart) is negation(expected)


def test_classes_and_booleans_compare_by_value() -> None:
    assert compare(leaf(FactType.CLASS, "in", ("a", "b")), "b") is Truth.MET
    assert compare(leaf(FactType.CLASS, "not_in", ("a", "b")), "c") is Truth.MET
    assert compare(leaf(FactType.BOOL, "=", False), False) is Truth.MET
    assert compare(leaf(FactType.BOOL, "!=", False), False) is Truth.NOT_MET


@pytest.mark.parametrize(
    ("kind", "value"),
    [(FactType.RATE, "4"), (FactType.BOOL, "true"), (FactType.CLASS, True), (FactType.DATE, "2024-01-01")],
)
def test_a_value_of_another_kind_is_an_error(kind: FactType, value: object) -> None:
    asked = {FactType.RATE: 4.0, FactType.BOOL: True, FactType.CLASS: "a", FactType.DATE: date(2024, 1, 1)}[kind]
    with pytest.raises(CriterionError, match="wrong kind"):
        compare(leaf(kind, "=", asked), value)  # type: ignore[arg-type]


def test_dates_compare_with_both_ends_where_asked() -> None:
    asked = leaf(FactType.DATE, "<=", date(2024, 1, 1))
    assert compare(asked, date(2024, 1, 1)) is Truth.MET
    assert compare(asked, date(2024, 1, 2)) is Truth.NOT_MET


@pytest.mark.parametrize(
    ("born", "as_of", "op", "years", "expected"),
    [
        (date(2006, 6, 2), date(2024, 6, 1), ">=", 18, Truth.NOT_MET),
        (date(2006, 6, 1), date(2024, 6, 1), ">=", 18, Truth.MET),
        (date(1964, 1, 1), date(2024, 4, 1), "<=", 60, Truth.MET),
        (date(1964, 1, 1), date(2024, 4, 1), ">", 60, Truth.NOT_MET),
        (date(2004, 2, 29), date(2022, 2, 28), ">=", 18, Truth.MET),
        (date(2030, 1, 1), date(2024, 1, 1), "<", 18, Truth.UNKNOWN),
    ],
)
def test_years_are_counted_as_ages_are(born: date, as_of: date, op: str, years: int, expected: Truth) -> None:
    assert elapsed(Elapsed("f", op, years, "year", "", ""), born, as_of) is expected


def test_months_end_on_the_calendar_day_and_on_short_months_at_their_end() -> None:
    within = Elapsed("f", "<=", 6, "month", "", "")
    assert elapsed(within, date(2023, 8, 31), date(2024, 2, 29)) is Truth.MET
    assert elapsed(within, date(2023, 8, 31), date(2024, 3, 1)) is Truth.NOT_MET


@given(st.dates(date(1950, 1, 1), date(2030, 1, 1)), st.integers(0, 5000), st.integers(0, 700))
def test_weeks_and_days_are_exact(start: date, after: int, count: int) -> None:
    as_of = start + timedelta(days=after)
    assert elapsed(Elapsed("f", ">=", count, "day", "", ""), start, as_of).name == (
        "MET" if after >= count else "NOT_MET"
    )
    weeks = Elapsed("f", ">", count, "week", "", "")
    assert elapsed(weeks, start, as_of).name == ("MET" if after > 7 * count else "NOT_MET")


def test_a_length_beyond_the_calendar_is_clamped_to_its_ends() -> None:
    assert later(date(2024, 1, 1), 9000, "year") == date.max
    assert later(date(2024, 1, 1), -3000, "year") == date.min


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [(13, "week", "month", 3.0), (2, "week", "day", 14.0), (1, "year", "month", 12.0), (inf, "week", "month", inf)],
)
def test_time_units_convert_by_the_declared_table(value: float, source: str, target: str, expected: float) -> None:
    assert convert(value, source, target) == expected


def test_twelve_weeks_are_less_than_three_months_and_other_units_do_not_convert() -> None:
    assert convert(12, "week", "month") < 3
    with pytest.raises(ValueError, match="cannot be stated"):
        convert(1, "unit", "session")


@pytest.mark.parametrize(
    ("pattern", "code", "expected"),
    [
        ("E10.*", "E10.65", True),
        ("E10.*", "E10", False),
        ("E10*", "E10", True),
        ("E10.9", "E109", True),
        ("E10.9", "e10.9 ", True),
        ("E10.9", "E10.91", False),
        ("M05.7*", "M05.79", True),
    ],
)
def test_diagnosis_patterns_match_codes_in_any_usual_form(pattern: str, code: str, expected: bool) -> None:
    assert is_pattern(pattern)
    assert matches(pattern, code) is expected


@pytest.mark.parametrize("text", ["", "E", "10.9", "E10.*9", "*", "e10.9", 10])
def test_what_is_no_diagnosis_pattern_is_told_apart(text: object) -> None:
    assert not is_pattern(text)


def test_contradiction_is_about_what_cannot_both_hold() -> None:
    assert contradict(FactType.RATE, Interval(1, 2), Interval(3, 4))
    assert not contradict(FactType.RATE, Interval(1, 3), Interval(3, 4))
    assert contradict(FactType.RATE, Interval(1, 3, hi_open=True), Interval(3, 4))
    assert contradict(FactType.STATUS, "absent", "suspected")
    assert not contradict(FactType.STATUS, "suspected", "confirmed")
    assert contradict(FactType.BOOL, True, False)


def test_constants_of_definitions_become_values_of_their_type() -> None:
    assert typed_value(define("n", type="count"), 0) == Interval.exactly(0)
    assert typed_value(define("d", type="date"), "2024-01-01") == date(2024, 1, 1)
    with pytest.raises(CriterionError, match="no value"):
        typed_value(define("b", type="bool"), 0)
