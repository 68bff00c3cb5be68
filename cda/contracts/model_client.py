"""What a role asks of a model and what comes back. No behaviour: clients live in `cda.llm`, roles in `cda.agents`.

A request names a role, never a model: settings choose the model, the effort and the caps of each role. What varies goes
into `turns`; `static` is the same bytes in every request of a role, so that a provider can cache it. Text of a chart or
of a policy is data: it stands in `turns`, as JSON, and never in `static`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any, Protocol

from pydantic import BaseModel

from cda.errors import CdaError


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool that the model may call; `schema` is the JSON schema of its arguments, closed and all required."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that the model made. `arguments` are as the model gave them: not yet validated."""

    call_id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to the call of that id, JSON text."""

    call_id: str
    content: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class UserTurn:
    """JSON text that the role hands the model."""

    content: str


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """What the model said before: text and tool calls, to be sent back as they came.

    `carried` is what only the client that made the turn reads (JSON; a provider's own blocks, which it wants back).
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    carried: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class ResultsTurn:
    """The answers to every call of the model turn before it."""

    results: tuple[ToolResult, ...]


Turn = UserTurn | ModelTurn | ResultsTurn


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question to the model of a role.

    `answer` is the contract that the reply must satisfy (None: free text or tool calls). `key` tells equal requests of
    different cases and repeats apart where they are journaled or cached.
    """

    role: str
    static: str
    turns: tuple[Turn, ...]
    answer: type[BaseModel] | None = None
    tools: tuple[ToolSpec, ...] = ()
    key: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call as the provider counts them; `input` is billed in full, cached tokens stand apart."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One paid call, for the trace and the budget: no text. `seconds` is wall time with all tries; `outcome` is "ok" or
    the kind of the failure. `estimated`: nobody told what was used (a lost reply), so `usage` is the most it can be."""

    role: str
    model: str
    usage: Usage
    usd: Decimal
    seconds: float
    outcome: str
    tries: int = 1
    static_sha256: str = ""
    estimated: bool = False


class FailureKind(StrEnum):
    """How a call can fail: each ends a run in REVIEW with this reason."""

    REFUSED = "model_refused"
    TRUNCATED = "model_truncated"
    BAD_ANSWER = "model_bad_answer"
    OVERLOADED = "model_overloaded"
    TIMED_OUT = "model_timed_out"
    UNREACHABLE = "model_unreachable"
    UNAUTHORISED = "model_unauthorised"
    UNKNOWN_MODEL = "model_unknown"
    REJECTED = "model_rejected"


class ModelFailure(CdaError):
    """A call that gave no usable answer. The text says the kind and the role; no word that was sent or received."""

    def __init__(self, kind: FailureKind, role: str, detail: str = "") -> None:
        super().__init__(f"{kind}: {detail or 'the model gave no usable answer'} ({role})")
        self.kind, self.role = kind, role


@dataclass(frozen=True, slots=True)
class ModelReply:
    """`answer` satisfies the contract asked for: None when none was asked, or when the model called a tool instead.
    `turn` is what to send back in a loop."""

    turn: ModelTurn
    answer: BaseModel | None
    call: ModelCall


class RunMeter(Protocol):
    """The budget of one run, as a model client sees it."""

    @property
    def remaining_s(self) -> float:
        """Seconds left for the whole run."""
        ...

    def admit(self) -> None:
        """Raise when a cap is already reached: no further call may start."""
        ...

    def record(self, call: ModelCall) -> None:
        """Count a call that was made, failed ones too; raise when it passed a cap."""
        ...


class ModelClient(Protocol):
    """Asks models. Safe for use by several threads; at most as many requests are in flight as settings allow."""

    def ask(self, request: ModelRequest, meter: RunMeter) -> ModelReply:
        """Answer within the meter's time. Raises ModelFailure; the call is recorded with the meter either way.

        A try whose reply was lost, or that had to be repaired, is recorded as a call of its own.
        """
        ...

    def describe(self, role: str) -> str:
        """The model that answers for a role, as "provider:id"."""
        ...

    def close(self) -> None:
        """Cancel what is in flight and free what is held."""
        ...


@dataclass(slots=True)
class UnlimitedMeter:
    """A meter without caps that keeps what was recorded: for work outside a run (authoring, judging)."""

    calls: list[ModelCall] = field(default_factory=list)
    remaining_s: float = 600.0

    def admit(self) -> None:
        """Always admits."""

    def record(self, call: ModelCall) -> None:
        """Keep the call."""
        self.calls.append(call)
