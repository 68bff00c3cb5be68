"""The judge alone: a claim against a clause, on the claim's own evidence."""

from collections.abc import Sequence
from datetime import date
from typing import Any

import pytest
from coverage_world import GOLD, HMO, request

from cda.contracts.decision import Claim, CoverageRequest, FactEvidence, Outcome
from cda.harness.quotes import cite
from cda.harness.reasoner import Case
from cda.systems.coverage.judge import CriteriaJudge
from cda.systems.coverage.system import CoverageSystem

pytestmark = pytest.mark.promise("coverage.judge")


@pytest.fixture
def judge(system: CoverageSystem) -> CriteriaJudge:
    return CriteriaJudge(system.definitions)


def case(plan: str = HMO, code: str = "A9276", day: str = "2024-03-15", dx: str = "E10.9") -> Case:
    asked = CoverageRequest.model_validate(request(plan, code, day, dx=dx))
    return Case(request=asked, as_of=date.fromisoformat(day), plan=None, codes=(code,))


def claim(system: CoverageSystem, clause_id: str, path: str | None, status: str, **facts: Any) -> Claim:
    evidence = tuple(FactEvidence(fact=name, value=value) for name, value in facts.items())
    return Claim.model_validate(
        {
            "text": "a claim",
            "citation": cite(system.tools.get_clause_by_id(clause_id)),
            "criterion": path,
            "status": status,
            "evidence": evidence,
        }
    )


CGM, FAQ, STEP, DME = (
    "MHP-MP-0142.v1.C2",
    "MHP-FAQ-0210.v1.C1",
    "MHP-RID-STEP-WAIVE",
    "MHP-RID-DME-EXPAND.C1",
)


@pytest.mark.parametrize(
    ("clause_id", "path", "facts", "true"),
    [
        (CGM, "covers_if", {"diabetes_type": "type_1", "fingersticks_per_day": 4}, "met"),
        (CGM, "covers_if", {"diabetes_type": "type_1", "fingersticks_per_day": 3}, "unknown"),
        (
            CGM,
            "covers_if",
            {"diabetes_type": "type_1", "fingersticks_per_day": 3, "hypoglycemia_unawareness": False},
            "not_met",
        ),
        (CGM, "covers_if.all.1", {"fingersticks_per_day": 3, "hypoglycemia_unawareness": True}, "not_met"),
        (CGM, "covers_if.all.1", {}, "unknown"),
        (CGM, "unless.when", {"hypoglycemia_unawareness": True}, "met"),
        (DME, "patch", {"sensor_units_per_31_days": 40}, "met"),
        (DME, "patch", {"sensor_units_per_31_days": 41}, "not_met"),
        (DME, "patch", {"sensor_units_per_31_days": {"lo": 12}}, "unknown"),
        (DME, "patch", {}, "unknown"),
        (f"{STEP}.C1", "patch", {}, "met"),
    ],
)
def test_only_the_status_that_the_evidence_gives_is_accepted(
    system: CoverageSystem, judge: CriteriaJudge, clause_id: str, path: str, facts: Any, true: str
) -> None:
    clause = system.tools.get_clause_by_id(clause_id)
    for status in ("met", "not_met", "unknown"):
        why = judge.node(case(), clause, claim(system, clause_id, path, status, **facts))
        assert (why is None) is (status == true), (status, why)


def test_presumed_is_accepted_where_the_clause_presumes_and_nowhere_else(
    system: CoverageSystem, judge: CriteriaJudge
) -> None:
    limit = "MHP-MP-0143.v1.C3"
    clause = system.tools.get_clause_by_id(limit)
    asked = case(code="95250", day="2024-10-01", dx="E11.9")
    assert judge.node(asked, clause, claim(system, limit, "limit", "presumed")) is None
    stated = claim(system, limit, "limit", "presumed", professional_sessions_prior_12_months=1)
    assert judge.node(asked, clause, stated) == "nothing is presumed there: it is not_met"
    assert judge.node(case(), system.tools.get_clause_by_id(DME), claim(system, DME, "patch", "presumed")) is None
    assert judge.node(case(), system.tools.get_clause_by_id(DME), claim(system, DME, "patch", "met")) is not None


@pytest.mark.parametrize(
    ("clause_id", "path", "status", "why"),
    [
        (CGM, "covers_if.all.9", "met", "the clause's criterion has no such node"),
        (CGM, "states", "met", "the clause states nothing"),
        (CGM, "keeps", "met", "the clause states nothing"),
        (FAQ, "keeps", "met", "the rider clause keeps no requirement"),
        (f"{STEP}.C1", "patch", "not_met", "a waiver in effect is met"),
        (FAQ, "states", "met", None),
        (f"{STEP}.C2", "keeps", "unknown", None),
    ],
)
def test_a_part_that_the_clause_does_not_have_is_named(
    system: CoverageSystem, judge: CriteriaJudge, clause_id: str, path: str, status: str, why: str | None
) -> None:
    clause = system.tools.get_clause_by_id(clause_id)
    assert judge.node(case(), clause, claim(system, clause_id, path, status)) == why


@pytest.mark.parametrize("facts", [{"no_such_fact": 1}, {"fingersticks_per_day": None}, {"diabetes_type": 1}])
def test_evidence_that_cannot_be_read_supports_nothing(
    system: CoverageSystem, judge: CriteriaJudge, facts: Any
) -> None:
    clause, said = system.tools.get_clause_by_id(CGM), claim(system, CGM, "covers_if", "met", **facts)
    assert judge.node(case(), clause, said) == "the claim's evidence or the clause's criterion cannot be read"
    assert judge.outcome(case(), [clause], [said], Outcome.COVERED) == "the claims' evidence cannot be read"


def _outcomes(judge: CriteriaJudge, asked: Case, clauses: Sequence[Any], claims: Sequence[Claim]) -> set[str]:
    """The decided outcomes that are carried; a refusal, which rests on what is missing, always is."""
    assert judge.outcome(asked, clauses, claims, Outcome.INSUFFICIENT_EVIDENCE) is None
    decided = (Outcome.COVERED, Outcome.NOT_COVERED)
    return {outcome.value for outcome in decided if judge.outcome(asked, clauses, claims, outcome) is None}


def test_the_cited_clauses_and_the_evidence_shown_carry_one_outcome_at_most(
    system: CoverageSystem, judge: CriteriaJudge
) -> None:
    bulletin, waiver = "MHP-MP-0210.v3.C2", f"{STEP}.C1"
    facts = {
        "rheumatoid_arthritis": "confirmed",
        "disease_severity": "moderate_severe",
        "csdmard_trial_months": 0,
        "csdmard_contraindicated": False,
    }
    said = [claim(system, bulletin, "covers_if", "met", **facts)]
    both = [system.tools.get_clause_by_id(clause_id) for clause_id in (bulletin, waiver)]
    gold, base = (case(plan, "J1745", "2024-09-01", "M05.79") for plan in (GOLD, HMO))
    assert _outcomes(judge, gold, both, said) == {"COVERED"}
    assert _outcomes(judge, gold, both[:1], said) == {"NOT_COVERED"}  # the waiver was not cited
    assert _outcomes(judge, base, both, said) == {"NOT_COVERED"}  # the waiver is another plan's
    assert _outcomes(judge, gold, both, []) == set()  # nothing was shown
    early = case(GOLD, "J1745", "2023-12-31", "M05.79")
    assert _outcomes(judge, early, both, said) == set()  # neither is in effect yet
