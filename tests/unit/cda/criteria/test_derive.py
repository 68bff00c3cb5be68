"""Facts that follow from stated facts."""

from datetime import date
from typing import Any

import pytest
from criteria_world import define, state
from hypothesis import given
from hypothesis import strategies as st

from cda.contracts.facts import Evidence, Fact, FactDefinition, FactState, Interval
from cda.criteria.derive import derive_facts, is_derived, validate_definition

pytestmark = pytest.mark.promise("criteria.derivation")

DAY = date(2024, 6, 1)
GROUP = ("congestive_heart_failure", "copd", "neuromuscular_disease")


def derived(definitions: dict[str, FactDefinition], **facts: Any) -> dict[str, Any]:
    found = derive_facts(state(definitions, facts), definitions, DAY)
    return {name: fact.value if fact.state is FactState.KNOWN else fact.state.value for name, fact in found.items()}


def test_one_comorbidity_makes_the_group_true(definitions: dict[str, FactDefinition]) -> None:
    assert derived(definitions, copd=True)["significant_comorbidity"] is True


def test_the_group_is_false_only_when_all_are_or_the_note_closes_it(definitions: dict[str, FactDefinition]) -> None:
    assert "significant_comorbidity" not in derived(definitions, copd=False)
    assert derived(definitions, **dict.fromkeys(GROUP, False))["significant_comorbidity"] is False
    assert derived(definitions, significant_comorbidity=False)["copd"] is False


def test_injections_imply_insulin(definitions: dict[str, FactDefinition]) -> None:
    assert derived(definitions, insulin_injections_per_day=3)["insulin_therapy"] is True
    assert "insulin_therapy" not in derived(definitions, insulin_injections_per_day=0)


def test_a_stated_value_against_a_derived_one_is_a_conflict_that_names_the_rule(
    definitions: dict[str, FactDefinition],
) -> None:
    facts = state(definitions, {"insulin_injections_per_day": 3, "insulin_therapy": False})
    fact = derive_facts(facts, definitions, DAY)["insulin_therapy"]
    assert (fact.state, fact.value) == (FactState.CONFLICT, None)
    assert "insulin injections per day: any" in (fact.why or "")


def test_a_derived_fact_keeps_the_words_it_follows_from(definitions: dict[str, FactDefinition]) -> None:
    chf = Fact("congestive_heart_failure", FactState.KNOWN, True, (Evidence("HFrEF", 10, 15),))
    no = Fact("copd", FactState.KNOWN, False, (Evidence("no COPD", 20, 27),))
    found = derive_facts({fact.name: fact for fact in (chf, no)}, definitions, DAY)["significant_comorbidity"]
    assert found.evidence == (Evidence("HFrEF", 10, 15, "derived"),)
    assert is_derived(found)
    assert not is_derived(chf)


def test_a_presumption_never_becomes_a_derived_fact() -> None:
    facts = {
        "prior": define("prior", type="bool", presume=False),
        "first": define(
            "first", type="bool", derive=[{"when": {"fact": "prior", "op": "=", "value": False}, "value": True}]
        ),
    }
    assert derive_facts({}, facts, DAY) == {}


def test_contradictory_rules_make_a_conflict() -> None:
    on = {"fact": "a", "op": "=", "value": True}
    facts = {
        "a": define("a", type="bool"),
        "b": define("b", type="bool", derive=[{"when": on, "value": True}, {"when": on, "value": False}]),
    }
    assert derive_facts(state(facts, {"a": True}), facts, DAY)["b"].state is FactState.CONFLICT


CHAIN = {
    "a": define("a", type="bool", derive=[{"when": {"fact": "c", "op": "=", "value": False}, "value": False}]),
    "b": define("b", type="bool", derive=[{"when": {"fact": "a", "op": "=", "value": True}, "value": True}]),
    "c": define("c", type="bool", derive=[{"when": {"fact": "b", "op": "=", "value": True}, "value": True}]),
}


@given(st.fixed_dictionaries({}, optional=dict.fromkeys("abc", st.booleans())), st.permutations(list("abc")))
def test_deriving_twice_or_in_another_order_changes_nothing(facts: dict[str, bool], order: list[str]) -> None:
    once = derive_facts(state(CHAIN, facts), CHAIN, DAY)
    reordered = {name: CHAIN[name] for name in order}
    assert derive_facts(state(CHAIN, dict(reversed(facts.items()))), reordered, DAY) == once
    assert {n: f.state for n, f in derive_facts(once, CHAIN, DAY).items()} == {n: f.state for n, f in once.items()}


def test_the_group_closed_closes_each_member_and_a_stated_member_against_it_is_a_conflict(
    definitions: dict[str, FactDefinition],
) -> None:
    """The group and its members derive each other; the cycle ends."""
    assert {derived(definitions, significant_comorbidity=False)[name] for name in GROUP} == {False}

    found = derived(definitions, significant_comorbidity=False, congestive_heart_failure=True)
    assert found["congestive_heart_failure"] == found["significant_comorbidity"] == "conflict"
    assert "copd" not in found


def test_a_rule_may_take_another_facts_value_and_what_is_stated_stands() -> None:
    facts = {
        "age": define("age", type="measure", unit="year"),
        "new": define("new", type="bool"),
        "onset": define(
            "onset",
            type="measure",
            unit="year",
            derive=[{"when": {"fact": "new", "op": "=", "value": True}, "value": {"fact": "age"}}],
        ),
    }

    assert derived(facts, new=True, age=67)["onset"] == Interval.exactly(67)
    assert derived(facts, new=True, age=67, onset=60)["onset"] == Interval.exactly(60)
    assert "onset" not in derived(facts, new=False, age=67)
    assert derived(facts, new=True).get("onset") is None


@pytest.mark.parametrize("source", ["nothing", "made", "flag"])
def test_a_value_is_taken_only_from_another_fact_of_the_same_type_and_unit(source: str) -> None:
    made = define(
        "made",
        type="measure",
        unit="year",
        derive=[{"when": {"fact": "flag", "op": "=", "value": True}, "value": {"fact": source}}],
    )

    assert validate_definition(made, {"made": made, "flag": define("flag", type="bool")})
