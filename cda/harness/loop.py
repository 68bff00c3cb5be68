"""One run, from a request to a RunResult: pre-flight, gather, read, reason, verify, gate.

The harness owns the order and the caps; the parts that read and reason are handed in. Whatever goes wrong on the way,
a dead tool, a blown cap, a hanging call, an exception, ends in REVIEW with its reason; a bad request ends in HALT with
its field. Nothing is raised and nothing hangs: the work runs beside the caller, who waits no longer than the cap.
Equal input, corpus and settings give equal results but for `run_id` and `latency_s`.
"""

import threading
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from time import monotonic
from uuid import uuid4

from cda.contracts.decision import (
    CoverageRequest,
    Determination,
    Gate,
    GateState,
    Line,
    Outcome,
    Preflight,
    Provenance,
    RunResult,
    Verification,
)
from cda.contracts.facts import Fact, FactState
from cda.contracts.model_client import ModelCall, ModelFailure
from cda.contracts.policy_tools import Directory, PolicyTools
from cda.errors import PolicyToolError
from cda.harness.budget import MAX_SECONDS, MAX_TOKENS, MAX_USD, Budget, BudgetExceeded
from cda.harness.faults import corrupt
from cda.harness.gate import CONFIDENCE_FLOOR, Findings, decide
from cda.harness.injection import fenced, sentence_flags
from cda.harness.preflight import Checked, check
from cda.harness.quotes import text_sha256
from cda.harness.reasoner import Case, FactCheck, FactReader, Judge, Reasoned, Reasoner
from cda.harness.requests import MalformedRequest, parse_request
from cda.harness.retrieval import Gathered, counts, gather
from cda.harness.trace import Trace, kinds, safe_id
from cda.harness.verifier import Reading, verify

# What a model client gets for cancelling its call when the run's time is over, before the run is reported.
CANCELLING_S = 1.0


@dataclass(frozen=True, slots=True)
class Parts:
    """What a run is made of; a system wires them once and uses them for every run."""

    tools: PolicyTools
    directory: Directory
    facts: FactReader
    reasoner: Reasoner
    judge: Judge
    provenance: Provenance
    fact_check: FactCheck | None = None


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Caps and switches of a run. `trace_dir` None records nothing; `today` bounds far-future dates."""

    max_iterations: int = 3
    k: int = 8
    confidence_floor: float = CONFIDENCE_FLOOR
    max_seconds: float = MAX_SECONDS
    max_tokens: int = MAX_TOKENS
    max_usd: Decimal = MAX_USD
    fault: str | None = None
    trace_dir: Path | None = None
    today: date | None = None


@dataclass(slots=True)
class _Run:
    """What has been reached so far; a run that ends early is reported from it."""

    checked: Checked | None = None
    gathered: Gathered = field(default_factory=Gathered)
    facts: Mapping[str, Fact] = field(default_factory=dict)
    reasoned: Reasoned | None = None
    answer: Determination | None = None
    verification: Verification = field(default_factory=Verification)
    reasons: list[str] = field(default_factory=list)
    step: str = "preflight"


def run(
    raw: object,
    *,
    parts: Parts,
    settings: RunSettings | None = None,
    run_id: str | None = None,
    clock: Callable[[], float] = monotonic,
) -> RunResult:
    """Answer one request: a CoverageRequest, or the decoded JSON of one."""
    settings, run_id = settings or RunSettings(), run_id or uuid4().hex
    budget = Budget(
        max_tokens=settings.max_tokens, max_usd=settings.max_usd, max_seconds=settings.max_seconds, clock=clock
    )
    try:
        request = parse_request(raw)
    except MalformedRequest as error:
        return halted(str(error), parts.provenance, run_id=run_id, trace_dir=settings.trace_dir)
    state = _Run()
    _within_cap(lambda: _work(request, parts, settings, budget, state), budget, state)
    return _record(state, parts, settings, budget, run_id)


def halted(
    reason: str, provenance: Provenance, *, run_id: str | None = None, trace_dir: Path | None = None
) -> RunResult:
    """The HALT of a request that could not be read ("field: rule"), such as a bad line of a batch."""
    run_id = run_id or uuid4().hex
    trace = Trace(trace_dir, run_id)
    trace.event("halt", field=reason.split(":", 1)[0])
    trace.event("gate", state=GateState.HALT.value, reasons=["halt"])
    trace.close()
    return RunResult(
        run_id=run_id,
        gate=Gate(state=GateState.HALT, reasons=(reason,)),
        determination=None,
        verification=Verification(),
        preflight=Preflight(field_confidence={}, halt_reason=reason),
        provenance=provenance,
    )


def _within_cap(work: Callable[[], None], budget: Budget, state: _Run) -> None:
    """Run `work` to its end or to the cap, whichever is first; what it raises becomes a reason."""
    failures: list[str] = []

    def guarded() -> None:
        try:
            work()
        except Exception as error:  # the boundary: nothing that a part does reaches the caller
            failures.append(_why(error, state.step))

    # The caller's context comes along: whoever wraps a model client knows by it which of many runs is asking.
    worker = threading.Thread(target=copy_context().run, args=(guarded,), name="cda-run", daemon=True)
    worker.start()
    worker.join(timeout=budget.remaining_s)
    if worker.is_alive():
        failures = [budget.time_reason]
    budget.close(CANCELLING_S)
    state.reasons.extend(failures)


def _why(error: Exception, step: str) -> str:
    """The reason for a failure, without its message: that could repeat the request."""
    if isinstance(error, BudgetExceeded | ModelFailure):
        return str(error)
    if isinstance(error, PolicyToolError):
        return f"error: the policy tools failed at {step} ({error.code})"
    return f"error: {step} failed ({type(error).__name__})"


def _work(request: CoverageRequest, parts: Parts, settings: RunSettings, budget: Budget, state: _Run) -> None:
    checked = check(request, directory=parts.directory, fact_check=parts.fact_check, today=settings.today)
    state.checked = checked
    if checked.preflight.halt_reason is not None or checked.as_of is None:
        return
    case = Case(
        request=checked.request,
        as_of=checked.as_of,
        plan=checked.plan,
        codes=checked.codes,
        fences=tuple(_fences(checked.preflight)),
        meter=budget,
    )
    if case.plan is None:
        state.reasons.append("no_plan: no plan was named, so riders were not considered")
    state.step = "retrieval"
    state.gathered = gather(
        case,
        parts.tools,
        question=fenced(case.request.question, checked.preflight.injection_flags, "question"),
        max_iterations=settings.max_iterations,
        k=settings.k,
        checkpoint=budget.check,
    )
    if state.gathered.gap is not None:
        state.reasons.append(f"iterations_exhausted: after {state.gathered.iterations}, {state.gathered.gap}")
    _read(case, checked.preflight, parts, state)
    budget.check()
    state.step = "reasoning"
    reasoned = parts.reasoner.determine(case, state.gathered.usable, state.facts)
    state.reasoned, state.answer = reasoned, reasoned.determination
    budget.check()
    if settings.fault is not None:
        state.step = "fault"
        clauses = state.gathered.usable
        state.answer, nothing = corrupt(settings.fault, state.answer, case=case, clauses=clauses, tools=parts.tools)
        state.reasons += [nothing] if nothing else []
    state.step = "verification"
    fences = _fences(checked.preflight)
    state.verification = verify(
        case, state.answer, tools=parts.tools, judge=parts.judge, reading=Reading(state.facts, fences)
    )
    budget.check()


def _fences(preflight: Preflight) -> list[tuple[int, int]]:
    # An empty span only marks where hidden characters stood; nothing is left there to fence.
    flags = (flag for flag in preflight.injection_flags if flag.field == "narrative" and flag.start < flag.end)
    return [(flag.start, flag.end) for flag in flags]


def _read(case: Case, preflight: Preflight, parts: Parts, state: _Run) -> None:
    """Read the facts; where a fence took words out of running text, see what those would have changed."""
    state.step = "facts"

    def read(ignore: list[tuple[int, int]]) -> Mapping[str, Fact]:
        return parts.facts.read(case, state.gathered.usable, ignore=ignore)

    fences = _fences(preflight)
    state.facts = read(fences)
    soft = {(flag.start, flag.end) for flag in sentence_flags(preflight.injection_flags) if flag.field == "narrative"}
    if soft:
        unfenced = read([span for span in fences if span not in soft])
        changed = sorted(name for name, fact in unfenced.items() if _says_more(fact, state.facts.get(name)))
        if changed:
            state.reasons.append(f"fenced_facts: words that address the reader also speak of {', '.join(changed)}")


def _says_more(unfenced: Fact, read: Fact | None) -> bool:
    if unfenced.state is FactState.UNKNOWN:
        return False
    return read is None or (unfenced.state, unfenced.value) != (read.state, read.value)


def _record(state: _Run, parts: Parts, settings: RunSettings, budget: Budget, run_id: str) -> RunResult:
    trace = Trace(settings.trace_dir, run_id)
    gate, lines = _gate(state, settings)
    _trace(trace, state, parts.provenance)
    for call in budget.calls:
        trace.event("model_call", **_called(call))
    trace.event("gate", state=gate.state.value, reasons=kinds(gate.reasons), latency_s=round(budget.elapsed_s, 6))
    trace.close()
    if trace.dead and gate.state is not GateState.HALT:
        state.reasons.append("trace: the run could not be recorded")
        gate, lines = _gate(state, settings)
    checked = state.checked
    return RunResult(
        run_id=run_id,
        gate=gate,
        determination=None if gate.state is GateState.HALT else state.answer,
        verification=state.verification,
        lines=lines,
        redacted_narrative=checked.request.narrative if checked else "",
        preflight=checked.preflight if checked else Preflight(field_confidence={}),
        iterations=state.gathered.iterations,
        input_tokens=budget.input_tokens,
        output_tokens=budget.output_tokens,
        usd=str(budget.usd),
        latency_s=round(budget.elapsed_s, 6),
        retrieved_clause_ids=tuple(sorted(state.gathered.clauses)),
        provenance=parts.provenance,
    )


def _gate(state: _Run, settings: RunSettings) -> tuple[Gate, tuple[Line, ...]]:
    checked = state.checked
    if checked is not None and checked.preflight.halt_reason is not None:
        return _halt(checked, checked.preflight.halt_reason)
    return decide(
        Findings(
            determination=state.answer,
            verification=state.verification,
            lines=state.reasoned.lines if state.reasoned else (),
            order=checked.order if checked else (),
            unknown_codes=checked.unknown_codes if checked else (),
            run_reasons=state.reasons,
            notes=(*(checked.notes if checked else ()), *state.gathered.notes),
            adverse_to_review=bool(checked and checked.plan and checked.plan.adverse_to_clinician_review),
        ),
        confidence_floor=settings.confidence_floor,
    )


def _halt(checked: Checked, reason: str) -> tuple[Gate, tuple[Line, ...]]:
    lines = tuple(
        Line(procedure_code=label, outcome=Outcome.INSUFFICIENT_EVIDENCE, gate=GateState.HALT, reasons=(reason,))
        for label in checked.order
    )
    return Gate(state=GateState.HALT, reasons=(reason, *checked.notes)), lines


def _trace(trace: Trace, state: _Run, provenance: Provenance) -> None:
    checked = state.checked
    trace.event("run", corpus=provenance.corpus_digest, reasoner=provenance.reasoner, code=provenance.code_version)
    if checked is not None:
        request, found = checked.request, checked.preflight
        trace.event(
            "preflight",
            payer_id=request.payer_id if found.halt_reason is None else None,
            plan_id=checked.plan.plan_id if checked.plan else None,
            codes=list(checked.order),
            as_of=checked.as_of.isoformat() if checked.as_of else None,
            field_confidence=dict(found.field_confidence),
            redactions=[[r.kind, r.field, r.start, r.end] for r in found.redactions],
            injection_flags=[[f.kind, f.field, f.start, f.end] for f in found.injection_flags],
            halt_field=found.halt_reason.split(":", 1)[0] if found.halt_reason else None,
            narrative_chars=len(request.narrative),
            narrative_sha256=text_sha256(request.narrative),
        )
    gathered = state.gathered
    if gathered.iterations:
        trace.event(
            "retrieval",
            iterations=gathered.iterations,
            sufficient=gathered.gap is None,
            dropped=gathered.dropped,
            grades=counts(gathered.grades),
            clause_ids=[safe_id(name) for name in sorted(gathered.clauses)],
        )
    if state.facts:
        trace.event("facts", facts={name: _places(fact) for name, fact in sorted(state.facts.items())})
    if state.answer is not None:
        trace.event("determination", outcome=state.answer.outcome.value, confidence=state.answer.confidence)
    for check_, claim in zip(state.verification.checks, state.answer.claims if state.answer else (), strict=False):
        citation = claim.citation
        trace.event(
            "check",
            claim=check_.claim_index,
            clause_id=safe_id(check_.clause_id),
            criterion=claim.criterion and safe_id(claim.criterion),
            status=claim.status,
            start=citation.start,
            end=citation.end,
            clause_sha256=safe_id(citation.clause_sha256),
            passed=check_.passed,
            failed_step=kinds([check_.reason])[0] if check_.reason else None,
        )


def _called(call: ModelCall) -> dict[str, object]:
    """One call as `cda cost` reads it: what the provider served from or wrote to its cache is the unchanging prefix."""
    return {
        "role": call.role,
        "model": call.model,
        "input_tokens": call.usage.input,
        "cache_read_tokens": call.usage.cache_read,
        "cache_write_tokens": call.usage.cache_write,
        "static_tokens": call.usage.cache_read + call.usage.cache_write,
        "output_tokens": call.usage.output,
        "usd": str(call.usd),
        "seconds": round(call.seconds, 6),
        "outcome": call.outcome,
        "tries": call.tries,
        "static_sha256": call.static_sha256,
    }


def _places(fact: Fact) -> list[object]:
    return [fact.state.value, [[piece.source, piece.start, piece.end] for piece in fact.evidence]]
