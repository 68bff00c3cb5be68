"""Faults that only show across clauses: a rider that waives what no clause has would change nothing, and say nothing.

Every reference of a criterion must lead somewhere: the policy a patch names, the requirement it waives, the limit it
replaces, the clauses a statement contradicts.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from cda.contracts.facts import FactDefinition
from cda.criteria.criterion import (
    AddDuty,
    AddNode,
    Covers,
    Criterion,
    Limit,
    Patch,
    ReplaceLimit,
    Requirement,
    Statement,
    Waive,
    parse_criterion,
    validate_criterion,
)
from cda.criteria.expression import names


class Authored(Protocol):
    """What of a clause the check reads; the corpus's own clauses and the tools' views both fit."""

    @property
    def clause_id(self) -> str:
        """The full id."""
        ...

    @property
    def policy_id(self) -> str:
        """The policy or rider."""
        ...

    @property
    def source(self) -> str:
        """policy or rider."""
        ...

    @property
    def overrides_policy_ids(self) -> tuple[str, ...]:
        """The policies a rider is over."""
        ...

    @property
    def criterion(self) -> Mapping[str, Any] | None:
        """The criterion as data."""
        ...


def validate_references(
    clauses: Sequence[Authored], definitions: Mapping[str, FactDefinition]
) -> list[tuple[str, str]]:
    """Return (clause id, fault) for every reference that leads nowhere, by clause id. Clauses whose own criterion has
    faults (`validate_criterion`) are left out."""
    read = {
        clause.clause_id: (clause, parse_criterion(clause.criterion, definitions, clause.clause_id))
        for clause in clauses
        if clause.criterion is not None and not validate_criterion(clause.criterion, definitions)
    }
    known = frozenset(clause.clause_id for clause in clauses)
    return [
        (clause_id, fault)
        for clause_id in sorted(read)
        for fault in _faults(*read[clause_id], list(read.values()), known)
    ]


def _faults(
    clause: Authored, criterion: Criterion, others: Sequence[tuple[Authored, Criterion]], known: frozenset[str]
) -> Iterator[str]:
    match criterion:
        case Waive() | ReplaceLimit() | AddNode() | AddDuty():
            if clause.source != "rider":
                yield "a patch stands in a rider, not in a policy"
            elif criterion.of not in clause.overrides_policy_ids:
                yield f"patches {criterion.of}, which the rider does not override"
            else:
                yield from _patch_faults(criterion, [c for o, c in others if o.policy_id == criterion.of])
        case Statement(contradicts=contradicts):
            for other in contradicts:
                if other not in known:
                    yield f"contradicts {other}, which is no clause of the corpus"
        case _:
            if clause.source == "rider":
                yield "a rider clause patches or states; give its criterion that form"


def _patch_faults(patch: Patch, base: Sequence[Criterion]) -> Iterator[str]:
    if isinstance(patch, Waive):
        waivable: set[str] = set()
        for criterion in base:
            waivable |= _waivable(criterion)
        if patch.name not in waivable:
            yield f"waives {patch.name!r}, which no clause of {patch.of} requires; it has {', '.join(sorted(waivable))}"
    if isinstance(patch, ReplaceLimit):
        limits = {criterion.leaf.fact for criterion in base if isinstance(criterion, Limit)}
        if patch.fact not in limits:
            yield f"replaces the limit on {patch.fact}, which {patch.of} does not have"


def _waivable(criterion: Criterion) -> frozenset[str]:
    match criterion:
        case Covers(when=when):
            return names(when)
        case Requirement(requires=requires):
            return names(requires)
        case Limit(leaf=leaf):
            return names(leaf)
        case _:
            return frozenset()
