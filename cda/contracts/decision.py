"""What goes into a coverage determination and what comes out: the JSON of `cda ask`."""

from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Text = Annotated[str, StringConstraints(max_length=200_000)]
Ident = Annotated[str, StringConstraints(max_length=200, strip_whitespace=True)]


class Model(BaseModel):
    """Base of the contracts: immutable, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Outcome(StrEnum):
    """The three answers; the most conservative first (see `CONSERVATIVE_OUTCOMES`)."""

    COVERED = "COVERED"
    NOT_COVERED = "NOT_COVERED"
    INSUFFICIENT_EVIDENCE = "INSUFFICIENT_EVIDENCE"


class GateState(StrEnum):
    """What may be done with the answer."""

    DETERMINE = "DETERMINE"
    REVIEW = "REVIEW"
    REFUSE = "REFUSE"
    HALT = "HALT"


CONSERVATIVE_GATES = (GateState.HALT, GateState.REFUSE, GateState.REVIEW, GateState.DETERMINE)
CONSERVATIVE_OUTCOMES = (Outcome.INSUFFICIENT_EVIDENCE, Outcome.NOT_COVERED, Outcome.COVERED)


class CoverageRequest(Model):
    """One coverage question. Strings are taken as given; pre-flight judges them, so that a bad one is a HALT that
    names its field and not an exception. `facts` maps fact names to values; null means unknown."""

    payer_id: Ident = ""
    plan_id: Ident | None = None
    procedure_codes: tuple[Ident, ...] = ()
    diagnosis_codes: tuple[Ident, ...] = ()
    as_of_date: Annotated[str, StringConstraints(max_length=200)] = ""
    narrative: Text = ""
    question: Text = ""
    facts: dict[str, Any] | None = None
    field_confidence: dict[str, float] | None = None


class Redaction(Model):
    """One thing taken out of the text: its safe-harbour kind and where its placeholder stands in the result."""

    kind: str
    field: Literal["narrative", "question"]
    start: int
    end: int


class InjectionFlag(Model):
    """A span that addresses the reader instead of describing the patient; fenced off and never read as evidence."""

    kind: str
    field: Literal["narrative", "question"]
    start: int
    end: int


class Preflight(Model):
    """What pre-flight found. `halt_reason` names the field when the request must not go on."""

    field_confidence: dict[str, float]
    redactions: tuple[Redaction, ...] = ()
    injection_flags: tuple[InjectionFlag, ...] = ()
    halt_reason: str | None = None


class Citation(Model):
    """A quote: half-open offsets, in code points, into the text of the clause whose UTF-8 text has this sha256."""

    clause_id: str
    quote: str
    start: int
    end: int
    clause_sha256: str


class FactEvidence(Model):
    """A fact as used by a claim, with its verbatim span in `redacted_narrative` (no offsets: structured or derived)."""

    fact: str
    value: Any
    quote: str = ""
    start: int | None = None
    end: int | None = None


class Claim(Model):
    """One assertion of the answer and the clause that says so. `criterion` is the path of a node in that clause's
    criterion ("covers_if.all.1"), when the claim speaks of one."""

    text: str
    citation: Citation
    criterion: str | None = None
    status: Literal["met", "not_met", "unknown", "presumed"]
    evidence: tuple[FactEvidence, ...] = ()


class MissingFact(Model):
    """A fact whose absence keeps the answer open, and the clause that needs it; first the one that decides most."""

    fact: str
    label: str
    clause_id: str
    why: str | None = None


class Flip(Model):
    """A smallest set of facts that would change the outcome, and to what."""

    facts: dict[str, Any]
    outcome: Outcome


class NotedConflict(Model):
    """A lower source against a higher one, or one statement of the chart against another."""

    kind: Literal["source", "fact"]
    text: str
    clause_ids: tuple[str, ...] = ()
    changes_answer: bool = False


class Determination(Model):
    """The answer before the gate: claims in the order a reader needs them."""

    outcome: Outcome
    summary: str
    claims: tuple[Claim, ...] = ()
    confidence: float = Field(ge=0.0, le=1.0)
    gap: str | None = None
    missing_facts: tuple[MissingFact, ...] = ()
    noted_conflicts: tuple[NotedConflict, ...] = ()
    would_change: tuple[Flip, ...] = ()


class Check(Model):
    """The verifier's steps for one claim, each decided on a cold re-fetch; `reason` names the first that failed."""

    claim_index: int
    clause_id: str
    exists: bool
    quote_verbatim: bool
    quote_whole: bool
    in_effect_on_as_of: bool
    governs_request: bool
    supports_claim: bool
    reason: str = ""

    @property
    def passed(self) -> bool:
        """True when every step passed."""
        return (
            self.exists
            and self.quote_verbatim
            and self.quote_whole
            and self.in_effect_on_as_of
            and self.governs_request
            and self.supports_claim
        )


class Verification(Model):
    """All checks; `faithfulness` is passed over all, null without claims."""

    checks: tuple[Check, ...] = ()
    faithfulness: float | None = None


class Gate(Model):
    """The gate's decision and every reason for it."""

    state: GateState
    reasons: tuple[str, ...] = ()


class PriorAuthorization(Model):
    """Whether a clause in effect asks for prior authorization; `unknown` when none says so or says not."""

    required: Literal["yes", "no", "unknown"]
    clause_id: str | None = None


class Line(Model):
    """The answer for one requested code."""

    procedure_code: str
    outcome: Outcome
    gate: GateState
    reasons: tuple[str, ...] = ()
    prior_authorization: PriorAuthorization = PriorAuthorization(required="unknown")


class Difference(Model):
    """One reason why the answer differs between two dates."""

    kind: Literal["version", "rider", "criterion", "fact"]
    from_: str = Field(alias="from")
    to: str
    text: str

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)


class Versus(Model):
    """The same request on another date, and what made the difference."""

    as_of_date: date
    outcome: Outcome | None
    gate: GateState
    differences: tuple[Difference, ...] = ()


class Provenance(Model):
    """What produced the answer, so that a moved figure can be attributed."""

    corpus_digest: str
    index_manifest: str | None
    backend: str
    embedder: str
    reranker: str
    reasoner: str
    model: str | None = None
    skills_digest: str | None = None
    code_version: str


class RunResult(Model):
    """Everything about one run; what `cda ask --json` prints. `determination` is null on HALT."""

    run_id: str
    line: int | None = None
    gate: Gate
    determination: Determination | None
    verification: Verification
    lines: tuple[Line, ...] = ()
    redacted_narrative: str = ""
    preflight: Preflight
    versus: Versus | None = None
    iterations: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: str = "0"
    latency_s: float = 0.0
    retrieved_clause_ids: tuple[str, ...] = ()
    provenance: Provenance
