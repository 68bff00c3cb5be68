"""Facts as the evidence of a claim, and back: what the verifier re-evaluates is exactly what the claim shows."""

from collections.abc import Iterable, Mapping
from datetime import date
from math import inf, isfinite
from typing import Any

from cda.contracts.decision import FactEvidence
from cda.contracts.facts import QUANTITIES, Evidence, Fact, FactDefinition, FactState, FactType, Interval, Value


def to_json(value: Value) -> Any:
    """A value as JSON: a number for an exact quantity, else {"lo", "hi", "lo_open", "hi_open"} with what is bounded."""
    if isinstance(value, date):
        return value.isoformat()
    if not isinstance(value, Interval):
        return value
    if value.lo == value.hi:
        return value.lo
    ends: dict[str, Any] = {}
    for name, end, is_open in (("lo", value.lo, value.lo_open), ("hi", value.hi, value.hi_open)):
        if isfinite(end):
            ends[name] = end
            if is_open:
                ends[f"{name}_open"] = True
    return ends


def from_json(definition: FactDefinition, raw: Any) -> Value:
    """The inverse of `to_json` for a fact's type. Raises ValueError for anything else."""
    if definition.type is FactType.DATE:
        return date.fromisoformat(raw)
    if definition.type not in QUANTITIES:
        expected = bool if definition.type is FactType.BOOL else str
        if not isinstance(raw, expected):
            raise ValueError(f"{definition.name} is a {definition.type}")
        return raw
    if isinstance(raw, Mapping):
        return Interval(
            float(raw.get("lo", -inf)), float(raw.get("hi", inf)), bool(raw.get("lo_open")), bool(raw.get("hi_open"))
        )
    return Interval.exactly(float(raw))


def evidence_of(fact: Fact) -> tuple[FactEvidence, ...]:
    """A known fact as evidence: one entry a span, or a single one without a quote when it is structured or derived."""
    if fact.state is not FactState.KNOWN or fact.value is None:
        return ()
    value = to_json(fact.value)
    spans = [found for found in fact.evidence if found.quote]
    if not spans:
        return (FactEvidence(fact=fact.name, value=value),)
    return tuple(
        FactEvidence(fact=fact.name, value=value, quote=found.quote, start=found.start, end=found.end)
        for found in spans
    )


def facts_from(evidence: Iterable[FactEvidence], definitions: Mapping[str, FactDefinition]) -> dict[str, Fact]:
    """The facts that evidence states, by name. Raises ValueError for an undefined name, a wrong type, or two values."""
    facts: dict[str, Fact] = {}
    for item in evidence:
        if item.fact not in definitions:
            raise ValueError(f"{item.fact} is no defined fact")
        value = from_json(definitions[item.fact], item.value)
        known = facts.get(item.fact)
        if known is not None and known.value != value:
            raise ValueError(f"{item.fact} has two values")
        facts[item.fact] = Fact(item.fact, FactState.KNOWN, value, (Evidence(item.quote, item.start, item.end),))
    return facts
