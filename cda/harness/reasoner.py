"""What the loop asks of the parts that read and reason. The systems wire them; the harness knows only these shapes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Protocol

from cda.contracts.decision import Claim, CoverageRequest, Determination, Outcome, PriorAuthorization
from cda.contracts.facts import Fact
from cda.contracts.model_client import RunMeter, UnlimitedMeter
from cda.contracts.policy_tools import ClauseView, Plan

UNKNOWN_PRIOR_AUTHORIZATION = PriorAuthorization(required="unknown")


@dataclass(frozen=True, slots=True)
class LineReasoned:
    """The reasoner's answer for one code.

    review_reasons: what a person must settle for this code whatever the outcome (a fact conflict, a service routed
      here): each "kind: words"; a kind of `gate.ISSUES` leaves a refusal a refusal, any other makes it REVIEW. No words
      of the chart.
    refusal: why an INSUFFICIENT_EVIDENCE line is refused, "kind: words" ("no_governing_policy: ...").
    notes: shown in the line's reasons, without effect on the gate.
    """

    code: str
    outcome: Outcome
    notes: tuple[str, ...] = ()
    prior_authorization: PriorAuthorization = UNKNOWN_PRIOR_AUTHORIZATION
    review_reasons: tuple[str, ...] = ()
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Reasoned:
    """A determination and its lines, one for each code asked. What it cost is with the case's meter.

    The determination's confidence is how sure the reasoner is of THIS answer: a well-founded refusal has a high one.
    A determined outcome carries, for at least one line that has it, a claim whose `criterion` is the root of the
    deciding clause ("covers_if" met, "excludes_if" met, ...): see `verifier`.
    """

    determination: Determination
    lines: tuple[LineReasoned, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """What a reasoner may see: the request after pre-flight, the day, and the plan (None: none was given).

    fences: spans of the narrative that address the reader; they are no evidence, and no model is shown them. meter: the
    budget of this run, which every call to a model is made under.
    """

    request: CoverageRequest
    as_of: date
    plan: Plan | None
    codes: tuple[str, ...]
    fences: tuple[tuple[int, int], ...] = ()
    meter: RunMeter = field(default_factory=UnlimitedMeter, compare=False, repr=False)


class Reasoner(Protocol):
    """Turns clauses and facts into an answer. Deterministic reasoners give equal answers for equal input."""

    name: str

    def determine(self, case: Case, clauses: Sequence[ClauseView], facts: Mapping[str, Fact]) -> Reasoned:
        """Answer every code of the case. `clauses` are in effect, of the payer and the plan, sorted by id. Raises
        ModelFailure or BudgetExceeded where a model gave no usable answer."""
        ...


class FactReader(Protocol):
    """Reads the facts that the clauses' criteria name, from the narrative and from structured values."""

    def read(
        self, case: Case, clauses: Sequence[ClauseView], *, ignore: Sequence[tuple[int, int]]
    ) -> Mapping[str, Fact]:
        """One Fact a name (unknown included); offsets are into the case's narrative. Spans in `ignore` are never read
        and never quoted from. A contradiction is CONFLICT."""
        ...


class Judge(Protocol):
    """Re-evaluates, cold, what claims say of criteria. It sees clauses as they are now and the evidence shown."""

    def node(self, case: Case, clause: ClauseView, claim: Claim) -> str | None:
        """None when the node that the claim names has, on the claim's evidence alone, the status it claims; else the
        reason, without chart words."""
        ...

    def outcome(
        self, case: Case, clauses: Sequence[ClauseView], claims: Sequence[Claim], outcome: Outcome
    ) -> str | None:
        """None when the cited clauses and the evidence shown, alone, give the outcome; else the reason."""
        ...


class FactCheck(Protocol):
    """Judges one structured fact of a request before anything is read."""

    def __call__(self, name: str, value: Any) -> str | None:
        """None when the name is known and the value can be read; else "unknown fact name" or the rule it breaks."""
        ...
