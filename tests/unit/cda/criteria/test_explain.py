"""Why a line differs between two dates."""

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from criteria_world import clause, decide, define

from cda.criteria.explain import differences
from cda.criteria.line import LineEvaluation

pytestmark = pytest.mark.promise("criteria.versus")

Told = list[tuple[str, str, str]]


def told(one: LineEvaluation, other: LineEvaluation) -> Told:
    return [(d.kind, d.from_, d.to) for d in differences(one, other)]


def test_a_new_version_is_told_with_the_criterion_that_it_dropped(decide: Callable[..., LineEvaluation]) -> None:
    facts = {"diabetes_type": "type_1", "fingersticks_per_day": 2, "hypoglycemia_unawareness": False}
    one = decide("A9276", "MHP-HMO-BASE", "2024-03-15", ["E10.9"], **facts)
    other = decide("A9276", "MHP-HMO-BASE", "2025-01-20", ["E10.9"], **facts)
    dropped = "fingersticks per day at least 4, unless hypoglycemia unawareness: yes"
    assert told(one, other) == [
        ("version", "MHP-MP-0142 v1", "MHP-MP-0142 v2"),
        ("criterion", dropped, "none"),
    ]
    version, criterion = differences(one, other)
    assert "in effect 2023-01-01 to 2024-06-30" in version.text
    assert criterion.text == (
        f"On 2024-03-15 MHP-MP-0142.v1.C2 requires: {dropped}. On 2025-01-20 no clause at issue says so."
    )
    assert told(other, one)[1] == ("criterion", "none", dropped)


def test_an_exclusion_that_became_an_alternative_is_told_as_both(decide: Callable[..., LineEvaluation]) -> None:
    facts = {"diabetes_type": "gestational", "gestation_weeks": 24, "insulin_therapy": True}
    one = decide("A9276", "MHP-HMO-BASE", "2024-06-30", ["O24.4"], **facts)
    other = decide("A9276", "MHP-HMO-BASE", "2024-07-01", ["O24.4"], **facts)
    assert told(one, other)[1:3] == [
        ("criterion", "diabetes type is gestational", "none"),
        ("criterion", "none", "diabetes type is gestational"),
    ]


def test_a_changed_threshold_is_told_as_one_change(decide: Callable[..., LineEvaluation]) -> None:
    facts = {"osa": "suspected", "osa_pretest_probability": "high", "significant_comorbidity": False}
    one = decide("95806", "CSM-EPO-VALUE", "2025-02-28", ["G47.33"], **facts)
    other = decide("95806", "CSM-EPO-VALUE", "2025-03-01", ["G47.33"], **facts)
    assert ("criterion", "member age years at least 18", "member age years at least 13") in told(one, other)


FACTS = {"a": define("a", type="bool"), "born": define("born", type="date", label="date of birth")}


def test_a_rider_that_begins_between_the_dates_is_told(decide_small: Callable[..., LineEvaluation]) -> None:
    line = [decide_small(as_of, a=False) for as_of in ("2024-01-01", "2025-01-01")]
    assert told(*line) == [("rider", "none", "R.C1")]
    assert differences(*line)[0].text == "Rider clause R.C1 applies on 2025-01-01 and does not on 2024-01-01."
    assert told(*reversed(line)) == [("rider", "R.C1", "none")]


def test_a_fact_that_time_changed_is_told_with_its_value() -> None:
    adult = {"elapsed_since": "born", "op": ">=", "value": 18, "unit": "year"}
    clauses = [clause("P.v1.C1", {"covers_if": adult})]
    line = [decide(clauses, FACTS, as_of=day, born=date(2006, 6, 1)) for day in ("2024-05-31", "2024-06-01")]
    (difference,) = differences(*line)
    assert (difference.kind, difference.from_, difference.to) == ("fact", "2006-06-01", "2006-06-01")
    assert "not met on 2024-05-31" in difference.text


def test_the_same_rules_and_facts_have_no_difference(decide_small: Callable[..., LineEvaluation]) -> None:
    assert told(decide_small("2024-01-01", a=True), decide_small("2024-02-01", a=True)) == []


@pytest.fixture
def decide_small() -> Callable[..., LineEvaluation]:
    when = {"named": "step", "all": [{"fact": "a", "op": "=", "value": True}]}
    clauses = [
        clause("P.v1.C1", {"covers_if": when}),
        clause(
            "R.C1", {"patch": {"waive": "step", "of": "P"}}, doc_type="plan_rider", effective_start=date(2024, 6, 1)
        ),
    ]

    def decided(as_of: str, **facts: Any) -> LineEvaluation:
        return decide(clauses, FACTS, as_of=as_of, **facts)

    return decided
