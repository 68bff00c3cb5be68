"""The sentences of an answer: one for an outcome, one for a refusal, one for a conflict. No words of the chart."""

from collections.abc import Callable
from datetime import date

from cda.contracts.decision import Outcome
from cda.criteria.conflicts import SourceConflict
from cda.criteria.line import LineEvaluation
from cda.criteria.rules import Role
from cda.criteria.verdict import Reason


def _listed(items: list[str]) -> str:
    return ", ".join(items[:-1]) + (" and " if len(items) > 1 else "") + items[-1] if items else ""


def _missing(line: LineEvaluation) -> str:
    def state(fact: str) -> str:
        read = line.facts.get(fact)
        return "in doubt" if read is not None and read.why else "not stated"

    needs = [f"{item.label} ({item.fact}, {state(item.fact)}, needed by {item.clause_id})" for item in line.missing]
    return f"{line.procedure_code}: missing: {_listed(needs)}"


def _cited(line: LineEvaluation) -> str:
    return line.deciding[0].clause_id if line.deciding else "no clause"


REFUSALS: dict[Reason, Callable[[LineEvaluation], str]] = {
    Reason.MISSING_FACTS: _missing,
    Reason.NEEDS_DOCUMENTATION: lambda line: (
        f"{line.procedure_code}: more than {_cited(line)} allows without additional documentation; send the "
        "documentation of why it is needed"
    ),
    Reason.INDIVIDUAL_CONSIDERATION: lambda line: (
        f"{line.procedure_code}: {_cited(line)} leaves it to individual consideration, no standing criteria decide"
    ),
    Reason.OUT_OF_POPULATION: lambda line: f"{line.procedure_code}: {_cited(line)} does not reach this member",
    Reason.NO_COVERAGE_CRITERIA: lambda line: (
        f"{line.procedure_code}: the policy in effect states no criteria under which it is covered"
    ),
    Reason.CRITERIA_NOT_AUTHORED: lambda line: (
        f"{line.procedure_code}: {_cited(line)} governs it, but its criteria are not authored; a person must read it"
    ),
    Reason.NO_GOVERNING_POLICY: lambda line: f"{line.procedure_code}: no policy of this payer in effect governs it",
}

_VERDICTS: dict[Reason, str] = {
    Reason.CRITERIA_MET: "the criteria of {clause} are met",
    Reason.EXCLUDED: "{clause} excludes it",
    Reason.CRITERIA_NOT_MET: "the criteria of {clause} are not met",
    Reason.BEYOND_LIMIT: "it is beyond the limit of {clause}",
    Reason.REQUIREMENT_NOT_MET: "the requirement of {clause} is not met",
}


def headline(line: LineEvaluation, as_of: date) -> str:
    """One sentence: the code, the date, the outcome and the clause that decides."""
    if line.outcome is Outcome.INSUFFICIENT_EVIDENCE:
        return f"{REFUSALS[line.reason](line)} (as of {as_of})."
    words = "is covered" if line.outcome is Outcome.COVERED else "is not covered"
    return f"{line.procedure_code} {words} on {as_of}: {_verdict(line)}."


def _verdict(line: LineEvaluation) -> str:
    """Why: the clause that decides; where a rider comes first, the clause whose criteria it changes and the rider."""
    first = line.deciding[0]
    base = next((entry.clause_id for entry in line.deciding if entry.role is Role.COVERS), None)
    if first.role in (Role.WAIVES, Role.REPLACES_LIMIT, Role.ADDS) and base is not None:
        return f"{_VERDICTS[line.reason].format(clause=base)}, as changed by rider clause {first.clause_id}"
    return _VERDICTS[line.reason].format(clause=_cited(line))


def conflict_text(conflict: SourceConflict) -> str:
    """A conflict of sources in one sentence."""
    if conflict.kind == "routed_here":
        return f"{conflict.clause_id} sends this member to the requested service, whose own criteria are not met"
    against = _listed(list(conflict.contradicts))
    effect = "following it would change this answer" if conflict.would_change else "it does not change this answer"
    if conflict.settled_by_rider:
        effect = "a rider in effect settles the point"
    relied = "; the requester relied on it" if conflict.relied else ""
    return f"{conflict.clause_id} contradicts {against}: {effect}{relied}"
