"""A law over the shipped criteria: what the reasoner decides, the cold verifier confirms, whatever the facts."""

from typing import Any

import pytest
from coverage_world import EPO, GOLD, HMO, NBA, STD, request
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cda.contracts.facts import QUANTITIES, FactDefinition, FactType
from cda.systems.coverage.system import CoverageSystem

pytestmark = pytest.mark.promise("coverage.sound")

CODES = {
    HMO: ("A9276", "95249", "95250", "J1745", "J0135"),
    GOLD: ("A9276", "95249", "J1745", "J0135"),
    STD: ("63030", "22551", "95810", "0501T", "E1399"),
    EPO: ("95806", "95810"),
    NBA: ("70553", "77067"),
    "CMS-MEDICARE": ("97810", "48554", "91034", "E0194"),
}
DAYS = ("2010-05-01", "2023-05-01", "2024-03-15", "2024-08-01", "2025-06-01")
DIAGNOSES = ("E10.9", "E11.65", "M05.79", "K50.90", "G47.33", "M54.16", "R51.9", "M79.7")
# Doubts that structured facts alone cannot raise, so that one of them is a fault of reasoner, judge or verifier.
FAULTS = ("check_failed", "error", "lines", "no_gap", "no_claims", "confidence", "iterations_exhausted")
NUMBERS = st.sampled_from([0, 1, 2, 3, 4, 6, 8.5, 12, 20, 31, 40, 41, 65])


def values(definition: FactDefinition) -> st.SearchStrategy[Any]:
    if definition.type in QUANTITIES:
        ranges = st.tuples(NUMBERS, NUMBERS).map(lambda pair: {"lo": min(pair), "hi": max(pair)})
        return NUMBERS | NUMBERS.map(lambda low: {"lo": low}) | NUMBERS.map(lambda high: {"hi": high}) | ranges
    if definition.type is FactType.BOOL:
        return st.booleans()
    if definition.type is FactType.DATE:
        return st.sampled_from(["1950-01-15", "2005-02-28", "2024-01-01"])
    return st.sampled_from(definition.values)


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_what_is_decided_from_facts_passes_its_own_verification(system: CoverageSystem, data: st.DataObject) -> None:
    plan = data.draw(st.sampled_from(sorted(CODES)))
    codes = data.draw(st.lists(st.sampled_from(CODES[plan]), min_size=1, max_size=2, unique=True))
    day = data.draw(st.sampled_from(DAYS))
    diagnoses = data.draw(st.lists(st.sampled_from(DIAGNOSES), max_size=2, unique=True))
    bare = request(plan, codes, day, diagnosis_codes=diagnoses)
    wanted = {missing.fact for missing in system.ask(bare).determination.missing_facts}
    named = sorted(name for name in wanted | set(_told(system, bare)) if name in system.definitions)
    facts = {name: data.draw(values(system.definitions[name])) for name in named if data.draw(st.booleans())}
    result = system.ask(bare | {"facts": facts})
    assert [reason for reason in result.gate.reasons if reason.split(":")[0] in FAULTS] == []
    determination = result.determination
    if determination.outcome == "INSUFFICIENT_EVIDENCE":
        assert determination.gap
        assert result.gate.state in ("REFUSE", "REVIEW")
    if "; " not in (determination.gap or "") and " missing: " in (determination.gap or ""):
        assert all(missing.fact in determination.gap for missing in determination.missing_facts)


def _told(system: CoverageSystem, raw: dict[str, Any]) -> set[str]:
    """The facts that the claims of an answer without any facts speak of."""
    told = system.ask(raw).determination
    return {name for flip in told.would_change for name in flip.facts} | {
        name
        for claim in told.claims
        for name, definition in system.definitions.items()
        if claim.text.startswith(definition.label)
    }
