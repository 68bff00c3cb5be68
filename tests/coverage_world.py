"""The shipped corpus under the fitted embedder, built once a session, and the floor cases as structured facts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cda.settings import Settings
from cda.systems.coverage.system import CoverageSystem

HMO, GOLD, EPO, STD, NBA = "MHP-HMO-BASE", "MHP-PPO-GOLD", "CSM-EPO-VALUE", "CSM-PPO-STD", "NBA-PPO-PREM"
T1 = {"diabetes_type": "type_1", "hypoglycemia_unawareness": False}
RA = {"rheumatoid_arthritis": "confirmed", "disease_severity": "moderate_severe"}
OPEN_CASE = ("INSUFFICIENT_EVIDENCE", "REFUSE")
YES, NO = ("COVERED", "DETERMINE"), ("NOT_COVERED", "DETERMINE")

# id, plan, code, diagnosis, day, facts, (outcome, gate), gold clause
FLOOR: tuple[tuple[Any, ...], ...] = (
    ("T1-1", HMO, "A9276", "E10.9", "2024-03-15", {**T1, "fingersticks_per_day": 5}, YES, "MHP-MP-0142.v1.C2"),
    ("T1-2", HMO, "A9276", "E10.9", "2024-03-15", {**T1, "fingersticks_per_day": 2}, NO, "MHP-MP-0142.v1.C2"),
    ("T1-3", HMO, "A9276", "E10.9", "2025-01-20", {**T1, "fingersticks_per_day": 2}, YES, "MHP-MP-0142.v2.C2"),
    (
        "T1-4",
        HMO,
        "A9276",
        "E10.9",
        "2024-02-01",
        {"diabetes_type": "type_1", "fingersticks_per_day": 1, "hypoglycemia_unawareness": True},
        YES,
        "MHP-MP-0142.v1.C2",
    ),
    (
        "T1-5",
        HMO,
        "A9276",
        "E11.9",
        "2024-05-01",
        {"diabetes_type": "gestational", "gestation_weeks": 24, "insulin_therapy": True},
        NO,
        "MHP-MP-0142.v1.C5",
    ),
    ("T2-1", GOLD, "J1745", "M05.79", "2024-09-01", {**RA, "csdmard_trial_months": 0}, YES, "MHP-RID-STEP-WAIVE.C1"),
    (
        "T2-2",
        HMO,
        "J1745",
        "M05.79",
        "2024-09-01",
        {**RA, "csdmard_trial_months": 0, "csdmard_contraindicated": False},
        NO,
        "MHP-MP-0210.v3.C2",
    ),
    (
        "T2-3",
        GOLD,
        "J0135",
        "M05.79",
        "2024-09-01",
        {"rheumatoid_arthritis": "suspected", "disease_severity": None, "csdmard_trial_months": 0},
        OPEN_CASE,
        "MHP-RID-STEP-WAIVE.C2",
    ),
    (
        "T2-4",
        GOLD,
        "A9276",
        "E10.9",
        "2025-04-01",
        {"diabetes_type": "type_1", "sensor_units_per_31_days": 36},
        YES,
        "MHP-RID-DME-EXPAND.C1",
    ),
    (
        "T3-1",
        HMO,
        "95250",
        "E11.65",
        "2024-10-01",
        {"diabetes_type": "type_2", "a1c_percent": 8.6, "professional_sessions_prior_12_months": 0},
        YES,
        "MHP-MP-0143.v1.C2",
    ),
    (
        "T3-2",
        HMO,
        "95250",
        "E11.9",
        "2024-10-01",
        {"diabetes_type": "type_2", "a1c_percent": 6.9},
        NO,
        "MHP-MP-0143.v1.C2",
    ),
    (
        "T4-1",
        EPO,
        "95806",
        "G47.33",
        "2024-06-01",
        {"osa_pretest_probability": "high", "congestive_heart_failure": True},
        NO,
        "CSM-MP-0331.v1.C2",
    ),
    (
        "T4-2",
        EPO,
        "95806",
        "G47.33",
        "2024-06-01",
        {
            "osa_pretest_probability": "high",
            "congestive_heart_failure": False,
            "copd": False,
            "neuromuscular_disease": False,
            "significant_comorbidity": False,
        },
        YES,
        "CSM-MP-0331.v1.C2",
    ),
    (
        "T4-3",
        EPO,
        "95806",
        "G47.33",
        "2025-06-01",
        {"osa": "suspected", "congestive_heart_failure": True, "attended_titration_required": False},
        YES,
        "CSM-MP-0331.v2.C2",
    ),
    (
        "T4-4",
        STD,
        "63030",
        "M54.16",
        "2024-11-01",
        {
            "radiculopathy_on_advanced_imaging": True,
            "conservative_therapy_weeks": 3,
            "progressive_neurologic_deficit": False,
            "cauda_equina_syndrome": False,
        },
        NO,
        "CSM-MP-0405.v2.C2",
    ),
    (
        "T4-5",
        STD,
        "63030",
        "M54.16",
        "2024-11-01",
        {
            "radiculopathy_on_advanced_imaging": True,
            "conservative_therapy_weeks": 0,
            "progressive_neurologic_deficit": True,
        },
        YES,
        "CSM-MP-0405.v2.C2",
    ),
    (
        "T5-1",
        HMO,
        "J1745",
        "M05.79",
        "2024-08-01",
        {**RA, "csdmard_trial_months": 4, "csdmard_response": "inadequate", "requester_relied_on_faq": True},
        ("COVERED", "REVIEW"),
        "MHP-MP-0210.v3.C2",
    ),
    ("T6-1", STD, "31241", None, "2024-08-01", {}, OPEN_CASE, None),
    (
        "T6-2",
        HMO,
        "95250",
        "E11.9",
        "2024-10-01",
        {"diabetes_type": "type_2", "a1c_percent": None},
        OPEN_CASE,
        "MHP-MP-0143.v1.C2",
    ),
    ("T6-3", STD, "0501T", None, "2024-08-01", {}, NO, "CSM-MP-0702.v4.C1"),
    (
        "T7-1",
        NBA,
        "70553",
        "R51.9",
        "2024-12-01",
        {
            "headache_pattern": "chronic",
            "papilledema": False,
            "focal_neurologic_deficit": False,
            "headache_wakes_from_sleep": False,
            "headache_onset_age": 32,
        },
        NO,
        "NBA-MP-0512.v1.C3",
    ),
)
# The last floor case: the payer is empty.
HALTED = {"payer_id": "", "plan_id": NBA, "procedure_codes": ["70553"], "as_of_date": "2024-12-01"}


def settings(home: Path, **variables: Any) -> Settings:
    """Settings of a home under the fitted embedder; variables by their names (CDA_FAULT="stale")."""
    return Settings(_env_file=None, **{"CDA_HOME": home, "CDA_EMBEDDER": "tfidf", **variables})


def open_system(home: Path, **variables: Any) -> CoverageSystem:
    """A system over `home`, which is built first when it is empty."""
    return CoverageSystem.open(settings(home, **variables), say=lambda _: None)


def request(
    plan: str | None = HMO,
    code: str | list[str] = "A9276",
    day: str = "2024-03-15",
    facts: Mapping[str, Any] | None = None,
    *,
    dx: str | None = "E10.9",
    **fields: Any,
) -> dict[str, Any]:
    """One request; the payer is the plan's own unless `fields` say otherwise."""
    raw: dict[str, Any] = {
        "payer_id": (plan or "MHP").split("-", maxsplit=1)[0],
        "procedure_codes": [code] if isinstance(code, str) else code,
        "diagnosis_codes": [dx] if dx else [],
        "as_of_date": day,
        "narrative": "",
        "question": "Is it covered?",
        "facts": dict(facts or {}),
    }
    return raw | ({"plan_id": plan} if plan else {}) | fields


def answer(result: Any) -> tuple[str, str]:
    """(outcome, gate); a halted run has no determination."""
    return result.determination.outcome.value if result.determination else "none", result.gate.state.value


def cited(result: Any) -> list[str]:
    """The clauses of the claims, in order, once each."""
    return list(dict.fromkeys(claim.citation.clause_id for claim in result.determination.claims))


# A service for which a rider asks for prior authorization.
AUTHORIZED: dict[str, Any] = request(
    STD,
    "95810",
    "2024-06-01",
    {"home_sleep_test_result": "negative", "osa_clinical_suspicion_remains": True},
    dx="G47.33",
)
