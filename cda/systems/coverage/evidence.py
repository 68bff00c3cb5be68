"""Facts as the evidence of a claim, and back: what the verifier re-evaluates is exactly what the claim shows."""

from collections.abc import Iterable, Mapping

from cda.contracts.decision import FactEvidence
from cda.contracts.facts import Evidence, Fact, FactDefinition, FactState, value_from_json, value_to_json


def evidence_of(fact: Fact) -> tuple[FactEvidence, ...]:
    """A known fact as evidence: one entry a span, or a single one without a quote when it is structured or derived."""
    if fact.state is not FactState.KNOWN or fact.value is None:
        return ()
    value = value_to_json(fact.value)
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
        try:
            value = value_from_json(definitions[item.fact], item.value)
        except TypeError:
            raise ValueError(f"{item.fact} has a value of another type") from None
        known = facts.get(item.fact)
        if known is not None and known.value != value:
            raise ValueError(f"{item.fact} has two values")
        facts[item.fact] = Fact(item.fact, FactState.KNOWN, value, (Evidence(item.quote, item.start, item.end),))
    return facts
