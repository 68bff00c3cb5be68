"""Coverage questions end to end, from structured facts: outcome, gate, citations, and what goes with them."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from coverage_world import (
    EPO,
    FLOOR,
    GOLD,
    HALTED,
    HMO,
    OPEN_CASE,
    RA,
    STD,
    T1,
    YES,
    answer,
    cited,
    open_system,
    request,
)

from cda.systems.coverage.system import CoverageSystem

REVIEWED = ("COVERED", "REVIEW")
UNTRIED = {**RA, "csdmard_trial_months": 0, "csdmard_contraindicated": False}


@pytest.mark.promise("coverage.floor")
@pytest.mark.parametrize(
    ("plan", "code", "dx", "day", "facts", "expected", "gold"), [case[1:] for case in FLOOR], ids=[c[0] for c in FLOOR]
)
def test_a_floor_case_comes_out_right_and_verified(
    system: CoverageSystem, plan: str, code: str, dx: str, day: str, facts: Any, expected: Any, gold: str | None
) -> None:
    result = system.ask(request(plan, code, day, facts, dx=dx))
    assert answer(result) == expected
    assert cited(result)[:1] == ([gold] if gold else [])
    assert all(check.passed for check in result.verification.checks)
    assert len(result.verification.checks) == len(result.determination.claims)
    assert result.verification.faithfulness == (1.0 if gold else None)


@pytest.mark.promise("coverage.floor")
def test_the_floor_case_without_a_payer_halts(system: CoverageSystem) -> None:
    result = system.ask(HALTED)
    assert (result.gate.state, result.determination) == ("HALT", None)
    assert result.gate.reasons == ("payer_id: empty; name the payer",)
    assert result.retrieved_clause_ids == ()


@pytest.mark.promise("coverage.riders")
@pytest.mark.parametrize(
    ("plan", "code", "dx", "day", "facts", "expected", "first"),
    [
        # The bulletin itself begins with the rider, so the day before has neither.
        (GOLD, "J1745", "M05.79", "2023-12-31", UNTRIED, OPEN_CASE, None),
        (GOLD, "J1745", "M05.79", "2024-01-01", UNTRIED, YES, "MHP-RID-STEP-WAIVE.C1"),
        (HMO, "J1745", "M05.79", "2024-01-01", UNTRIED, ("NOT_COVERED", "DETERMINE"), "MHP-MP-0210.v3.C2"),
        (GOLD, "A9276", "E10.9", "2025-04-01", {**T1, "sensor_units_per_31_days": 40}, YES, "MHP-RID-DME-EXPAND.C1"),
        (
            GOLD,
            "A9276",
            "E10.9",
            "2025-04-01",
            {**T1, "sensor_units_per_31_days": 41},
            OPEN_CASE,
            "MHP-RID-DME-EXPAND.C1",
        ),
        (HMO, "A9276", "E10.9", "2025-04-01", {**T1, "sensor_units_per_31_days": 36}, OPEN_CASE, "MHP-MP-0142.v2.C4"),
    ],
)
def test_a_rider_counts_for_its_plan_and_its_days(
    system: CoverageSystem, plan: str, code: str, dx: str, day: str, facts: Any, expected: Any, first: str | None
) -> None:
    result = system.ask(request(plan, code, day, facts, dx=dx))
    assert answer(result) == expected
    assert cited(result)[:1] == ([first] if first else [])
    if plan == HMO:
        assert not any("RID" in clause_id for clause_id in result.retrieved_clause_ids)


@pytest.mark.promise("coverage.riders")
def test_without_a_plan_the_base_policy_answers_and_a_person_looks(system: CoverageSystem) -> None:
    result = system.ask(request(None, "J1745", "2024-09-01", UNTRIED, dx="M05.79"))
    assert answer(result) == ("NOT_COVERED", "REVIEW")
    assert result.gate.reasons == ("no_plan: no plan was named, so riders were not considered",)


FOUR_MONTHS = {**RA, "csdmard_trial_months": 4, "csdmard_response": "inadequate"}


@pytest.mark.promise("coverage.lower_sources")
@pytest.mark.parametrize(
    ("plan", "facts", "kinds"),
    [
        (HMO, FOUR_MONTHS, ["source_conflict"]),
        (HMO, {**FOUR_MONTHS, "csdmard_trial_months": 6}, []),
        (HMO, {**FOUR_MONTHS, "csdmard_trial_months": 6, "requester_relied_on_faq": True}, ["relied_on_lower_source"]),
        (HMO, {**FOUR_MONTHS, "requester_relied_on_faq": True}, ["source_conflict", "relied_on_lower_source"]),
        (GOLD, {**RA, "csdmard_trial_months": 0}, []),
        (GOLD, {**RA, "csdmard_trial_months": 0, "requester_relied_on_faq": True}, ["relied_on_lower_source"]),
    ],
)
def test_an_faq_makes_it_review_where_it_matters_and_is_noted_elsewhere(
    system: CoverageSystem, plan: str, facts: Any, kinds: list[str]
) -> None:
    result = system.ask(request(plan, "J1745", "2024-08-01", facts, dx="M05.79"))
    assert answer(result) == ("COVERED", "REVIEW" if kinds else "DETERMINE")
    assert ("MHP-FAQ-0210.v1.C1" in cited(result)) is bool(kinds)
    assert "MHP-MP-0210.v3.C2" in cited(result)
    noted = result.determination.noted_conflicts
    assert "MHP-FAQ-0210.v1.C1" in [conflict.clause_ids[0] for conflict in noted]
    assert any(conflict.changes_answer for conflict in noted) is bool(kinds)
    assert [reason.partition(": MHP-FAQ-0210")[0] for reason in dict.fromkeys(result.gate.reasons)][
        : len(kinds)
    ] == kinds
    assert {reason.partition(":")[0] for reason in result.gate.reasons} == set(kinds)


@pytest.mark.promise("coverage.routed")
@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"home_sleep_test_result": "positive", "congestive_heart_failure": True}, ("NOT_COVERED", "REVIEW")),
        ({"home_sleep_test_result": "positive", "congestive_heart_failure": False}, ("NOT_COVERED", "DETERMINE")),
        ({"congestive_heart_failure": True}, ("INSUFFICIENT_EVIDENCE", "REVIEW")),
        (
            {
                "home_sleep_test_result": "negative",
                "osa_clinical_suspicion_remains": True,
                "congestive_heart_failure": True,
            },
            YES,
        ),
    ],
)
def test_the_service_that_a_member_is_routed_to_is_reviewed_until_its_own_criteria_are_met(
    system: CoverageSystem, facts: Any, expected: Any
) -> None:
    result = system.ask(request(EPO, "95810", "2024-06-01", facts, dx="G47.33"))
    assert answer(result) == expected
    assert all(check.passed for check in result.verification.checks)
    # The clause that routes names 95806 alone, so it is told and not cited.
    assert "CSM-MP-0331.v1.C2" not in cited(result)
    routed = [reason for reason in result.gate.reasons if reason.startswith("routed_here: CSM-MP-0331.v1.C2")]
    assert len(routed) == (expected[1] == "REVIEW")


@pytest.mark.promise("coverage.lines")
def test_an_unknown_code_halts_the_whole_and_leaves_the_other_lines_their_answers(system: CoverageSystem) -> None:
    facts = {"diabetes_type": "type_1", "a1c_percent": 6}
    result = system.ask(request(HMO, ["A9276", "Z9999", "31241", "95250"], "2024-10-01", facts, dx="E10.9"))
    assert (result.gate.state, result.determination) == ("HALT", None)
    assert [(line.procedure_code, line.outcome, line.gate) for line in result.lines] == [
        ("A9276", "COVERED", "DETERMINE"),
        ("Z9999", "INSUFFICIENT_EVIDENCE", "HALT"),
        ("31241", "INSUFFICIENT_EVIDENCE", "REFUSE"),
        ("95250", "NOT_COVERED", "DETERMINE"),
    ]
    assert "unknown_code: procedure_codes: Z9999 is not a known code" in result.gate.reasons


@pytest.mark.promise("coverage.lines")
def test_the_whole_takes_the_most_conservative_of_its_lines(system: CoverageSystem) -> None:
    facts = {"diabetes_type": "type_1", "a1c_percent": 6}
    mixed = system.ask(request(HMO, ["A9276", "95250"], "2024-10-01", facts))
    assert answer(mixed) == ("NOT_COVERED", "DETERMINE")
    assert mixed.determination.summary == (
        "A9276 is covered on 2024-10-01: the criteria of MHP-MP-0142.v2.C2 are met. "
        "95250 is not covered on 2024-10-01: the criteria of MHP-MP-0143.v1.C2 are not met."
    )
    refused = system.ask(request(HMO, ["A9276", "31241"], "2024-10-01", facts))
    assert answer(refused) == OPEN_CASE
    assert refused.gate.reasons == ("no_governing_policy: 31241: no policy of this payer in effect governs it",)
    assert refused.determination.gap == "31241: no policy of this payer in effect governs it"


@pytest.mark.promise("coverage.lines")
def test_a_contradiction_stands_against_the_code_that_it_concerns_alone(system: CoverageSystem) -> None:
    facts = {**T1, "fingersticks_per_day": 2, **RA, "csdmard_trial_months": 0, "csdmard_contraindicated": False}
    said = "She checks her blood sugar by fingerstick 6 times a day."
    result = system.ask(
        request(HMO, ["A9276", "J1745"], "2024-03-15", facts, narrative=said, diagnosis_codes=["E10.9", "M05.79"])
    )
    assert [(line.procedure_code, line.gate) for line in result.lines] == [("A9276", "REVIEW"), ("J1745", "DETERMINE")]
    conflicts = [reason for reason in result.gate.reasons if reason.startswith("fact_conflict: ")]
    assert len(conflicts) == 1
    assert "fingersticks_per_day" in conflicts[0]


@pytest.mark.promise("coverage.limits")
@pytest.mark.parametrize(
    ("code", "day", "dx", "facts", "expected", "first", "reason"),
    [
        (
            "A9276",
            "2025-04-01",
            "E10.9",
            {**T1, "sensor_units_per_31_days": 32},
            OPEN_CASE,
            "MHP-MP-0142.v2.C4",
            "needs_documentation: A9276: more than MHP-MP-0142.v2.C4 allows without additional documentation; send the "
            "documentation of why it is needed",
        ),
        (
            "95250",
            "2024-10-01",
            "E11.65",
            {"diabetes_type": "type_2", "a1c_percent": 9, "professional_sessions_prior_12_months": 1},
            ("NOT_COVERED", "DETERMINE"),
            "MHP-MP-0143.v1.C3",
            None,
        ),
    ],
)
def test_beyond_a_limit_is_a_refusal_or_a_denial_as_the_clause_says(
    system: CoverageSystem, code: str, day: str, dx: str, facts: Any, expected: Any, first: str, reason: str | None
) -> None:
    result = system.ask(request(HMO, code, day, facts, dx=dx))
    assert (answer(result), cited(result)[0]) == (expected, first)
    assert result.gate.reasons == ((reason,) if reason else ())


@pytest.mark.promise("coverage.limits")
def test_what_is_presumed_is_shown_as_presumed(system: CoverageSystem) -> None:
    result = system.ask(request(HMO, "95250", "2024-10-01", {"diabetes_type": "type_2", "a1c_percent": 9}, dx="E11.65"))
    assert answer(result) == YES
    presumed = [c for c in result.determination.claims if c.status == "presumed"]
    assert [(c.citation.clause_id, c.criterion, c.evidence) for c in presumed] == [("MHP-MP-0143.v1.C3", "limit", ())]
    assert result.determination.confidence == 0.9


@pytest.mark.promise("coverage.population")
def test_a_member_outside_the_population_is_refused_by_the_scope_clause(system: CoverageSystem) -> None:
    facts = {"member_age_years": 17, "osa_pretest_probability": "high", "significant_comorbidity": False}
    result = system.ask(request(EPO, "95806", "2024-06-01", facts, dx="G47.33"))
    assert (answer(result), cited(result)) == (OPEN_CASE, ["CSM-MP-0331.v1.C1"])
    assert result.gate.reasons == ("out_of_population: 95806: CSM-MP-0331.v1.C1 does not reach this member",)


@pytest.mark.promise("coverage.population")
def test_a_code_that_only_scope_and_limits_name_is_refused_without_a_failed_check(system: CoverageSystem) -> None:
    result = system.ask(request(EPO, "95810", "2025-06-01", {"member_age_years": 40}, dx="G47.33"))
    assert answer(result) == OPEN_CASE
    assert result.gate.reasons[0].startswith("no_coverage_criteria: 95810: ")
    assert all(check.passed for check in result.verification.checks)


@pytest.mark.promise("coverage.population")
def test_individual_consideration_is_refused_with_its_clause(system: CoverageSystem) -> None:
    result = system.ask(request(STD, "E1399", "2024-08-01", dx=None))
    assert (answer(result), cited(result)) == (OPEN_CASE, ["CSM-MP-0702.v4.C2"])
    assert result.gate.reasons[0].startswith("individual_consideration: E1399: CSM-MP-0702.v4.C2")


NEGATIVE = {"home_sleep_test_result": "negative", "osa_clinical_suspicion_remains": True}


@pytest.mark.promise("coverage.authorization")
@pytest.mark.parametrize(
    ("plan", "day", "required", "clause_id"),
    [
        (STD, "2023-12-31", "unknown", None),
        (STD, "2024-01-01", "yes", "CSM-RID-SLEEP-NARROW.C1"),
        (EPO, "2024-01-01", "unknown", None),
    ],
)
def test_prior_authorization_is_a_duty_beside_the_medical_answer(
    system: CoverageSystem, plan: str, day: str, required: str, clause_id: str | None
) -> None:
    result = system.ask(request(plan, "95810", day, NEGATIVE, dx="G47.33"))
    assert answer(result) == YES
    assert result.lines[0].prior_authorization.model_dump() == {"required": required, "clause_id": clause_id}


BACK_PAIN = {
    "chronic_low_back_pain_weeks": 16,
    "low_back_pain_nonspecific": True,
    "low_back_pain_surgical_or_pregnancy": False,
    "acupuncture_visits_this_year": 0,
    "fibromyalgia": "absent",
}
MEDICARE = "CMS-MEDICARE"


@pytest.mark.promise("coverage.dates")
@pytest.mark.parametrize(
    ("day", "expected", "first"),
    [
        ("2004-04-15", OPEN_CASE, None),
        ("2020-01-20", ("NOT_COVERED", "REVIEW"), "CMS-NCD-30.3.v1.C1"),
        ("2020-01-21", YES, "CMS-NCD-30.3.3.v1.C1"),
        ("2020-06-23", YES, "CMS-NCD-30.3.3.v1.C1"),
        ("2020-06-24", YES, "CMS-NCD-30.3.3.v1.C1"),
    ],
)
def test_acupuncture_changes_on_its_effective_day_and_not_on_its_implementation(
    system: CoverageSystem, day: str, expected: Any, first: str | None
) -> None:
    result = system.ask(request(MEDICARE, "97810", day, BACK_PAIN, dx="M54.50"))
    assert (answer(result), cited(result)[:1]) == (expected, [first] if first else [])


@pytest.mark.promise("coverage.medicare")
def test_a_denial_on_a_medicare_plan_waits_for_a_clinician_and_an_approval_does_not(system: CoverageSystem) -> None:
    denied = system.ask(
        request(MEDICARE, "97810", "2024-05-01", BACK_PAIN | {"chronic_low_back_pain_weeks": 8}, dx=None)
    )
    assert answer(denied) == ("NOT_COVERED", "REVIEW")
    assert denied.gate.reasons == ("adverse: on this plan a clinician issues what is not covered",)
    assert answer(system.ask(request(MEDICARE, "97810", "2024-05-01", BACK_PAIN, dx=None))) == YES


BED = {"pressure_ulcer_stage": "stage_3", "bedridden_or_chair_bound": True, "conservative_treatment_months": 2}


@pytest.mark.promise("coverage.medicare")
@pytest.mark.parametrize("day", ["1992-02-01", "2000-10-31", "2000-11-01", "2024-05-01"])
def test_an_undated_version_is_noted_and_never_decides(system: CoverageSystem, day: str) -> None:
    for wet in (True, False):
        result = system.ask(request(MEDICARE, "E0194", day, BED | {"wet_soaks": wet}, dx=None))
        assert not any(".v2." in clause_id for clause_id in cited(result))
        assert "note: CMS-NCD-280.8 v2 is UNDATED and decides nothing" in result.gate.reasons


@pytest.mark.promise("coverage.medicare")
def test_where_only_an_undated_version_is_left_the_request_is_refused(system: CoverageSystem) -> None:
    result = system.ask(request(MEDICARE, "E0194", "1980-01-01", BED | {"wet_soaks": True}, dx=None))
    assert (answer(result), cited(result)) == (OPEN_CASE, [])
    assert result.gate.reasons[0] == "no_governing_policy: E0194: no policy of this payer in effect governs it"


@pytest.mark.promise("coverage.versus")
def test_two_dates_differ_by_the_version_and_the_criterion_that_went(system: CoverageSystem) -> None:
    asked = request(HMO, "A9276", "2024-03-15", {**T1, "fingersticks_per_day": 2})
    result = system.ask(asked, versus=date(2025, 1, 20))
    assert answer(result) == ("NOT_COVERED", "DETERMINE")
    assert (result.versus.outcome, result.versus.gate) == ("COVERED", "DETERMINE")
    assert [(d.kind, d.from_, d.to) for d in result.versus.differences] == [
        ("version", "MHP-MP-0142 v1", "MHP-MP-0142 v2"),
        ("criterion", "fingerstick glucose checks a day at least 4, unless hypoglycemia unawareness: yes", "none"),
    ]


@pytest.mark.promise("coverage.versus")
def test_the_same_version_on_both_dates_differs_in_nothing(system: CoverageSystem) -> None:
    asked = request(HMO, "A9276", "2024-03-15", {**T1, "fingersticks_per_day": 2})
    told = system.ask(asked, versus=date(2024, 6, 30)).versus
    assert (told.outcome, told.differences) == ("NOT_COVERED", ())


@pytest.mark.promise("coverage.versus")
def test_a_date_that_halts_is_told_as_a_halt_and_a_halted_request_compares_nothing(system: CoverageSystem) -> None:
    told = system.ask(request(), versus=date(1950, 1, 1)).versus
    assert (told.outcome, told.gate, told.differences) == (None, "HALT", ())
    assert system.ask(request(day="2024-02-30"), versus=date(2024, 1, 1)).versus is None


@pytest.mark.promise("coverage.riders")
def test_the_same_facts_on_the_other_plan_come_out_otherwise(system: CoverageSystem) -> None:
    gold, base = (system.ask(request(plan, "J1745", "2024-09-01", UNTRIED, dx="M05.79")) for plan in (GOLD, HMO))
    assert (answer(gold), answer(base)) == (YES, ("NOT_COVERED", "DETERMINE"))


@pytest.mark.promise("coverage.would_change")
def test_each_flip_that_is_named_leads_where_it_says(system: CoverageSystem) -> None:
    facts = {**T1, "fingersticks_per_day": 2}
    flips = system.ask(request(HMO, "A9276", "2024-03-15", facts)).determination.would_change
    assert [(flip.facts, flip.outcome) for flip in flips] == [
        ({"fingersticks_per_day": 4}, "COVERED"),
        ({"hypoglycemia_unawareness": True}, "COVERED"),
        ({"diabetes_type": "type_2"}, "INSUFFICIENT_EVIDENCE"),
    ]
    for flip in flips:
        assert answer(system.ask(request(HMO, "A9276", "2024-03-15", facts | flip.facts)))[0] == flip.outcome


@pytest.mark.promise("coverage.would_change")
def test_a_refusal_names_each_missing_fact_and_the_clause_that_needs_it(system: CoverageSystem) -> None:
    result = system.ask(request(HMO, "95250", "2024-10-01", {"diabetes_type": "type_2"}, dx="E11.9"))
    missing = [(m.fact, m.clause_id) for m in result.determination.missing_facts]
    assert missing == [("a1c_percent", "MHP-MP-0143.v1.C2")]
    assert result.determination.gap == (
        "95250: missing: hemoglobin A1c (a1c_percent, not stated, needed by MHP-MP-0143.v1.C2)"
    )


def _bytes(result: Any) -> str:
    return str(result.model_copy(update={"run_id": "", "latency_s": 0.0}).model_dump_json(by_alias=True))


@pytest.mark.promise("coverage.deterministic")
def test_the_same_request_gives_the_same_bytes_from_another_system(system: CoverageSystem, built_home: Path) -> None:
    other = open_system(built_home)
    for _, plan, code, dx, day, facts, *_ in FLOOR:
        asked = request(plan, code, day, facts, dx=dx, narrative="Fingersticks 5 times a day. Type 1 diabetes.")
        assert _bytes(system.ask(asked)) == _bytes(other.ask(asked))


@pytest.mark.promise("coverage.deterministic")
def test_eight_threads_on_a_fresh_system_get_the_answers_of_one(system: CoverageSystem, built_home: Path) -> None:
    asked = [request(plan, code, day, facts, dx=dx) for _, plan, code, dx, day, facts, *_ in FLOOR]
    alone = [_bytes(system.ask(raw)) for raw in asked]
    fresh = open_system(built_home)
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda raw: _bytes(fresh.ask(raw)), asked * 4))
    assert together == alone * 4


@pytest.mark.promise("coverage.deterministic")
def test_the_order_of_facts_and_diagnoses_does_not_matter(system: CoverageSystem) -> None:
    facts = {**RA, "csdmard_trial_months": 4, "csdmard_response": "inadequate"}
    one = request(HMO, "J1745", "2024-08-01", facts, diagnosis_codes=["M05.79", "K50.90"])
    two = request(HMO, "J1745", "2024-08-01", dict(reversed(facts.items())), diagnosis_codes=["K50.90", "M05.79"])
    assert _bytes(system.ask(one)) == _bytes(system.ask(two))


@pytest.mark.promise("coverage.faults")
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("hallucinate", "check_failed: claim 1 (CDA-FAULT-0000.v0.C0), exists: "),
        ("paraphrase", "check_failed: claim 1 (MHP-MP-0142.v2.C2), quote_verbatim: "),
        ("stale", "check_failed: claim 1 (MHP-MP-0142.v1.C1), in_effect_on_as_of: "),
        ("unsupported", "check_failed: claim 1 (MHP-MP-0142.v2.C2), supports_claim: "),
        ("lowconf", "confidence: 0.35 is below 0.70"),
    ],
)
@pytest.mark.parametrize("facts", [{**T1, "fingersticks_per_day": 2}, {}], ids=["determined", "refused"])
def test_an_injected_fault_is_review_for_the_reason_that_names_it(
    built_home: Path, fault: str, reason: str, facts: Any
) -> None:
    result = open_system(built_home, CDA_FAULT=fault).ask(request(HMO, "A9276", "2025-01-20", facts))
    assert result.gate.state == "REVIEW"
    assert any(said.startswith(reason) for said in result.gate.reasons), result.gate.reasons


def _holds(system: CoverageSystem, result: Any) -> None:
    for claim in result.determination.claims:
        quote = claim.citation
        clause = system.tools.get_clause_by_id(quote.clause_id)
        assert clause.text[quote.start : quote.end] == quote.quote
        assert sha256(clause.text.encode("utf-8")).hexdigest() == quote.clause_sha256
        for piece in claim.evidence:
            if piece.start is None:
                assert (piece.quote, piece.end) == ("", None)
            else:
                assert result.redacted_narrative[piece.start : piece.end] == piece.quote != ""


@pytest.mark.promise("coverage.citations")
@pytest.mark.parametrize("case", FLOOR, ids=[case[0] for case in FLOOR])
def test_every_quote_is_the_clause_at_its_offsets_under_its_hash(system: CoverageSystem, case: Any) -> None:
    _, plan, code, dx, day, facts, *_ = case
    _holds(system, system.ask(request(plan, code, day, facts, dx=dx)))


@pytest.mark.promise("coverage.citations")
def test_evidence_is_verbatim_in_the_redacted_narrative(system: CoverageSystem) -> None:
    said = (
        "Pt: Maria Gonzalez, MRN 00412345, DOB 03/14/1981 – “Zoë 王”. Type 1 diabetes mellitus. "
        "Fingersticks 5 times a day."
    )
    result = system.ask(request(HMO, "A9276", "2024-03-15", narrative=said))
    assert answer(result) == YES
    assert "Gonzalez" not in result.redacted_narrative
    _holds(system, result)
    quotes = {piece.fact for claim in result.determination.claims for piece in claim.evidence if piece.quote}
    assert quotes == {"diabetes_type", "fingersticks_per_day"}


@pytest.mark.promise("coverage.citations")
def test_provenance_names_corpus_index_and_parts(system: CoverageSystem) -> None:
    made = system.ask(request()).provenance
    assert (made.backend, made.embedder, made.reranker, made.reasoner) == ("local", "tfidf", "adaptive", "criteria")
    assert len(made.corpus_digest) == len(made.index_manifest or "") == 64


@pytest.mark.promise("coverage.bad_input")
def test_a_line_that_is_no_request_is_a_halt_with_its_number(system: CoverageSystem) -> None:
    for raw in (b"{", b"[1]", b"\xff\xfe{}", b"[" * 100_000, b"null", b"NaN", b"1" * 5000):
        result = system.ask_line(raw, 7)
        assert (result.gate.state, result.line, result.determination) == ("HALT", 7, None)
        assert result.gate.reasons[0].startswith("request: ")


@pytest.mark.promise("coverage.bad_input")
def test_a_line_with_a_byte_order_mark_is_read(system: CoverageSystem) -> None:
    line = b"\xef\xbb\xbf" + json.dumps(request(facts={**T1, "fingersticks_per_day": 5})).encode()
    assert answer(system.ask_line(line, 1)) == YES


@pytest.mark.promise("coverage.citations")
def test_facts_are_read_for_a_request_that_goes_on_and_for_no_other(system: CoverageSystem) -> None:
    asked = request(narrative="Type 1 diabetes mellitus.")
    found = system.read_facts(asked, ("diabetes_type", "no_such_fact"))
    assert {name: fact.value for name, fact in found.items()} == {"diabetes_type": "type_1"}
    assert system.read_facts(asked | {"payer_id": "ZZZ"}, ("diabetes_type",)) == {}
    assert system.read_facts(asked | {"payer_id": 3}, ("diabetes_type",)) == {}
