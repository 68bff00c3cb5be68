from typing import Any

import pytest
from harness_doubles import COVERS

from cda.contracts.decision import Check, Claim, Determination, GateState, NotedConflict, Outcome, Verification
from cda.harness.gate import Findings, decide, most_conservative, whole_outcome
from cda.harness.quotes import cite
from cda.harness.reasoner import LineReasoned

pytestmark = pytest.mark.promise("harness.gate")

COVERED, NOT_COVERED, OPEN = Outcome.COVERED, Outcome.NOT_COVERED, Outcome.INSUFFICIENT_EVIDENCE
CLAIM = Claim(text="x", citation=cite(COVERS), criterion="covers_if", status="met")


def check_of(**failed: Any) -> Check:
    steps = ("exists", "quote_verbatim", "quote_whole", "in_effect_on_as_of", "governs_request", "supports_claim")
    return Check(claim_index=0, clause_id="PAY-1.v2.C1", **dict.fromkeys(steps, True) | failed)


def gate(outcome: Outcome = COVERED, *, lines: Any = None, **changes: Any) -> Any:
    answer: dict[str, Any] = {
        "outcome": outcome,
        "summary": "",
        "claims": (CLAIM,),
        "confidence": 0.9,
        "gap": "a1c_percent" if outcome is OPEN else None,
    }
    found: dict[str, Any] = {
        "verification": Verification(checks=(check_of(),), faithfulness=1.0),
        "lines": lines or (LineReasoned("A9276", outcome),),
        "order": ("A9276",),
    }
    answer |= {key: changes.pop(key) for key in list(changes) if key in Determination.model_fields}
    return decide(Findings(determination=Determination(**answer), **(found | changes)))


@pytest.mark.parametrize(
    ("outcome", "state"),
    [(COVERED, GateState.DETERMINE), (NOT_COVERED, GateState.DETERMINE), (OPEN, GateState.REFUSE)],
)
def test_a_clean_answer_is_determined_or_refused(outcome: Outcome, state: GateState) -> None:
    found, lines = gate(outcome)
    assert (found.state, lines[0].gate) == (state, state)


def test_a_refusal_names_its_gap() -> None:
    assert gate(OPEN)[0].reasons == ("insufficient_evidence: a1c_percent",)


@pytest.mark.parametrize("outcome", [COVERED, NOT_COVERED, OPEN])
@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"confidence": 0.35}, "confidence"),
        ({"verification": Verification(checks=(check_of(exists=False, reason="exists: no"),))}, "check_failed"),
        ({"verification": Verification()}, "check_failed"),
        ({"noted_conflicts": (NotedConflict(kind="fact", text="sticks"),)}, "fact_conflict"),
        ({"run_reasons": ("budget: out of time",)}, "budget"),
        ({"run_reasons": ("iterations_exhausted: a gap",)}, "iterations_exhausted"),
        ({"lines": (LineReasoned("A9276", COVERED, review_reasons=("routed_here: 95806",)),)}, "routed_here"),
        ({"lines": (LineReasoned("A9276", COVERED, review_reasons=("something_new: 1",)),)}, "something_new"),
    ],
)
def test_what_doubts_the_answer_itself_sends_even_a_refusal_to_review(
    outcome: Outcome, changes: dict[str, Any], kind: str
) -> None:
    changes = dict(changes)
    if "lines" in changes:
        changes["lines"] = tuple(
            LineReasoned("A9276", outcome, review_reasons=line.review_reasons) for line in changes["lines"]
        )
    found, lines = gate(outcome, **changes)
    assert (found.state, lines[0].gate) == (GateState.REVIEW, GateState.REVIEW)
    assert any(reason.startswith(f"{kind}:") for reason in found.reasons)


def test_a_failed_check_names_its_claim_and_step() -> None:
    failed = check_of(exists=False, reason="exists: no clause has this id")
    reasons = gate(verification=Verification(checks=(failed,)))[0].reasons
    assert reasons == ("check_failed: claim 1 (PAY-1.v2.C1), exists: no clause has this id",)


@pytest.mark.parametrize("changes_answer", [True, False])
def test_a_source_conflict_is_reviewed_only_when_it_changes_a_settled_answer(changes_answer: bool) -> None:
    conflict = NotedConflict(
        kind="source", text="the FAQ asks six", clause_ids=("F.1", "B.1"), changes_answer=changes_answer
    )
    found, _ = gate(noted_conflicts=(conflict,))
    assert found.state is (GateState.REVIEW if changes_answer else GateState.DETERMINE)
    assert found.reasons == (("source_conflict: the FAQ asks six (F.1, B.1)",) if changes_answer else ())
    assert gate(OPEN, noted_conflicts=(conflict,))[0].state is GateState.REFUSE


def test_a_relied_on_lower_source_is_reviewed() -> None:
    line = LineReasoned("A9276", COVERED, review_reasons=("relied_on_lower_source: F.1",))
    assert gate(lines=(line,))[0].state is GateState.REVIEW


@pytest.mark.parametrize(
    ("outcome", "state"),
    [(COVERED, GateState.DETERMINE), (NOT_COVERED, GateState.REVIEW), (OPEN, GateState.REFUSE)],
)
def test_a_regulated_plan_sends_only_denials_to_a_clinician(outcome: Outcome, state: GateState) -> None:
    assert gate(outcome, adverse_to_review=True)[0].state is state


def test_a_settled_answer_without_claims_and_a_refusal_without_gap_are_reviewed() -> None:
    assert gate(claims=(), verification=Verification())[0].reasons == ("no_claims: COVERED cites no clause",)
    assert gate(OPEN, gap=None)[0].state is GateState.REVIEW


def test_no_determination_is_reviewed() -> None:
    found, _ = decide(Findings(determination=None, verification=Verification(), lines=(), order=("A9276",)))
    assert (found.state, found.reasons) == (GateState.REVIEW, ("no_determination: no answer was reached",))


def test_a_whole_that_is_milder_than_its_lines_is_reviewed() -> None:
    lines = (LineReasoned("A9276", COVERED), LineReasoned("95249", NOT_COVERED))
    found, _ = gate(COVERED, lines=lines, order=("A9276", "95249"))
    assert "lines: the whole is not the most conservative of its lines" in found.reasons


def test_notes_are_shown_and_change_nothing() -> None:
    found, _ = gate(notes=("note: an entry was set aside",))
    assert (found.state, found.reasons) == (GateState.DETERMINE, ("note: an entry was set aside",))


def test_the_most_conservative_wins() -> None:
    states = [GateState.DETERMINE, GateState.REVIEW, GateState.REFUSE, GateState.HALT]
    assert [most_conservative(states[: n + 1]) for n in range(4)] == states
    assert whole_outcome([COVERED, NOT_COVERED]) is NOT_COVERED
    assert whole_outcome([COVERED, OPEN, NOT_COVERED]) is OPEN
