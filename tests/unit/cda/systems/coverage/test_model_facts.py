from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cda.agents.answers import ReadFact
from cda.contracts.facts import Evidence, Fact, FactDefinition, FactState, FactType, Interval
from cda.systems.coverage.model_facts import alike, checked_facts, given_value, parse_given, shown_narrative

pytestmark = pytest.mark.promise("models.checks")

DEFINITIONS = {
    "sticks": FactDefinition("sticks", FactType.RATE, "fingersticks per day", "per_day"),
    "trial": FactDefinition("trial", FactType.DURATION, "trial", "month"),
    "copd": FactDefinition("copd", FactType.BOOL, "COPD"),
    "osa": FactDefinition("osa", FactType.STATUS, "OSA", values=("confirmed", "suspected", "absent")),
}
CHART = "Tests 5 times a day. No COPD. Mother has OSA. Took methotrexate 13 weeks. Suspected OSA."


def judged(
    fact: str, value: str, quote: str, *, unit: Any = "", read: dict[str, Fact] | None = None, chart: str = CHART
) -> Any:
    given_ = [ReadFact(fact=fact, value=value, unit=unit, quote=quote)]
    return checked_facts(given_, list(DEFINITIONS), DEFINITIONS, narrative=chart, read=read or {})


def test_a_fact_that_stands_is_known_at_its_place() -> None:
    checked = judged("sticks", "5", "Tests 5 times a day")
    fact = checked.facts["sticks"]
    assert (fact.state, fact.value, checked.broken) == (FactState.KNOWN, Interval.exactly(5), {})
    assert fact.evidence == (Evidence("Tests 5 times a day", 0, 19),)
    assert checked.facts["copd"].state is FactState.UNKNOWN


def test_a_value_in_another_unit_of_time_is_stated_in_the_facts_own() -> None:
    assert judged("trial", "13", "methotrexate 13 weeks", unit="week").facts["trial"].value == Interval.exactly(3)


@pytest.mark.parametrize(
    ("fact", "value", "quote", "rule"),
    [
        ("sticks", "5", "Tests five times a day", "not in the narrative"),
        ("sticks", "5", "ests 5 times a da", "not in the narrative"),
        ("sticks", "5", "Tests 5 ... a day", "not in the narrative"),
        ("sticks", "6", "Tests 5 times a day", "number is not in its quote"),
        ("sticks", "many", "Tests 5 times a day", "no quantity"),
        ("copd", "true", "COPD", "denies, doubts"),
        ("copd", "maybe", "COPD", "neither true nor false"),
        ("osa", "confirmed", "OSA", "denies, doubts"),
        ("osa", "severe", "OSA", "one of"),
        ("copd", "true", ".", "holds no word"),
    ],
)
def test_a_fact_that_breaks_a_rule_is_unknown_and_the_rule_is_named(
    fact: str, value: str, quote: str, rule: str
) -> None:
    checked = judged(fact, value, quote)
    assert checked.facts[fact].state is FactState.UNKNOWN
    assert rule in checked.broken[fact]


def test_a_fact_that_was_not_asked_or_is_given_twice_is_not_taken() -> None:
    assert "nothing" not in judged("nothing", "true", "COPD").facts
    twice = [ReadFact(fact="sticks", value="5", unit="", quote="Tests 5 times a day")] * 2
    checked = checked_facts(twice, ["sticks"], DEFINITIONS, narrative=CHART, read={})
    assert (checked.facts["sticks"].state, checked.broken) == (FactState.UNKNOWN, {"sticks": "it was given twice"})


def test_what_the_rules_read_alike_needs_no_more_than_its_quote() -> None:
    read = {"osa": Fact("osa", FactState.KNOWN, "confirmed")}
    assert judged("osa", "confirmed", "OSA", read=read).broken == {}


def test_fenced_words_are_blank_at_equal_length_and_cannot_be_quoted() -> None:
    shown = shown_narrative(CHART, [(0, 20)])
    assert (len(shown), shown[:20].strip(), shown[20:]) == (len(CHART), "", CHART[20:])
    assert "not in the narrative" in judged("sticks", "5", "Tests 5 times a day", chart=shown).broken["sticks"]


@given(low=st.integers(0, 500), more=st.integers(0, 500), kind=st.sampled_from(["exact", "range", ">", ">=", "<"]))
def test_a_quantity_as_text_is_read_back_as_it_was(low: int, more: int, kind: str) -> None:
    value = {
        "exact": Interval.exactly(low),
        "range": Interval(low, low + more),
        ">": Interval(low, inf, lo_open=True),
        ">=": Interval(low, inf),
        "<": Interval(0.0, low + 1, hi_open=True),
    }[kind]
    assert parse_given(given_value(value), "", DEFINITIONS["sticks"]) == value


def test_quantities_are_alike_where_they_meet() -> None:
    assert alike(Interval(4, 6), Interval(5, inf))
    assert not alike(Interval(4, 6), Interval(7, inf))
    assert not alike(True, False)
