"""Compares what is known of a fact with a constant, three-valued.

A quantity is an interval: a comparison is MET when every point of it satisfies the relation, NOT_MET when none does,
UNKNOWN otherwise. A status is a ladder: confirmed also satisfies suspected; suspected leaves confirmed, and absent,
open; absent satisfies neither.
"""

import calendar
from datetime import date, timedelta
from typing import Any

from cda.contracts.dates import parse_day
from cda.contracts.facts import QUANTITIES, FactDefinition, FactType, Interval, Value
from cda.criteria.expression import Elapsed, Leaf
from cda.criteria.parse import values_of
from cda.criteria.truth import Truth, conjunction, disjunction, negation
from cda.errors import CriterionError

_STATUS = {
    ("confirmed", "confirmed"): Truth.MET,
    ("confirmed", "suspected"): Truth.MET,
    ("confirmed", "absent"): Truth.NOT_MET,
    ("suspected", "confirmed"): Truth.UNKNOWN,
    ("suspected", "suspected"): Truth.MET,
    ("suspected", "absent"): Truth.UNKNOWN,
    ("absent", "confirmed"): Truth.NOT_MET,
    ("absent", "suspected"): Truth.NOT_MET,
    ("absent", "absent"): Truth.MET,
}
"""(what the chart says, what the criterion asks) to truth."""


def compare(leaf: Leaf, value: Value) -> Truth:
    """Compare a known value with the leaf's constant. Raises CriterionError for a value that is not of its type."""
    asked = leaf.value
    if leaf.type in QUANTITIES and isinstance(value, Interval) and isinstance(asked, float):
        return _quantity(leaf.op, value, asked)
    if leaf.type is FactType.DATE and isinstance(value, date) and isinstance(asked, date):
        point = Interval.exactly(value.toordinal())
        return _quantity(leaf.op, point, asked.toordinal())
    if leaf.type is FactType.BOOL and isinstance(value, bool):
        return _signed(leaf.op, _settled(value is asked))
    if leaf.type in (FactType.CLASS, FactType.STATUS) and isinstance(value, str):
        options = asked if isinstance(asked, tuple) else (str(asked),)
        return _signed(leaf.op, disjunction([_named(leaf, value, option) for option in options]))
    raise CriterionError(f"fact {leaf.fact}: a value of the wrong kind; it is a {leaf.type}")


def elapsed(node: Elapsed, start: date, as_of: date) -> Truth:
    """Compare the time from `start` to `as_of` with the node's length.

    Years are counted as ages are: completed years, so that someone of 60 years and 3 months is 60. Months, weeks and
    days are exact: "at most 6 months" ends on the same day of the sixth month after, or on that month's last day.
    A start after `as_of` has not happened yet: UNKNOWN.
    """
    if start > as_of:
        return Truth.UNKNOWN
    if node.unit == "year":
        return _quantity(node.op, Interval.exactly(_completed_years(start, as_of)), node.value)
    return _quantity(node.op, Interval.exactly(as_of.toordinal()), later(start, node.value, node.unit).toordinal())


def later(day: date, count: int, unit: str) -> date:
    """The calendar day `count` units after `day` (before, when negative), clamped to the calendar's ends."""
    try:
        if unit in ("day", "week"):
            return day + timedelta(days=count * (7 if unit == "week" else 1))
        months = day.year * 12 + day.month - 1 + count * (12 if unit == "year" else 1)
        year, month = divmod(months, 12)
        return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))
    except (OverflowError, ValueError):
        return date.max if count > 0 else date.min


def typed_value(definition: FactDefinition, raw: Any) -> Value:
    """A constant of the definition's data (a presumption, a derived value) as a value. Raises CriterionError."""
    kind = definition.type
    if kind is FactType.BOOL and isinstance(raw, bool):
        return raw
    if kind in (FactType.CLASS, FactType.STATUS) and isinstance(raw, str) and raw in values_of(definition):
        return raw
    if kind in QUANTITIES and isinstance(raw, int | float) and not isinstance(raw, bool):
        return Interval.exactly(float(raw))
    if kind is FactType.DATE and isinstance(raw, date):
        return raw
    if kind is FactType.DATE and isinstance(raw, str):
        return parse_day(raw)
    raise CriterionError(f"fact {definition.name}: {raw!r} is no value of a {kind} fact; correct its definition")


def contradict(kind: FactType, one: Value, other: Value) -> bool:
    """True when two known values of a fact cannot both hold. Suspected does not contradict confirmed."""
    if isinstance(one, Interval) and isinstance(other, Interval):
        low, high = (one, other) if (one.hi, one.lo) <= (other.hi, other.lo) else (other, one)
        return low.hi < high.lo or (low.hi == high.lo and (low.hi_open or high.lo_open) and low != high)
    if kind is FactType.STATUS:
        return one != other and "absent" in (one, other)
    return one != other


def _completed_years(start: date, as_of: date) -> int:
    years = as_of.year - start.year
    return years if later(start, years, "year") <= as_of else years - 1


def _quantity(op: str, interval: Interval, bound: float) -> Truth:
    low, high = interval.lo, interval.hi
    if low == high and (interval.lo_open or interval.hi_open):
        return Truth.UNKNOWN  # an empty interval states nothing
    reaches = _range(low >= bound, high < bound or (high == bound and interval.hi_open))
    exceeds = _range(low > bound or (low == bound and interval.lo_open), high <= bound)
    equals = conjunction([reaches, negation(exceeds)])
    match op:
        case ">=" | "<":
            truth = reaches
        case ">" | "<=":
            truth = exceeds
        case "=" | "!=":
            truth = equals
        case _:
            raise CriterionError(f"operator {op!r} does not compare quantities")
    return truth if op in (">=", ">", "=") else negation(truth)


def _range(every: bool, none: bool) -> Truth:
    return Truth.MET if every else Truth.NOT_MET if none else Truth.UNKNOWN


def _settled(holds: bool) -> Truth:
    return Truth.MET if holds else Truth.NOT_MET


def _named(leaf: Leaf, value: str, option: str) -> Truth:
    return _STATUS[value, option] if leaf.type is FactType.STATUS else _settled(value == option)


def _signed(op: str, truth: Truth) -> Truth:
    if op in ("=", "in"):
        return truth
    if op in ("!=", "not_in"):
        return negation(truth)
    raise CriterionError(f"operator {op!r} does not compare this kind of fact")
