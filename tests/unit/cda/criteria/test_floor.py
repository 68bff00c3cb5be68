"""The floor cases from their structured facts, and both sides of every boundary in them."""

from collections.abc import Callable
from typing import Any

import pytest
from criteria_world import DATA

from cda.contracts.decision import Outcome
from cda.criteria.line import LineEvaluation
from cda.criteria.verdict import Reason

pytestmark = pytest.mark.promise("criteria.floor")

Decide = Callable[..., LineEvaluation]
COVERED, NOT_COVERED, OPEN = Outcome.COVERED, Outcome.NOT_COVERED, Outcome.INSUFFICIENT_EVIDENCE


@pytest.mark.parametrize("case", DATA["cases"], ids=lambda case: case["id"])
def test_a_floor_case_comes_out_right_with_its_gold_clause_first(case: dict[str, Any], decide: Decide) -> None:
    line = decide(case["codes"][0], case["plan"], case["as_of"], case["dx"], payer=case["payer"], **case["facts"])
    assert line.outcome == case["outcome"]
    assert [entry.clause_id for entry in line.deciding[:1]] == case["gold"]
    assert any(conflict.needs_review for conflict in line.source_conflicts) == case["review"]


@pytest.mark.parametrize(
    ("as_of", "outcome", "clause"),
    [
        ("2022-12-31", OPEN, None),
        ("2023-01-01", NOT_COVERED, "MHP-MP-0142.v1.C2"),
        ("2024-06-30", NOT_COVERED, "MHP-MP-0142.v1.C2"),
        ("2024-07-01", COVERED, "MHP-MP-0142.v2.C2"),
    ],
)
def test_windows_hold_on_both_of_their_ends(as_of: str, outcome: Outcome, clause: str | None, decide: Decide) -> None:
    facts = {"diabetes_type": "type_1", "fingersticks_per_day": 2, "hypoglycemia_unawareness": False}
    line = decide("A9276", "MHP-HMO-BASE", as_of, ["E10.9"], **facts)
    assert line.outcome is outcome
    assert (line.deciding[0].clause_id if line.deciding else None) == clause


RA = {"rheumatoid_arthritis": "confirmed", "disease_severity": "moderate_severe"}


@pytest.mark.parametrize(
    ("plan", "facts", "outcome", "review"),
    [
        ("MHP-HMO-BASE", {"csdmard_trial_months": 4, "csdmard_response": "inadequate"}, COVERED, True),
        ("MHP-HMO-BASE", {"csdmard_trial_months": 8, "csdmard_response": "inadequate"}, COVERED, False),
        ("MHP-PPO-GOLD", {"csdmard_trial_months": 4, "csdmard_response": "inadequate"}, COVERED, False),
        ("MHP-PPO-GOLD", {"csdmard_trial_months": 0}, COVERED, False),
        ("MHP-PPO-GOLD", {"csdmard_trial_months": 0, "requester_relied_on_faq": True}, COVERED, True),
        ("MHP-HMO-BASE", {"csdmard_trial_months": 0, "csdmard_contraindicated": True}, COVERED, False),
        ("MHP-HMO-BASE", {"csdmard_trial_months": 0}, OPEN, False),
    ],
)
def test_an_faq_asks_for_review_where_it_would_change_the_answer_or_was_relied_on(
    plan: str, facts: dict[str, Any], outcome: Outcome, review: bool, decide: Decide
) -> None:
    line = decide("J1745", plan, "2024-08-01", ["M05.79"], **RA, **facts)
    assert line.outcome is outcome
    assert any(conflict.needs_review for conflict in line.source_conflicts) is review


@pytest.mark.parametrize(
    ("plan", "units", "outcome", "first"),
    [
        ("MHP-HMO-BASE", 31, COVERED, "MHP-MP-0142.v2.C2"),
        ("MHP-HMO-BASE", 32, OPEN, "MHP-MP-0142.v2.C4"),
        ("MHP-PPO-GOLD", 31, COVERED, "MHP-MP-0142.v2.C2"),
        ("MHP-PPO-GOLD", 32, COVERED, "MHP-RID-DME-EXPAND.C1"),
        ("MHP-PPO-GOLD", 40, COVERED, "MHP-RID-DME-EXPAND.C1"),
        ("MHP-PPO-GOLD", 41, OPEN, "MHP-RID-DME-EXPAND.C1"),
    ],
)
def test_a_quantity_beyond_a_documentation_limit_is_a_refusal_and_never_a_denial(
    plan: str, units: int, outcome: Outcome, first: str, decide: Decide
) -> None:
    line = decide("A9276", plan, "2025-04-01", ["E10.9"], diabetes_type="type_1", sensor_units_per_31_days=units)
    assert (line.outcome, line.deciding[0].clause_id) == (outcome, first)
    assert line.reason is (Reason.CRITERIA_MET if outcome is COVERED else Reason.NEEDS_DOCUMENTATION)
    if outcome is OPEN:
        assert "MHP-MP-0142.v2.C4" in [entry.clause_id for entry in line.deciding]


def test_sessions_beyond_a_hard_limit_are_not_covered(decide: Decide) -> None:
    facts = {"diabetes_type": "type_2", "a1c_percent": 9, "professional_sessions_prior_12_months": 1}
    line = decide("95250", "MHP-HMO-BASE", "2024-10-01", ["E11.65"], **facts)
    assert (line.outcome, line.reason) == (NOT_COVERED, Reason.BEYOND_LIMIT)
    assert line.deciding[0].clause_id == "MHP-MP-0143.v1.C3"


@pytest.mark.parametrize(
    ("facts", "outcome", "reason"),
    [
        ({}, OPEN, Reason.MISSING_FACTS),
        ({"clinical_status_change": False, "weight_change_percent": 4}, NOT_COVERED, Reason.REQUIREMENT_NOT_MET),
        ({"clinical_status_change": False}, OPEN, Reason.MISSING_FACTS),
        ({"weight_change_percent": 10}, COVERED, Reason.CRITERIA_MET),
    ],
)
def test_a_repeat_sleep_test_needs_a_change(
    facts: dict[str, Any], outcome: Outcome, reason: Reason, decide: Decide
) -> None:
    line = decide(
        "95806", "CSM-EPO-VALUE", "2025-06-01", ["G47.33"], osa="suspected", sleep_test_prior_12_months=True, **facts
    )
    assert (line.outcome, line.reason) == (outcome, reason)
    assert "CSM-MP-0331.v2.C3" in [entry.clause_id for entry in line.deciding]


def test_a_closed_group_of_comorbidities_is_enough_for_a_home_test(decide: Decide) -> None:
    facts = {"osa_pretest_probability": "high", "significant_comorbidity": False}
    assert decide("95806", "CSM-EPO-VALUE", "2024-06-01", ["G47.33"], **facts).outcome is COVERED


def test_a_comorbidity_sends_an_unmet_laboratory_study_to_review(decide: Decide) -> None:
    line = decide("95810", "CSM-EPO-VALUE", "2024-06-01", ["G47.33"], congestive_heart_failure=True)
    assert line.outcome is OPEN
    assert [(c.kind, c.clause_id, c.needs_review) for c in line.source_conflicts] == [
        ("routed_here", "CSM-MP-0331.v1.C2", True)
    ]


def test_a_rider_duty_shows_prior_authorization_and_changes_no_criterion(decide: Decide) -> None:
    facts = {"home_sleep_test_result": "negative", "osa_clinical_suspicion_remains": True}
    narrow = decide("95810", "CSM-PPO-STD", "2024-06-01", ["G47.33"], **facts)
    plain = decide("95810", "CSM-EPO-VALUE", "2024-06-01", ["G47.33"], **facts)
    assert narrow.outcome is plain.outcome is COVERED
    assert narrow.prior_authorization.clause_id == "CSM-RID-SLEEP-NARROW.C1"
    assert (narrow.prior_authorization.required, plain.prior_authorization.required) == ("yes", "unknown")


@pytest.mark.parametrize(
    ("age", "as_of", "outcome"),
    [(17, "2024-06-01", OPEN), (18, "2024-06-01", COVERED), (12, "2025-06-01", OPEN), (13, "2025-06-01", COVERED)],
)
def test_a_member_outside_the_population_is_refused_with_the_scope_clause(
    age: int, as_of: str, outcome: Outcome, decide: Decide
) -> None:
    facts = {"osa": "suspected", "osa_pretest_probability": "high", "significant_comorbidity": False}
    line = decide("95806", "CSM-EPO-VALUE", as_of, ["G47.33"], member_age_years=age, **facts)
    assert line.outcome is outcome
    if outcome is OPEN:
        assert line.reason is Reason.OUT_OF_POPULATION
        assert [entry.role for entry in line.deciding] == ["scope"]


def test_individual_consideration_refuses_and_cites_its_clause(decide: Decide) -> None:
    line = decide("E1399", "CSM-PPO-STD", "2024-08-01")
    assert (line.outcome, line.reason) == (OPEN, Reason.INDIVIDUAL_CONSIDERATION)
    assert [entry.clause_id for entry in line.deciding] == ["CSM-MP-0702.v4.C2"]


@pytest.mark.parametrize("code", ["95251", "E0607", "31241"])
def test_a_code_that_no_clause_names_has_no_governing_policy(code: str, decide: Decide) -> None:
    line = decide(code, "MHP-HMO-BASE", "2024-08-01", ["E10.9"], diabetes_type="type_1")
    assert (line.outcome, line.reason, line.deciding) == (OPEN, Reason.NO_GOVERNING_POLICY, ())


def test_a_code_with_exclusions_alone_is_excluded_or_refused(decide: Decide) -> None:
    axial = {"axial_pain_only": True, "spinal_instability_or_deformity": False}
    excluded = decide("22551", "CSM-PPO-STD", "2024-08-01", ["M54.16"], **axial)
    assert (excluded.outcome, excluded.deciding[0].clause_id) == (NOT_COVERED, "CSM-MP-0405.v2.C3")
    open_line = decide("22551", "CSM-PPO-STD", "2024-08-01", ["M54.16"], axial_pain_only=False)
    assert (open_line.outcome, open_line.reason) == (OPEN, Reason.NO_COVERAGE_CRITERIA)


@pytest.mark.promise("criteria.flips")
def test_a_flip_never_contradicts_what_the_chart_states(decide: Decide) -> None:
    facts = {"osa_pretest_probability": "high", "congestive_heart_failure": True}
    line = decide("95806", "CSM-EPO-VALUE", "2024-06-01", ["G47.33"], **facts)
    flips = [flip.facts for flip in line.flips if flip.outcome is COVERED]
    assert {"significant_comorbidity": False} not in flips
    assert {"significant_comorbidity": False, "congestive_heart_failure": False} in flips
    facts = {"diabetes_type": "type_2", "insulin_injections_per_day": 3}
    insulin = decide("A9276", "MHP-HMO-BASE", "2025-01-20", ["E11.9"], **facts)
    assert insulin.outcome is COVERED
    assert not any("insulin_therapy" in flip.facts for flip in insulin.flips)
