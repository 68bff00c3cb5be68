from datetime import date
from typing import Any

import pytest
from harness_doubles import COVERS, OLD, OTHER, RIDER, SCOPE, SIBLING, BlindJudge, MemoryTools, SticksJudge, clause

from cda.contracts.decision import Claim, CoverageRequest, Determination, FactEvidence, Outcome
from cda.contracts.facts import Evidence, Fact, FactState, Interval
from cda.contracts.policy_tools import Plan
from cda.errors import PolicyToolError
from cda.harness.quotes import cite
from cda.harness.reasoner import Case
from cda.harness.verifier import Reading, verify

pytestmark = pytest.mark.promise("harness.verifier")
wording = pytest.mark.promise("harness.wording")

NARRATIVE = "Type 1 diabetes. She tests 5 times a day."
START = NARRATIVE.index("5 times")
FIVE = FactEvidence(fact="sticks", value=5, quote="5 times a day", start=START, end=START + 13)
FAQ = clause("FAQ-1.v1.C1", "A sensor is covered when the member tests four times a day.", doc_type="provider_faq")
UNDATED = clause("PAY-3.v1.C1", "A sensor is covered when the member tests four times a day.", date_state="UNDATED")
FREE_RIDER = RIDER.model_copy(update={"clause_id": "RID-2.v1.C1", "overrides_policy_ids": ("PAY-7",)})
TOOLS = MemoryTools(clauses=(OLD, SCOPE, COVERS, SIBLING, RIDER, OTHER, FAQ, UNDATED, FREE_RIDER))


def case(plan_id: str | None = "GOLD", codes: tuple[str, ...] = ("A9276",), facts: Any = None) -> Case:
    request = CoverageRequest(
        payer_id="PAY",
        plan_id=plan_id,
        procedure_codes=codes,
        as_of_date="2024-06-01",
        narrative=NARRATIVE,
        facts=facts,
    )
    plan = Plan(plan_id=plan_id, payer_id="PAY") if plan_id else None
    return Case(request=request, as_of=date(2024, 6, 1), plan=plan, codes=codes)


def claim(of: Any = COVERS, **changes: Any) -> Claim:
    values: dict[str, Any] = {
        "text": "Four or more tests a day are met.",
        "citation": cite(of),
        "criterion": "covers_if",
        "status": "met",
        "evidence": (FIVE,),
    }
    return Claim(**(values | changes))


def check(
    *claims: Claim,
    outcome: Outcome = Outcome.COVERED,
    of: Case | None = None,
    reading: Reading | None = None,
    judge: Any = None,
) -> Any:
    answer = Determination(outcome=outcome, summary="", claims=claims, confidence=0.9, gap="sticks")
    return verify(of or case(), answer, tools=TOOLS, judge=judge or SticksJudge(), reading=reading)


def reason(*claims: Claim, **named: Any) -> str:
    found: str = check(*claims, **named).checks[0].reason
    return found


def test_a_true_claim_about_the_governing_clause_passes_every_step() -> None:
    found = check(claim())
    assert found.checks[0].passed
    assert found.faithfulness == 1.0
    assert found.checks[0].reason == ""


def test_no_claims_have_no_faithfulness() -> None:
    assert check().faithfulness is None


def test_an_invented_clause_fails_at_exists_and_nothing_after_it_passes() -> None:
    invented = claim(citation=cite(COVERS).model_copy(update={"clause_id": "PAY-9.v1.C9"}))
    (found,) = check(invented).checks
    assert found.reason == "exists: no clause has this id"
    assert [found.quote_verbatim, found.quote_whole, found.in_effect_on_as_of, found.governs_request] == [False] * 4


def test_a_stitched_quote_fails_at_quote_verbatim() -> None:
    stitched = COVERS.text[:40] + SIBLING.text[10:]
    assert reason(claim(citation=cite(COVERS).model_copy(update={"quote": stitched}))).startswith("quote_verbatim:")


def test_a_quote_cut_before_its_qualifier_fails_at_quote_whole() -> None:
    end = COVERS.text.index(" However")
    cut = cite(COVERS).model_copy(update={"quote": COVERS.text[:end], "end": end})
    assert reason(claim(citation=cut)) == "quote_whole: the quote stops before the sentence that qualifies it"


def test_a_superseded_clause_fails_at_in_effect_with_its_window() -> None:
    assert (
        reason(claim(OLD)) == "in_effect_on_as_of: the clause is in effect 2022-01-01 to 2023-12-31, not on 2024-06-01"
    )


def test_an_undated_clause_is_in_effect_on_no_date() -> None:
    assert reason(claim(UNDATED)).startswith("in_effect_on_as_of: the clause is UNDATED")


@pytest.mark.parametrize(
    ("of", "plan", "codes", "words"),
    [
        (OTHER, "GOLD", ("A9276",), "another payer's"),
        (RIDER, "BASE", ("A9276",), "another plan's"),
        (RIDER, None, ("A9276",), "another plan's"),
        (SIBLING, "GOLD", ("A9276",), "none of the requested codes"),
        (FREE_RIDER, "GOLD", ("A9276",), "no policy that the rider overrides"),
    ],
)
def test_a_clause_that_does_not_govern_fails_at_governs_request(
    of: Any, plan: str | None, codes: tuple[str, ...], words: str
) -> None:
    found = reason(claim(of), of=case(plan, codes))
    assert found.startswith("governs_request:")
    assert words in found


def test_a_rider_of_the_plan_over_a_governing_policy_governs() -> None:
    waived = claim(RIDER, text="The rider waives it.", criterion="patch", evidence=())
    assert check(claim(), waived, judge=BlindJudge()).checks[1].passed


def test_a_node_that_the_evidence_does_not_carry_fails_at_supports_claim() -> None:
    found = check(claim(status="not_met"), outcome=Outcome.NOT_COVERED)
    assert found.checks[0].reason == "supports_claim: the node is met on this evidence"


@pytest.mark.parametrize("scope_status", ["met", "presumed", "unknown"])
def test_a_scope_clause_supports_no_coverage_decision(scope_status: str) -> None:
    scoped = claim(SCOPE, criterion="population", status=scope_status, text="The member is in scope.", evidence=())
    assert "a scope clause supports nothing" in check(claim(), scoped, judge=BlindJudge()).checks[1].reason


def test_a_scope_clause_supports_a_refusal_of_a_member_outside_its_population() -> None:
    outside = claim(SCOPE, criterion="population", status="not_met", text="The member is outside.", evidence=())
    assert check(outside, outcome=Outcome.INSUFFICIENT_EVIDENCE, judge=BlindJudge()).checks[0].passed


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"criterion": None}, "names no criterion"),
        ({"criterion": "excludes_if"}, "no such part"),
        ({"text": " "}, "says nothing"),
        ({"evidence": (FIVE.model_copy(update={"quote": "9 times a day"}),)}, "not the narrative's words"),
        ({"evidence": (FIVE.model_copy(update={"start": 0, "end": 13}),)}, "not the narrative's words"),
        ({"evidence": (FactEvidence(fact="sticks", value=5, quote="5 times a day"),)}, "no place"),
        ({"evidence": (FactEvidence(fact="sticks", value=5),)}, "none of the claim's evidence is in the request"),
    ],
)
def test_a_claim_without_criterion_words_or_grounds_fails_at_supports_claim(
    changes: dict[str, Any], words: str
) -> None:
    found = reason(claim(**changes))
    assert found.startswith("supports_claim:")
    assert words in found


def test_evidence_from_the_requests_own_facts_is_grounded() -> None:
    structured = claim(evidence=(FactEvidence(fact="sticks", value=5),))
    assert check(structured, of=case(facts={"sticks": 5})).checks[0].passed


def test_evidence_must_have_the_value_that_the_request_gives() -> None:
    read = Fact("sticks", FactState.KNOWN, Interval.exactly(2), (Evidence("2"),))
    assert "another value" in reason(claim(), reading=Reading({"sticks": read}))
    five = Fact("sticks", FactState.KNOWN, Interval.exactly(5), (Evidence("5"),))
    assert reason(claim(), reading=Reading({"sticks": five})) == ""


def test_words_that_address_the_reader_are_no_evidence() -> None:
    assert "address the reader" in reason(claim(), reading=Reading(fences=[(START, len(NARRATIVE))]))


def test_an_unauthored_clause_can_be_cited_by_a_refusal_but_settles_nothing() -> None:
    bare = clause("PAY-1.v2.C9", "A sensor is covered when the plan says so.", criterion=None)
    tools = MemoryTools(clauses=(bare,))
    told = claim(bare, criterion=None, status="unknown", text="The clause has no authored criteria.", evidence=())
    refusal = Determination(outcome=Outcome.INSUFFICIENT_EVIDENCE, summary="", claims=(told,), confidence=0.9, gap="x")
    assert verify(case(), refusal, tools=tools, judge=SticksJudge()).checks[0].passed
    settled = refusal.model_copy(update={"claims": (claim(bare),)})
    assert "no authored criterion" in verify(case(), settled, tools=tools, judge=SticksJudge()).checks[0].reason


@pytest.mark.parametrize(
    ("outcome", "claims"),
    [
        (Outcome.NOT_COVERED, (claim(),)),
        (Outcome.COVERED, (claim(criterion="covers_if.all.0"),)),
    ],
)
def test_claims_that_together_do_not_carry_the_outcome_fail_at_the_first(
    outcome: Outcome, claims: tuple[Claim, ...]
) -> None:
    found = check(*claims, outcome=outcome, judge=BlindJudge()).checks[0]
    assert found.reason == f"supports_claim: no claim here carries {outcome.value}"
    assert not found.supports_claim


def test_a_dead_corpus_is_not_taken_for_a_missing_clause() -> None:
    def dead() -> None:
        raise PolicyToolError("search_unavailable", "gone")

    answer = Determination(outcome=Outcome.COVERED, summary="", claims=(claim(),), confidence=0.9)
    with pytest.raises(PolicyToolError):
        verify(case(), answer, tools=MemoryTools(broken={"get_clause_by_id": dead}), judge=SticksJudge())


@wording
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("At least 3 tests a day.", "number 3"),
        ("Four tests a week.", "unit 'week'"),
        ("Met unless the member is pregnant.", "exception"),
        ("Twenty-one tests a day.", "number 21"),
    ],
)
def test_a_changed_threshold_unit_or_exception_is_vetoed(text: str, words: str) -> None:
    assert words in reason(claim(text=text))


@wording
@pytest.mark.parametrize(
    "text",
    [
        "4 or more daily tests; the chart gives 5.",
        "PAY-1.v2.C1, in effect from 2024-01-01, asks A9276 on 2024-06-01 for four a day.",
        "It does not apply in hospital.",
    ],
)
def test_words_for_numbers_ids_dates_and_the_quotes_own_negation_pass(text: str) -> None:
    assert reason(claim(text=text)) == ""


@wording
def test_a_met_claim_denies_only_what_quote_or_evidence_denies() -> None:
    plain = clause("PAY-1.v2.C1", "A sensor is covered when the member tests four times a day.")
    answer = Determination(
        outcome=Outcome.COVERED, summary="", claims=(claim(plain, text="There is no hospital stay."),), confidence=0.9
    )
    found = verify(case(), answer, tools=MemoryTools(clauses=(plain,)), judge=SticksJudge()).checks[0]
    assert "denies something" in found.reason
