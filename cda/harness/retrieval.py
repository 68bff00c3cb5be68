"""Gathering the clauses of a case: plan, retrieve, grade, and again with the named gap, at most a few times.

What must be in hand is known beforehand: every clause of every policy version that governs a requested code on the day,
and of every rider of the plan. Search adds to that and never takes away, so a poor ranking cannot lose a clause.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from cda.contracts.policy_tools import ClauseView, PolicyTools
from cda.errors import PolicyToolError
from cda.harness.reasoner import Case

_QUESTION_CHARS = 120
_RIDER = "plan_rider"


class Grade(StrEnum):
    """What a clause is for this case (see `Gathered.usable` for what reaches the reasoner)."""

    RELEVANT = "RELEVANT"
    UNAUTHORED = "UNAUTHORED"
    STALE = "STALE"
    UNDATED = "UNDATED"
    OTHER_CODE = "OTHER_CODE"
    OTHER_PLAN = "OTHER_PLAN"
    OTHER_PAYER = "OTHER_PAYER"


@dataclass(slots=True)
class Gathered:
    """All clauses in hand, by id, their grades, the rounds it took, and what is still missing (None: nothing)."""

    clauses: dict[str, ClauseView] = field(default_factory=dict)
    grades: dict[str, Grade] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    iterations: int = 0
    gap: str | None = None
    dropped: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def usable(self) -> tuple[ClauseView, ...]:
        """The clauses a reasoner may use, sorted by id: what names a requested code, and the rest of the versions that
        govern one, which may route members to it. A ranking adds none that do not name a code."""
        fit = (Grade.RELEVANT, Grade.UNAUTHORED)
        return tuple(
            self.clauses[name]
            for name in sorted(self.clauses)
            if self.grades[name] in fit or (self.grades[name] is Grade.OTHER_CODE and name in self.needed)
        )


def plan_queries(case: Case, question: str, gap: str | None = None) -> tuple[str, ...]:
    """Three sub-queries a code: criteria, exclusions and limits, riders; a named gap adds one. Nothing of the chart."""
    asked = " ".join(question.split())[:_QUESTION_CHARS]
    queries = [
        query
        for code in case.codes
        for query in (
            f"{code} coverage criteria medical necessity {asked}".strip(),
            f"{code} exclusions limitations quantity and frequency limits",
            f"{code} plan rider waives or changes a requirement, prior authorization",
        )
    ]
    return (*queries, *((gap,) if gap else ()))


def gather(
    case: Case,
    tools: PolicyTools,
    *,
    question: str,
    max_iterations: int,
    k: int,
    checkpoint: Callable[[], None],
) -> Gathered:
    """Collect until nothing that must be in hand is missing, or the rounds are used up. Raises what the tools raise."""
    found = Gathered()
    while found.iterations < max_iterations:
        found.iterations += 1
        checkpoint()
        found.needed = tuple(_needed(case, tools, found))
        checkpoint()
        _search(case, tools, plan_queries(case, question, found.gap), k, found)
        missing = _fetch(found.needed, tools, found, checkpoint)
        found.grades = {name: grade(clause, case) for name, clause in found.clauses.items()}
        found.gap = f"clauses that the corpus lists could not be read: {', '.join(missing)}" if missing else None
        if found.gap is None:
            break
    return found


def grade(clause: ClauseView, case: Case) -> Grade:
    """What one clause is for this case."""
    if clause.payer_id != case.request.payer_id:
        return Grade.OTHER_PAYER
    if clause.plan_id is not None and (case.plan is None or clause.plan_id != case.plan.plan_id):
        return Grade.OTHER_PLAN
    if clause.date_state != "DATED":
        return Grade.UNDATED
    if not clause.in_effect(case.as_of):
        return Grade.STALE
    if not set(clause.codes) & set(case.codes):
        return Grade.OTHER_CODE
    return Grade.UNAUTHORED if clause.criterion is None else Grade.RELEVANT


def _needed(case: Case, tools: PolicyTools, found: Gathered) -> list[str]:
    needed: dict[str, None] = {}
    for code in case.codes:
        try:
            view = tools.lookup_code(code, payer_id=case.request.payer_id, as_of=case.as_of)
        except PolicyToolError as error:
            if error.code != "code_not_found":
                raise
            continue
        for version in view.governed_by:
            if version.doc_type == _RIDER:
                continue  # a rider names the code too, of whichever plan it is: the plan's own are asked for below
            if version.date_state == "DATED":
                needed |= dict.fromkeys(version.version_clause_ids or version.clause_ids)
            else:
                note = f"note: {version.policy_id} {version.version} is {version.date_state} and decides nothing"
                found.notes += [note] if note not in found.notes else []
    if case.plan is not None:
        for rider in tools.get_plan_riders(case.plan.plan_id, as_of=case.as_of):
            needed |= dict.fromkeys(rider.clause_ids)
    return list(needed)


def _search(case: Case, tools: PolicyTools, queries: Sequence[str], k: int, found: Gathered) -> None:
    answers = tools.search_policies(
        queries,
        payer_id=case.request.payer_id,
        plan_id=case.plan.plan_id if case.plan else None,
        as_of=case.as_of,
        codes=case.codes,
        k=k,
    )
    found.dropped += sum(answer.dropped for answer in answers)
    found.clauses |= {hit.clause.clause_id: hit.clause for answer in answers for hit in answer.hits}


def _fetch(needed: Iterable[str], tools: PolicyTools, found: Gathered, checkpoint: Callable[[], None]) -> list[str]:
    missing: list[str] = []
    for clause_id in needed:
        if clause_id in found.clauses:
            continue
        checkpoint()
        try:
            found.clauses[clause_id] = tools.get_clause_by_id(clause_id)
        except PolicyToolError as error:
            if error.code != "clause_not_found":
                raise
            missing.append(clause_id)
    return sorted(missing)


def counts(grades: Mapping[str, Grade]) -> dict[str, int]:
    """How many clauses have each grade, for the trace."""
    return {kind.value: number for kind in Grade if (number := sum(g is kind for g in grades.values()))}
