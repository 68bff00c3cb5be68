"""Facts that follow from other facts, by the rules in their definitions.

A rule fires when its condition is MET by facts alone, never by a presumption. What was stated stands; a derived value
that contradicts it, or another derived value, makes a CONFLICT, and nothing follows from a fact in conflict. The result
is a function of the stated facts: deriving twice changes nothing, and the order of definitions does not matter.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from cda.contracts.facts import Evidence, Fact, FactDefinition, FactState, Value
from cda.criteria.compare import contradict, typed_value
from cda.criteria.evaluate import Context, evaluate, truth_of
from cda.criteria.expression import Expression, facts_of
from cda.criteria.parse import ExpressionReader
from cda.criteria.truth import Truth
from cda.errors import CriterionError


@dataclass(frozen=True, slots=True)
class _Derivation:
    name: str
    when: Expression
    value: Value | None
    source: str | None = None  # the fact whose value it takes; what was stated then stands


class Derivations:
    """The derivation rules that bear on some facts, parsed once. Raises CriterionError for a rule that is not in the
    expression language."""

    def __init__(self, definitions: Mapping[str, FactDefinition], names: Iterable[str]) -> None:
        self.definitions = definitions
        rules: list[_Derivation] = []
        self._sources: set[str] = set()
        waiting, seen = deque(sorted(names)), set[str]()
        while waiting:
            name = waiting.popleft()
            if name in seen or name not in definitions:
                continue
            seen.add(name)
            for rule in parse_derivations(definitions[name], definitions):
                rules.append(rule)
                used = facts_of(rule.when) | ({rule.source} if rule.source else set())
                self._sources |= {*used, name}
                waiting.extend(sorted(used))
        # Presumptions belong to criteria: a rule must not turn one into a derived fact.
        self._plain = {name: replace(definitions[name], presume=None) for name in sorted(self._sources)}
        # A rule that silence does not meet waits for one of its facts, and most facts are silent most of the time.
        silence = Context({}, self._plain, (), date.min)
        self._waiting = [
            (rule, frozenset[str]() if truth_of(rule.when, silence) is Truth.MET else facts_of(rule.when))
            for rule in rules
        ]

    @property
    def facts(self) -> frozenset[str]:
        """Every fact that takes part in a rule."""
        return frozenset(self._sources)

    def apply(self, facts: Mapping[str, Fact], as_of: date) -> dict[str, Fact]:
        """Return the facts with everything that follows from the stated ones."""
        stated = {name: fact for name, fact in facts.items() if not is_derived(fact)}
        current = dict(stated)
        while found := self._following(current, as_of):
            conflicts = {name: fact for name, fact in found.items() if fact.state is FactState.CONFLICT}
            # Nothing follows from what is contradicted, so what was derived so far is derived again without it.
            stated |= conflicts
            current = dict(stated) if conflicts else current | found
        return current

    def _following(self, facts: Mapping[str, Fact], as_of: date) -> dict[str, Fact]:
        """The facts that one round of all rules changes."""
        context = Context(facts, self._plain, (), as_of)
        found: dict[str, Fact] = {}
        for rule, waits_for in self._waiting:
            if waits_for and waits_for.isdisjoint(facts):
                continue
            if truth_of(rule.when, context) is Truth.MET:
                before = found.get(rule.name, facts.get(rule.name))
                if (value := _value_of(rule, before, facts)) is not None:
                    found[rule.name] = self._settle(rule, value, before, context)
        return {name: fact for name, fact in found.items() if facts.get(name) != fact}

    def _settle(self, rule: _Derivation, value: Value, before: Fact | None, context: Context) -> Fact:
        if before is not None and before.state is FactState.CONFLICT:
            return before
        if before is None or before.value is None:
            return Fact(rule.name, FactState.KNOWN, value, _evidence(rule, context))
        definition = self.definitions[rule.name]
        if not contradict(definition.type, before.value, value):
            return before
        why = f"{definition.label} was stated otherwise than what follows from: {rule.when.label}"
        evidence = (*before.evidence, *_evidence(rule, context))
        return Fact(rule.name, FactState.CONFLICT, None, evidence, why)


def derive_facts(
    facts: Mapping[str, Fact],
    definitions: Mapping[str, FactDefinition],
    as_of: date,
    names: Collection[str] | None = None,
) -> dict[str, Fact]:
    """Return `facts` with all that follows from them, for `names` and what they rest on (all definitions by default).

    A derived fact carries the evidence of the facts it follows from, with source "derived".
    """
    return Derivations(definitions, definitions if names is None else names).apply(facts, as_of)


def is_derived(fact: Fact) -> bool:
    """True when the fact was put there by a derivation rule. A conflict counts as stated: it is not derived away."""
    return (
        fact.state is FactState.KNOWN
        and bool(fact.evidence)
        and all(evidence.source == "derived" for evidence in fact.evidence)
    )


def parse_derivations(definition: FactDefinition, definitions: Mapping[str, FactDefinition]) -> tuple[_Derivation, ...]:
    """The definition's derivation rules. Raises CriterionError that lists every fault."""
    rules, faults = _read(definition, definitions)
    if faults:
        raise CriterionError(f"fact {definition.name}: {'; '.join(faults)}; correct its definition")
    return rules


def validate_definition(definition: FactDefinition, definitions: Mapping[str, FactDefinition]) -> list[str]:
    """Return every fault of a definition's presumption and derivation rules, one sentence each."""
    faults = _read(definition, definitions)[1]
    if definition.presume is not None:
        try:
            typed_value(definition, definition.presume)
        except (CriterionError, ValueError):
            faults.append(f"presume: {definition.presume!r} is no value of a {definition.type} fact")
    return faults


def _read(
    definition: FactDefinition, definitions: Mapping[str, FactDefinition]
) -> tuple[tuple[_Derivation, ...], list[str]]:
    reader = ExpressionReader(definitions)
    rules: list[_Derivation] = []
    for place, data in enumerate(definition.derive):
        path = f"derive.{place}"
        reader.only(data, {"when", "value"}, path)
        when = reader.read(data.get("when"), f"{path}.when")
        raw = data.get("value")
        if isinstance(raw, Mapping):
            if source := _source(definition, raw, f"{path}.value", reader):
                rules.append(_Derivation(definition.name, when, None, source))
        elif (value := _value(definition, raw, f"{path}.value", reader)) is not None:
            rules.append(_Derivation(definition.name, when, value))
    return tuple(rules), reader.faults


def _value(definition: FactDefinition, raw: Any, path: str, reader: ExpressionReader) -> Value | None:
    read = reader.value(definition, raw, path)
    return None if read is None else typed_value(definition, read)


def _source(definition: FactDefinition, raw: Mapping[str, Any], path: str, reader: ExpressionReader) -> str | None:
    """The fact named by `value: {fact: NAME}`: another one of the same type and unit."""
    reader.only(raw, {"fact"}, path)
    source = reader.definitions.get(str(raw.get("fact")))
    if source is None or source.name == definition.name:
        reader.fault(path, f"{raw.get('fact')!r} is no other fact")
    elif (source.type, source.unit) != (definition.type, definition.unit):
        reader.fault(path, f"fact {source.name} is not of the type and unit of {definition.name}")
    else:
        return source.name
    return None


def _value_of(rule: _Derivation, before: Fact | None, facts: Mapping[str, Fact]) -> Value | None:
    """The value a rule gives; one that takes another fact's value gives none when its own fact is known already."""
    if rule.source is None:
        return rule.value
    source = facts.get(rule.source)
    if source is None or (before is not None and before.state is not FactState.UNKNOWN):
        return None
    return source.value


def _evidence(rule: _Derivation, context: Context) -> tuple[Evidence, ...]:
    """The evidence of the facts whose comparison holds; of all that were compared when the rule holds by a `not`."""
    facts = context.facts
    leaves = [leaf for leaf in evaluate(rule.when, context).walk() if leaf.fact in facts]
    used = [leaf for leaf in leaves if leaf.truth is Truth.MET] or leaves
    spans = [replace(e, source="derived") for leaf in used if leaf.fact for e in facts[leaf.fact].evidence]
    if rule.source:
        spans += [replace(e, source="derived") for e in facts[rule.source].evidence]
    return tuple(dict.fromkeys(spans)) or (Evidence("", source="derived"),)
