"""Structured facts: validation and joining."""

from datetime import date
from typing import Any

import pytest

from cda.contracts.facts import Evidence, Fact, FactDefinition, FactState, FactType, Interval
from cda.extraction import merge
from cda.extraction.structured import parse_value

pytestmark = pytest.mark.promise("extraction.structured")

DEFINITIONS = {
    "rate": FactDefinition("rate", FactType.RATE, "rate", unit="per_day"),
    "flag": FactDefinition("flag", FactType.BOOL, "flag"),
    "kind": FactDefinition("kind", FactType.CLASS, "kind", values=("one", "two")),
    "state": FactDefinition("state", FactType.STATUS, "state", values=("confirmed", "suspected", "absent")),
    "day": FactDefinition("day", FactType.DATE, "day"),
}


def said(name: str, value: Any) -> dict[str, Fact]:
    return {name: Fact(name, FactState.KNOWN, value, (Evidence("quote", 0, 5),))}


@pytest.mark.parametrize(
    ("name", "raw", "value"),
    [
        ("rate", 4, Interval(4, 4)),
        ("rate", 4.5, Interval(4.5, 4.5)),
        ("rate", {"lo": 4, "hi": 5}, Interval(4, 5)),
        ("rate", {"lo": 4}, Interval(4, float("inf"))),
        ("flag", False, False),
        ("kind", "two", "two"),
        ("state", "absent", "absent"),
        ("day", "2024-03-15", date(2024, 3, 15)),
    ],
)
def test_a_value_of_the_right_type_is_read(name: str, raw: Any, value: Any) -> None:
    assert parse_value(DEFINITIONS[name], raw) == value


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("rate", "many-secret"),
        ("rate", True),
        ("rate", -1),
        ("rate", float("nan")),
        ("rate", {"lo": 5, "hi": 4}),
        ("rate", {"low": 5}),
        ("flag", "true-secret"),
        ("flag", 1),
        ("kind", "three-secret"),
        ("day", "20240315"),
        ("day", "2024-02-31"),
    ],
)
def test_a_bad_value_is_refused_by_name_and_rule_without_an_echo(name: str, raw: Any) -> None:
    with pytest.raises(ValueError, match=f"fact {name}: ") as refusal:
        merge({name: raw}, {}, DEFINITIONS)

    assert "secret" not in str(refusal.value)
    assert "20240315" not in str(refusal.value)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match="fact nosuch: no fact of this name"):
        merge({"nosuch": 1}, {}, DEFINITIONS)


def test_a_structured_value_wins_over_an_unknown() -> None:
    merged = merge({"rate": 4}, {"rate": Fact.unknown("rate", "because")}, DEFINITIONS)

    assert merged["rate"] == Fact("rate", FactState.KNOWN, Interval(4, 4), (Evidence("", source="structured"),))


def test_an_agreeing_narrative_adds_its_evidence() -> None:
    merged = merge({"rate": 4}, said("rate", Interval(4, 5)), DEFINITIONS)

    assert merged["rate"].value == Interval(4, 4)
    assert [quote.source for quote in merged["rate"].evidence] == ["structured", "narrative"]


@pytest.mark.parametrize(("name", "raw", "value"), [("rate", 2, Interval(4, 5)), ("flag", True, False)])
def test_a_different_narrative_value_is_a_conflict_with_both_sides(name: str, raw: Any, value: Any) -> None:
    merged = merge({name: raw}, said(name, value), DEFINITIONS)

    assert merged[name].state is FactState.CONFLICT
    assert [quote.source for quote in merged[name].evidence] == ["structured", "narrative"]


def test_null_is_unknown_and_blocks_nothing() -> None:
    assert merge({"flag": None}, said("flag", True), DEFINITIONS)["flag"].value is True
    assert merge({"flag": None}, {}, DEFINITIONS)["flag"].state is FactState.UNKNOWN
