"""The criteria reasoner: claims from evaluations, each tied to a part of its clause."""

from datetime import date
from typing import Any

import pytest
from coverage_world import EPO, GOLD, HMO, RA, T1, cited, request

from cda.criteria.rules import Role
from cda.systems.coverage.reasoner import ROOT_WORDS
from cda.systems.coverage.roots import ROOTS
from cda.systems.coverage.system import CoverageSystem

pytestmark = pytest.mark.promise("coverage.sound")


def claims(result: Any) -> list[tuple[str, str | None, str, str]]:
    return [(c.citation.clause_id, c.criterion, c.status, c.text) for c in result.determination.claims]


def test_a_clause_stands_as_a_whole_and_then_by_each_of_its_leaves(system: CoverageSystem) -> None:
    result = system.ask(request(HMO, "A9276", "2024-03-15", {**T1, "fingersticks_per_day": 2}))
    assert claims(result) == [
        ("MHP-MP-0142.v1.C2", "covers_if", "not_met", "coverage criteria: not met"),
        ("MHP-MP-0142.v1.C2", "covers_if.all.0", "met", "type of diabetes is type 1: met"),
        ("MHP-MP-0142.v1.C2", "covers_if.all.1", "not_met", "fingerstick glucose checks a day at least 4: not met"),
        ("MHP-MP-0142.v1.C2", "unless.when", "not_met", "hypoglycemia unawareness: yes: not met"),
    ]
    evidence = {piece.fact: piece.value for piece in result.determination.claims[0].evidence}
    assert evidence == {"diabetes_type": "type_1", "fingersticks_per_day": 2, "hypoglycemia_unawareness": False}


def test_a_clause_that_counts_only_by_a_rider_leaves_the_whole_to_the_rider(system: CoverageSystem) -> None:
    result = system.ask(request(GOLD, "J1745", "2024-09-01", {**RA, "csdmard_trial_months": 0}, dx="M05.79"))
    assert claims(result)[0] == ("MHP-RID-STEP-WAIVE.C1", "patch", "met", "waiver by the rider: met")
    assert ("MHP-MP-0210.v3.C2", "covers_if.all.2.all.0", "not_met") in [c[:3] for c in claims(result)]
    assert "covers_if" not in [path for _, path, *_ in claims(result)]
    assert result.determination.summary == (
        "J1745 is covered on 2024-09-01: the criteria of MHP-MP-0210.v3.C2 are met, "
        "as changed by rider clause MHP-RID-STEP-WAIVE.C1."
    )


def test_a_derived_fact_brings_what_it_follows_from(system: CoverageSystem) -> None:
    facts = {"osa_pretest_probability": "high", "congestive_heart_failure": True}
    result = system.ask(request(EPO, "95806", "2024-06-01", facts, dx="G47.33"))
    leaf = next(c for c in result.determination.claims if c.text.startswith("significant comorbidity"))
    assert {piece.fact: piece.value for piece in leaf.evidence} == {
        "significant_comorbidity": True,
        "congestive_heart_failure": True,
    }


def test_two_codes_of_one_policy_share_their_claims(system: CoverageSystem) -> None:
    facts = {**T1, "fingersticks_per_day": 5}
    one = system.ask(request(HMO, "A9276", "2024-03-15", facts))
    two = system.ask(request(HMO, ["A9276", "95249"], "2024-03-15", facts))
    assert claims(two) == claims(one)
    assert len(two.lines) == 2


def test_what_is_open_keeps_a_replaced_limit_in_sight(system: CoverageSystem) -> None:
    facts = {**T1, "fingersticks_per_day": 5, "sensor_units_per_31_days": {"lo": 20}}
    result = system.ask(request(GOLD, "A9276", "2024-03-15", facts))
    assert cited(result)[:1] == ["MHP-RID-DME-EXPAND.C1"]
    assert "MHP-MP-0142.v1.C4" in cited(result)
    assert all(check.passed for check in result.verification.checks)


def test_every_role_has_its_words_and_its_part_of_a_criterion() -> None:
    assert set(ROOT_WORDS) == set(ROOTS) == set(Role)


def test_no_claim_or_summary_holds_words_of_the_chart(system: CoverageSystem) -> None:
    said = "Type 1 diabetes mellitus, quixotic zebra. Fingersticks 5 times a day."
    result = system.ask(request(HMO, "A9276", "2024-03-15", narrative=said), versus=date(2025, 1, 20))
    told = [result.determination.summary, *result.gate.reasons, *(d.text for d in result.versus.differences)]
    told += [claim.text for claim in result.determination.claims]
    assert not any("zebra" in words or "mellitus" in words for words in told)
