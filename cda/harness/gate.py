"""The gate: what may be done with an answer. A pure function of the answer, its verification and what the run met.

A reason is "kind: words". What doubts the answer itself sends even a refusal to REVIEW; what only stands against
issuing a settled answer unseen (`ISSUES`) leaves a refusal a refusal; a note changes nothing. A kind that is not known
here is a doubt. Every reason is given, not only the first.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from cda.contracts.decision import (
    CONSERVATIVE_GATES,
    CONSERVATIVE_OUTCOMES,
    Check,
    Determination,
    Gate,
    GateState,
    Line,
    NotedConflict,
    Outcome,
    Verification,
)
from cda.harness.reasoner import LineReasoned

# The original's threshold.
CONFIDENCE_FLOOR = 0.70
ISSUES: frozenset[str] = frozenset({"source_conflict", "relied_on_lower_source", "adverse", "no_plan", "trace"})


@dataclass(frozen=True, slots=True)
class Findings:
    """What the gate weighs. `run_reasons`: what the loop met (budget, error, exhausted iterations, fenced facts ...).

    unknown_codes: label and reason of the requested codes that are no known codes, whose lines are HALT.
    """

    determination: Determination | None
    verification: Verification
    lines: Sequence[LineReasoned]
    order: Sequence[str]
    unknown_codes: Sequence[tuple[str, str]] = ()
    run_reasons: Sequence[str] = ()
    notes: Sequence[str] = ()
    adverse_to_review: bool = False


def kind_of(reason: str) -> str:
    """The kind of a reason: what stands before its first colon."""
    return reason.split(":", 1)[0]


def decide(found: Findings, *, confidence_floor: float = CONFIDENCE_FLOOR) -> tuple[Gate, tuple[Line, ...]]:
    """The gate of the whole and of each line, in the order of the request. The whole takes the most conservative."""
    shared = list(_shared(found, confidence_floor))
    lines = {line.code: _line(line, shared, found) for line in found.lines}
    halted = {label: _halted(label, reason) for label, reason in found.unknown_codes}
    ordered = tuple(halted.get(code) or lines.get(code) or _missing(code, shared) for code in found.order)
    states = [line.gate for line in ordered] or [GateState.REVIEW]
    state = most_conservative(states)
    reasons = [*shared, *(reason for line in ordered for reason in line.reasons), *found.notes]
    return Gate(state=state, reasons=tuple(dict.fromkeys(reasons))), ordered


def most_conservative(states: Iterable[GateState]) -> GateState:
    """HALT, REFUSE, REVIEW, DETERMINE: the first of them that occurs."""
    return min(states, key=CONSERVATIVE_GATES.index)


def whole_outcome(outcomes: Iterable[Outcome]) -> Outcome:
    """INSUFFICIENT_EVIDENCE, NOT_COVERED, COVERED: the first of them that occurs."""
    return min(outcomes, key=CONSERVATIVE_OUTCOMES.index)


def _shared(found: Findings, floor: float) -> Iterator[str]:
    for reasons in SHARED.values():
        yield from reasons(found, floor)


def _run(found: Findings, _floor: float) -> Iterator[str]:
    yield from found.run_reasons


def _no_determination(found: Findings, _floor: float) -> Iterator[str]:
    if found.determination is None:
        yield "no_determination: no answer was reached"


def _check_failed(found: Findings, _floor: float) -> Iterator[str]:
    answer = found.determination
    if answer is None:
        return
    yield from (_failed(check) for check in found.verification.checks if not check.passed)
    if len(found.verification.checks) != len(answer.claims):
        yield "check_failed: not every claim was checked"


def _no_claims(found: Findings, _floor: float) -> Iterator[str]:
    answer = found.determination
    if answer and not answer.claims and answer.outcome is not Outcome.INSUFFICIENT_EVIDENCE:
        yield f"no_claims: {answer.outcome.value} cites no clause"


def _no_gap(found: Findings, _floor: float) -> Iterator[str]:
    answer = found.determination
    if answer and answer.outcome is Outcome.INSUFFICIENT_EVIDENCE and not answer.gap:
        yield "no_gap: the refusal names nothing that is missing"


def _confidence(found: Findings, floor: float) -> Iterator[str]:
    answer = found.determination
    if answer and answer.confidence < floor:
        yield f"confidence: {answer.confidence:.2f} is below {floor:.2f}"


def _noted(found: Findings) -> Iterator[NotedConflict]:
    """The conflicts that no line raises by itself."""
    raised = {reason.partition(": ")[2] for line in found.lines for reason in line.review_reasons}
    for conflict in found.determination.noted_conflicts if found.determination else ():
        if not any(conflict.text.startswith(words) for words in raised):
            yield conflict


def _fact_conflict(found: Findings, _floor: float) -> Iterator[str]:
    yield from (f"fact_conflict: {conflict.text}" for conflict in _noted(found) if conflict.kind == "fact")


def _source_conflict(found: Findings, _floor: float) -> Iterator[str]:
    for conflict in _noted(found):
        if conflict.kind == "source" and conflict.changes_answer:
            cited = f" ({', '.join(conflict.clause_ids)})" if conflict.clause_ids else ""
            yield f"source_conflict: {conflict.text}{cited}"


def _lines(found: Findings, _floor: float) -> Iterator[str]:
    answer = found.determination
    if answer and found.lines and answer.outcome is not whole_outcome(line.outcome for line in found.lines):
        yield "lines: the whole is not the most conservative of its lines"


# Every reason that concerns all lines, by name, in the order in which they are given.
SHARED: dict[str, Callable[[Findings, float], Iterator[str]]] = {
    "run": _run,
    "no_determination": _no_determination,
    "check_failed": _check_failed,
    "no_claims": _no_claims,
    "no_gap": _no_gap,
    "confidence": _confidence,
    "fact_conflict": _fact_conflict,
    "source_conflict": _source_conflict,
    "lines": _lines,
}


def _raised(line: LineReasoned, _found: Findings) -> Iterator[str]:
    yield from line.review_reasons


def _adverse(line: LineReasoned, found: Findings) -> Iterator[str]:
    if found.adverse_to_review and line.outcome is Outcome.NOT_COVERED:
        yield "adverse: on this plan a clinician issues what is not covered"


# Every reason that concerns one line, by name.
OWN: dict[str, Callable[[LineReasoned, Findings], Iterator[str]]] = {"raised": _raised, "adverse": _adverse}


def _failed(check: Check) -> str:
    return f"check_failed: claim {check.claim_index + 1} ({check.clause_id}), {check.reason}"


def _line(line: LineReasoned, shared: Sequence[str], found: Findings) -> Line:
    own = [reason for reasons in OWN.values() for reason in reasons(line, found)]
    standing = [*shared, *own]
    doubted = any(kind_of(reason) not in ISSUES for reason in standing)
    if line.outcome is Outcome.INSUFFICIENT_EVIDENCE:
        state = GateState.REVIEW if doubted else GateState.REFUSE
        gap = found.determination.gap if found.determination else None
        own.insert(0, line.refusal or f"insufficient_evidence: {gap or 'the evidence does not settle it'}")
    else:
        state = GateState.REVIEW if standing else GateState.DETERMINE
    return Line(
        procedure_code=line.code,
        outcome=line.outcome,
        gate=state,
        reasons=(*own, *line.notes),
        prior_authorization=line.prior_authorization,
    )


def _halted(label: str, reason: str) -> Line:
    return Line(
        procedure_code=label,
        outcome=Outcome.INSUFFICIENT_EVIDENCE,
        gate=GateState.HALT,
        reasons=(f"unknown_code: {reason}",),
    )


def _missing(code: str, shared: Sequence[str]) -> Line:
    reason = () if shared else ("lines: no answer was given for this code",)
    return Line(procedure_code=code, outcome=Outcome.INSUFFICIENT_EVIDENCE, gate=GateState.REVIEW, reasons=reason)
