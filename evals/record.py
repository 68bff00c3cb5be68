"""The record of one asked case: what scoring needs, and, apart, what a reader of the report wants to see.

Records are what the journal holds and all that the scorers read. `run_id` and `latency_s` are the only parts of one
that differ between two runs of the same code.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import date

from pydantic_core import to_json

from cda.contracts.decision import RunResult
from cda.contracts.model_client import FailureKind
from cda.contracts.policy_tools import ClauseView
from evals.case_model import CoverageCase

Fetch = Callable[[str], ClauseView | None]
Sample = tuple[str, int]
"""One asking of a case: its id and the number of the repeat, from 1."""
SERVICE_FAILED = frozenset(
    kind.value
    for kind in (
        FailureKind.OVERLOADED,
        FailureKind.TIMED_OUT,
        FailureKind.UNREACHABLE,
        FailureKind.UNAUTHORISED,
        FailureKind.UNKNOWN_MODEL,
    )
)
"""What a service did: asking again may mend it. A refusal or a bad answer is what the model did, and stands."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)


@dataclass(frozen=True, slots=True)
class Record:
    """One case as it was answered. Counts are of ids; `confidence` is None without a determination; `gold_cited` is
    None for a case without gold clauses; `first_is_gold`: the first clause in hand, by id, is all the gold.
    `detail` is a JSON object for the report alone; no scorer reads it. repeat: from 1."""

    case_id: str
    set: str
    trap: str
    stress: tuple[str, ...]
    family: str
    disputed: bool
    expected_outcome: str
    expected_gate: str
    outcome: str
    gate: str
    reasons: tuple[str, ...]
    confidence: float | None
    gold: int
    gold_retrieved: int
    gold_cited: bool | None
    first_is_gold: bool
    retrieved: int
    stale_retrieved: int
    wrong_payer: int
    wrong_plan: int
    citations: int
    faithful: int
    governing: int
    hallucinated: int
    stale_cited: int
    unmet: tuple[str, ...]
    latency_s: float
    input_tokens: int
    output_tokens: int
    usd: str
    run_id: str
    detail: str
    repeat: int = 1

    @property
    def sample(self) -> Sample:
        """Which asking of which case."""
        return self.case_id, self.repeat

    @property
    def service_failed(self) -> bool:
        """A model's service gave no answer; it counts as it stands, and may be asked again."""
        return any(reason.split(":", 1)[0] in SERVICE_FAILED for reason in self.reasons)

    @property
    def outcome_right(self) -> bool:
        """The outcome is the expected one; no determination counts as INSUFFICIENT_EVIDENCE."""
        return self.outcome == self.expected_outcome

    @property
    def gate_right(self) -> bool:
        """The gate is the expected one."""
        return self.gate == self.expected_gate

    @property
    def correct(self) -> bool:
        """Outcome and gate are right, and every reason that the case asks for was given."""
        return self.outcome_right and self.gate_right and not self.unmet

    @property
    def false_auto(self) -> bool:
        """Determined without review, and wrong: the one figure that must stay at zero."""
        return self.gate == "DETERMINE" and not self.outcome_right

    @property
    def unwarranted_auto(self) -> bool:
        """Determined without review where review, refusal or halt was due, right or wrong."""
        return self.gate == "DETERMINE" and self.expected_gate != "DETERMINE"

    def to_json(self) -> str:
        """One line: the record without its detail, a tab, the detail as it is."""
        return f"{_ENCODER.encode({name: getattr(self, name) for name in _PLAIN})}\t{self.detail}"

    @classmethod
    def from_json(cls, line: str) -> "Record":
        """The record of a line. Raises ValueError or TypeError for a line that is none."""
        plain, tab, detail = line.rstrip("\n").partition("\t")
        if not (tab and detail.endswith("}")):
            raise ValueError("a record is two JSON objects with a tab between them")
        raw = json.loads(plain)
        for name in ("stress", "reasons", "unmet"):
            raw[name] = tuple(raw[name])
        return cls(**raw, detail=detail)


_PLAIN = tuple(field.name for field in fields(Record) if field.name != "detail")


def record_of(
    case: CoverageCase, set_name: str, result: RunResult, *, family: str, fetch: Fetch, repeat: int = 1
) -> Record:
    """What `result` says of `case`. `fetch` gives a clause as the corpus has it, None for an unknown id."""
    answer = result.determination
    day = _day(case.as_of_date)
    clauses = [fetch(clause_id) for clause_id in result.retrieved_clause_ids]
    known = [clause for clause in clauses if clause is not None]
    cited = {claim.citation.clause_id for claim in answer.claims} if answer else set()
    gold = set(case.gold_clause_ids)
    checks = result.verification.checks
    return Record(
        case_id=case.case_id,
        set=set_name,
        trap=case.trap,
        stress=case.stress,
        family=family,
        disputed=bool(case.disputed),
        expected_outcome=case.expected_outcome,
        expected_gate=case.expected_gate,
        outcome=answer.outcome.value if answer else "INSUFFICIENT_EVIDENCE",
        gate=result.gate.state.value,
        reasons=result.gate.reasons,
        confidence=answer.confidence if answer else None,
        gold=len(gold),
        gold_retrieved=len(gold & set(result.retrieved_clause_ids)),
        gold_cited=gold <= cited if gold else None,
        first_is_gold=bool(gold) and gold <= set(result.retrieved_clause_ids[:1]),
        retrieved=len(clauses),
        stale_retrieved=sum(clause is None or day is None or not clause.in_effect(day) for clause in clauses),
        wrong_payer=sum(clause.payer_id != case.payer_id.strip().upper() for clause in known),
        wrong_plan=sum(clause.plan_id not in (None, (case.plan_id or "").strip()) for clause in known),
        citations=len(checks),
        faithful=sum(check.passed for check in checks),
        governing=sum(check.exists and check.governs_request and check.in_effect_on_as_of for check in checks),
        hallucinated=sum(not check.exists for check in checks),
        stale_cited=sum(check.exists and not check.in_effect_on_as_of for check in checks),
        unmet=_unmet(case, result),
        latency_s=result.latency_s,
        input_tokens=result.input_tokens,
        output_tokens=result.output_tokens,
        usd=result.usd,
        run_id=result.run_id,
        detail=_detail(case, result),
        repeat=repeat,
    )


def _unmet(case: CoverageCase, result: RunResult) -> tuple[str, ...]:
    """The kinds of reasons, and the halt's field, that the case asks for and that were not given."""
    given = {reason.split(":", 1)[0] for reason in result.gate.reasons}
    unmet = [kind for kind in case.expected_reasons if kind not in given]
    halted = (result.preflight.halt_reason or "").split(":", 1)[0]
    if case.expected_halt and halted != case.expected_halt:
        unmet.append(f"halt {case.expected_halt}")
    return tuple(unmet)


def _detail(case: CoverageCase, result: RunResult) -> str:
    request = case.model_dump(include={"payer_id", "plan_id", "procedure_codes", "diagnosis_codes", "as_of_date"})
    shown = {
        "request": request,
        "facts": case.facts,
        "question": case.question,
        "narrative": result.redacted_narrative,
        "gold": case.gold_clause_ids,
        "rationale": case.rationale,
        "corpus": case.corpus,
        "determination": result.determination,
        "checks": result.verification.checks,
        "flags": result.preflight.injection_flags,
        "retrieved": result.retrieved_clause_ids,
    }
    return to_json(shown).decode("utf-8")


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
