"""What is written about a requested code, whoever asks: who governs it, under which rules, from which facts.

Pure, and so worked out once for the same clauses: a run asks for the facts to read and then for the answer, and the
next run is often about the same code, day and plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from operator import is_

from cda.contracts.facts import FactDefinition
from cda.contracts.policy_tools import ClauseView
from cda.criteria.derive import Derivations
from cda.criteria.expression import facts_of
from cda.criteria.governing import Governing, governing
from cda.criteria.rules import LineRules, patched_rules


@dataclass(frozen=True, slots=True)
class Place:
    """What a line is asked for, the member aside."""

    code: str
    as_of: date
    plan_id: str | None
    payer_id: str


@dataclass(frozen=True, slots=True)
class Written:
    """What is written about a place, whoever asks: who governs, the patched rules, the facts that they and the routing
    clauses compare, and how those are derived."""

    place: Place
    clauses: tuple[ClauseView, ...]
    definitions: Mapping[str, FactDefinition]
    found: Governing
    rules: LineRules
    compared: frozenset[str]
    derivations: Derivations


_KEPT = 64
_WRITTEN: dict[tuple[Place, tuple[str, ...]], Written] = {}
"""The places of late, with the ids of the clauses at hand: a run asks for the facts to read and for the answer, and the
next run often about the same place."""


def written_of(clauses: Sequence[ClauseView], definitions: Mapping[str, FactDefinition], place: Place) -> Written:
    """What these clauses say of the place; as worked out before when they are the very same views in the same order."""
    key = (place, tuple(clause.clause_id for clause in clauses))
    known = _WRITTEN.get(key)
    if known is not None and known.definitions is definitions and all(map(is_, known.clauses, clauses)):
        return known
    found = governing(
        clauses,
        definitions,
        procedure_code=place.code,
        as_of=place.as_of,
        plan_id=place.plan_id,
        payer_id=place.payer_id,
    )
    rules = patched_rules(found, definitions)
    compared = frozenset(fact for rule in rules.rules for fact in rule.facts)
    compared |= {fact for _, when in found.routing for fact in facts_of(when)}
    derivations = Derivations(definitions, compared)
    if len(_WRITTEN) >= _KEPT:
        _WRITTEN.clear()
    written = _WRITTEN[key] = Written(place, tuple(clauses), definitions, found, rules, compared, derivations)
    return written
