"""What a client of one provider gives the rest of this tree: an answer, or a fault that says whether to ask again."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, runtime_checkable

from cda.contracts.model_client import FailureKind, ModelRequest, ModelTurn, Usage
from cda.llm.choice import Choice

BYTES_PER_TOKEN = 3  # fewer bytes to a token than any text of ours has: an estimate that is never too small


class Ending(Enum):
    """How the model stopped."""

    DONE = "done"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    ODD = "odd"


@dataclass(frozen=True, slots=True)
class Received:
    """One paid answer, not yet held to its contract. `usage` is None when the server told none."""

    turn: ModelTurn
    ending: Ending
    usage: Usage | None
    answer_text: str = ""  # what is validated: the text, or the arguments of the tool that carries the answer
    note: str = ""  # a word of the provider's closed vocabulary, for the failure's text


class CallFault(Exception):
    """A try without an answer. `lost`: the request went out whole and may have been paid; `wait_s`: what the service
    asks for. The text holds no word that was sent or received."""

    def __init__(
        self,
        kind: FailureKind,
        detail: str,
        *,
        again: bool = False,
        lost: bool = False,
        wait_s: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.kind, self.detail = kind, detail
        self.again, self.lost, self.wait_s = again, lost, wait_s


class ModelProvider(Protocol):
    """One provider's API. Raises CallFault and nothing else."""

    async def send(self, request: ModelRequest, choice: Choice, seconds: float) -> Received:
        """Ask once, within the seconds."""
        ...

    async def look(self, model: str) -> None:
        """See, without paying, that the service answers, takes the key and has the model."""
        ...

    async def close(self) -> None:
        """Free the connections."""
        ...

    @property
    def repairs(self) -> int:
        """How often an answer that breaks its contract is asked for again."""
        ...


@runtime_checkable
class CountingProvider(Protocol):
    """A provider that counts without answering."""

    async def count(self, request: ModelRequest, choice: Choice) -> int:
        """Input tokens of a request. Raises CallFault."""
        ...


@dataclass(frozen=True, slots=True)
class BatchItem:
    """One question of a batch; `item_id` is a digest of its key and of everything that is sent."""

    item_id: str
    request: ModelRequest
    choice: Choice


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What came of one question: an answer, or the fault that it ended in, which is not paid."""

    item_id: str
    received: Received | None
    fault: CallFault | None


@runtime_checkable
class BatchProvider(Protocol):
    """A provider's batches. Every method that sends raises CallFault and nothing else."""

    def body(self, request: ModelRequest, choice: Choice) -> Mapping[str, Any]:
        """What is sent for a question."""
        ...

    async def make_batch(self, items: Sequence[BatchItem]) -> str:
        """The name of a new batch."""
        ...

    async def batch_ended(self, name: str) -> bool:
        """Whether every question of it has come to an end."""
        ...

    async def batches(self) -> list[tuple[str, int, bool]]:
        """The newest batches of the account: name, how many questions, whether ended."""
        ...

    async def batch_results(self, name: str) -> list[BatchResult]:
        """What came of a batch that has ended, in no order."""
        ...


def most_used(request: ModelRequest, choice: Choice) -> Usage:
    """The most that one try can have used when nobody said what it did."""
    parts: list[Any] = [request.static]
    parts += [tool.schema for tool in request.tools]
    parts += [_words(turn) for turn in request.turns]
    parts += [request.answer.model_json_schema()] if request.answer else []
    size = len(json.dumps(parts, ensure_ascii=False, default=_plain).encode(errors="replace"))
    return Usage(input=size // BYTES_PER_TOKEN + 1, output=choice.max_tokens)


def _words(turn: Any) -> Sequence[Any]:
    return [getattr(turn, name) for name in turn.__slots__ if name != "calls"]


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)


def wait_asked(headers: Mapping[str, str]) -> float | None:
    """Seconds of `retry-after-ms` or `retry-after`; None when absent or a date. Never negative."""
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        text = headers.get(name, "")
        if text.replace(".", "", 1).isdigit() and text.isascii():
            return float(text) / scale
    return None


def status_fault(status: int, word: str, headers: Mapping[str, str]) -> CallFault:
    """The fault of an answer with this status. `word` is the error's type as the service names it."""
    again = headers.get("x-should-retry") != "false"
    wait = wait_asked(headers)
    said = f"the service answered {status}" + (f" {word}" if word else "")
    match status:
        case 401 | 403:
            return CallFault(FailureKind.UNAUTHORISED, f"{said}: it does not accept the key")
        case 404:
            return CallFault(FailureKind.UNKNOWN_MODEL, f"{said}: it has no such model")
        case 429 | 503 | 529:
            return CallFault(FailureKind.OVERLOADED, said, again=again, wait_s=wait)
        case 408 | 409:
            return CallFault(FailureKind.UNREACHABLE, said, again=again, wait_s=wait)
        case _ if status >= 500:  # a gateway's words hide what became of the request behind it
            lost = status in (502, 504) or status >= 520
            return CallFault(FailureKind.UNREACHABLE, said, again=again, lost=lost, wait_s=wait)
        case _:
            return CallFault(FailureKind.REJECTED, said)


def transport_fault(error: BaseException) -> CallFault:
    """The fault of a connection that failed, by the names of its causes: what never came about is surely unpaid."""
    names = {type(cause).__name__ for cause in _causes(error)}
    if names & {"ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol", "ProxyError"}:
        return CallFault(FailureKind.UNREACHABLE, "the service cannot be reached", again=True)
    if names & {"UnicodeEncodeError", "LocalProtocolError", "InvalidURL"}:
        return CallFault(FailureKind.REJECTED, "the request cannot be put on the wire")
    if names & {"TimeoutError", "ReadTimeout", "WriteTimeout", "APITimeoutError"}:
        return CallFault(FailureKind.TIMED_OUT, "the service did not answer in time", again=True, lost=True)
    if names & {"JSONDecodeError", "UnicodeDecodeError", "DecodingError", "APIResponseValidationError"}:
        return CallFault(
            FailureKind.UNREACHABLE, "what the service sent is no answer of its API", again=True, lost=True
        )
    return CallFault(FailureKind.UNREACHABLE, "the connection broke before the answer was whole", again=True, lost=True)


def no_answer() -> CallFault:
    """The fault of a 200 whose body is no answer."""
    return CallFault(FailureKind.UNREACHABLE, "what the service sent is no answer of its API", again=True, lost=True)


def _causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found
