"""Which clauses govern one requested code: the filter by effect, payer, plan, code and authority.

The caller's clauses are never trusted: whatever was handed in, only a clause that is in effect on the date, of this
payer, naming this code, and (a rider) of this plan and over a policy that governs the code, comes out.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from cda.contracts.facts import FactDefinition
from cda.contracts.policy_tools import ClauseView
from cda.criteria.criterion import Covers, Criterion, Patch, Routes, Statement, parse_criterion
from cda.criteria.expression import Expression
from cda.errors import CriterionError
from corpus.model import DocType

_BULLETIN_AUTHORITY = DocType.BULLETIN.authority


@dataclass(frozen=True, slots=True)
class Governing:
    """The clauses that govern a line, each with its criterion, ordered by clause id.

    bulletins: bulletins and national or local determinations. riders: patches, and statements of riders.
    lower: FAQs and articles, which never decide. unauthored: bulletin clauses without a criterion.
    routing: clauses of other services whose UNLESS routes members to this code, each with when it does.
    """

    bulletins: tuple[tuple[ClauseView, Criterion], ...]
    riders: tuple[tuple[ClauseView, Patch | Statement], ...]
    lower: tuple[tuple[ClauseView, Statement], ...]
    unauthored: tuple[ClauseView, ...]
    routing: tuple[tuple[ClauseView, Expression], ...]


def governing(
    clauses: Sequence[ClauseView],
    definitions: Mapping[str, FactDefinition],
    *,
    procedure_code: str,
    as_of: date,
    plan_id: str | None,
    payer_id: str,
) -> Governing:
    """Return what governs `procedure_code`. Raises CriterionError for a criterion that is not in the language, and
    ValueError for a document type that the corpus does not know."""
    in_force = [clause for clause in clauses if clause.payer_id == payer_id and clause.in_effect(as_of)]
    ours = _in_order(clause for clause in in_force if procedure_code in clause.codes)
    bulletins = [clause for clause in ours if _is_bulletin(clause)]
    policies = {clause.policy_id for clause in bulletins}
    routing = _in_order(c for c in in_force if _routes_to(c, procedure_code) and _is_bulletin(c) and c not in ours)
    return Governing(
        bulletins=tuple((c, _read(c, definitions)) for c in bulletins if c.criterion is not None),
        riders=tuple(
            (clause, _rider_criterion(clause, definitions))
            for clause in ours
            if _rides(clause, plan_id, policies) and clause.criterion is not None
        ),
        lower=tuple(
            (clause, criterion)
            for clause in ours
            if clause.source == "policy" and not _is_bulletin(clause) and clause.criterion is not None
            if isinstance(criterion := _read(clause, definitions), Statement)
        ),
        unauthored=tuple(clause for clause in bulletins if clause.criterion is None),
        routing=tuple(
            (clause, criterion.unless.when)
            for clause in routing
            if isinstance(criterion := _read(clause, definitions), Covers) and isinstance(criterion.unless, Routes)
        ),
    )


def _is_bulletin(clause: ClauseView) -> bool:
    return clause.source == "policy" and DocType(clause.doc_type).authority == _BULLETIN_AUTHORITY


def _rides(clause: ClauseView, plan_id: str | None, policies: set[str]) -> bool:
    own_plan = clause.source == "rider" and plan_id is not None and clause.plan_id == plan_id
    return own_plan and not policies.isdisjoint(clause.overrides_policy_ids)


def _routes_to(clause: ClauseView, code: str) -> bool:
    # A look at the data, so that of all clauses only those that route here are parsed.
    unless = (clause.criterion or {}).get("unless")
    return isinstance(unless, Mapping) and unless.get("to") == code


def _rider_criterion(clause: ClauseView, definitions: Mapping[str, FactDefinition]) -> Patch | Statement:
    criterion = _read(clause, definitions)
    if not isinstance(criterion, Patch | Statement):
        raise CriterionError(f"{clause.clause_id}: a rider clause patches or states; give its criterion that form")
    return criterion


def _read(clause: ClauseView, definitions: Mapping[str, FactDefinition]) -> Criterion:
    return parse_criterion(clause.criterion or {}, definitions, clause.clause_id)


def _in_order(clauses: Iterable[ClauseView]) -> list[ClauseView]:
    """One of each id, C2 before C10."""
    by_id = {clause.clause_id: clause for clause in clauses}
    return [by_id[clause_id] for clause_id in sorted(by_id, key=clause_order)]


@lru_cache(maxsize=4096)
def clause_order(clause_id: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key of clause ids that counts numbers as numbers."""
    parts = re.findall(r"\d+|\D+", clause_id)
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)
