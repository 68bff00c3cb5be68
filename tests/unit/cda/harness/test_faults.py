from typing import Any

import pytest
from harness_doubles import COVERS, SCOPE, MemoryTools, answer, clause, request

from cda.contracts.decision import GateState
from cda.errors import UsageError
from cda.harness.faults import corrupt
from cda.harness.loop import RunSettings

pytestmark = pytest.mark.promise("harness.faults")

STEP = {
    "hallucinate": "exists: no clause has this id",
    "paraphrase": "quote_verbatim:",
    "stale": "in_effect_on_as_of: the clause is in effect 2022-01-01 to 2023-12-31",
    "unsupported": "supports_claim: the claim's number 9731",
}
NARRATIVES = ["She tests 5 times a day.", "She tests 2 times a day.", "Type 1 diabetes."]


@pytest.mark.parametrize("narrative", NARRATIVES)
@pytest.mark.parametrize("fault", STEP)
def test_each_fault_ends_in_review_for_the_step_that_names_it(fault: str, narrative: str) -> None:
    result = answer(request(narrative=narrative), settings=RunSettings(fault=fault))
    assert result.gate.state is GateState.REVIEW
    assert any(reason.startswith("check_failed: claim 1") and STEP[fault] in reason for reason in result.gate.reasons)


@pytest.mark.parametrize("narrative", NARRATIVES)
def test_low_confidence_ends_in_review_whatever_the_outcome(narrative: str) -> None:
    result = answer(request(narrative=narrative), settings=RunSettings(fault="lowconf"))
    assert result.gate.state is GateState.REVIEW
    assert "confidence: 0.35 is below 0.70" in result.gate.reasons


@pytest.mark.parametrize("fault", [*STEP, "lowconf"])
def test_a_refusal_without_claims_is_spoilt_too(fault: str) -> None:
    result = answer(request(procedure_codes=["31241"]), settings=RunSettings(fault=fault))
    assert result.gate.state is GateState.REVIEW


def test_a_fault_that_finds_nothing_to_spoil_says_so() -> None:
    tools = MemoryTools(clauses=(SCOPE, COVERS))
    result = answer(settings=RunSettings(fault="stale"), tools=tools)
    assert result.gate.state is GateState.REVIEW
    assert "fault: stale found nothing to spoil" in result.gate.reasons


def test_a_stale_clause_is_found_even_when_the_policy_has_one_version() -> None:
    old = clause(
        "PAY-8.v1.C1",
        "An older sensor is covered for members.",
        effective_start="2020-01-01",
        effective_end="2021-01-01",
    )
    result = answer(settings=RunSettings(fault="stale"), tools=MemoryTools(clauses=(old, COVERS)))
    assert any("in_effect_on_as_of" in reason for reason in result.gate.reasons)


def test_another_fault_name_is_refused_and_reviewed() -> None:
    plain: Any = answer()
    with pytest.raises(UsageError, match="hallucinate, paraphrase, stale, unsupported, lowconf"):
        corrupt("melt", plain.determination, case=plain, clauses=(), tools=MemoryTools())
    assert answer(settings=RunSettings(fault="melt")).gate.state is GateState.REVIEW
