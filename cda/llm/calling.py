"""The client over providers: turns, tries, deadlines, the meter, and answers held to their contracts.

The retries are ours, not a library's, so that one deadline holds over all of them and each try that may have been paid
is counted before the next: a budget is passed by one call at most.
"""

import hashlib
import json
from collections.abc import Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from decimal import Decimal
from time import monotonic

from pydantic import BaseModel, ValidationError

from cda.contracts.model_client import (
    FailureKind,
    ModelCall,
    ModelFailure,
    ModelReply,
    ModelRequest,
    ModelTurn,
    RunMeter,
    Usage,
    UserTurn,
)
from cda.errors import UnavailableError
from cda.llm.background import Background
from cda.llm.choice import Choice
from cda.llm.pacing import Closed, NoTurn, Pacing
from cda.llm.prices import Prices
from cda.llm.provider import (
    BatchProvider,
    CallFault,
    CountingProvider,
    Ending,
    ModelProvider,
    Received,
    most_used,
    transport_fault,
)

FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 8.0
LOOK_S = 15.0
OK = "ok"


class ProviderClient:
    """A `ModelClient` over the providers' APIs. Safe for any number of threads; close it when done."""

    def __init__(
        self,
        choices: Mapping[str, Choice],
        providers: Mapping[str, ModelProvider],
        prices: Prices,
        *,
        most: int,
        tries: int,
        first_wait_s: float = FIRST_WAIT_S,
    ) -> None:
        for choice in choices.values():
            prices.of(choice.name)  # a cap in money is no cap over a model without a price
        self._choices, self._providers, self.prices = choices, providers, prices
        self._tries, self._first_wait_s = tries, first_wait_s
        self.background = Background()
        self.pacing = Pacing(most)

    def ask(self, request: ModelRequest, meter: RunMeter) -> ModelReply:
        """Answer within the meter's time and the role's. Raises ModelFailure; see `ModelClient`."""
        asking = _Asking(request, self.choice(request.role), meter, self.prices)
        repairs = self._provider(asking.choice).repairs
        while True:
            received = self._received(asking)
            failure, answer = judged(request, received)
            asking.record(failure.kind if failure else OK, received.usage)
            if failure is None:
                return ModelReply(received.turn, answer, asking.calls[-1])
            if failure.kind is not FailureKind.BAD_ANSWER or not repairs:
                raise failure
            asking.request, repairs = _complained(request, received, failure), repairs - 1

    def describe(self, role: str) -> str:
        """The model that answers for a role, as "provider:id"."""
        return self.choice(role).name

    def count(self, request: ModelRequest) -> int:
        """Input tokens of a request as its provider counts them, without asking or paying. Raises UnavailableError."""
        choice = self.choice(request.role)
        provider = self._provider(choice)
        if not isinstance(provider, CountingProvider):
            raise UnavailableError(f"{choice.name}: its provider counts nothing before it is asked")
        fault: CallFault
        try:
            return self.background.run(provider.count(request, choice), LOOK_S)
        except CallFault as caught:
            fault = caught
        except TimeoutError as caught:
            fault = transport_fault(caught)
        raise UnavailableError(f"{choice.name}: {fault.detail}; {_REMEDIES[choice.provider](fault.kind)}")

    def batch_provider(self) -> BatchProvider:
        """The provider that takes batches. Raises UnavailableError when no chosen model is of one."""
        for provider in self._providers.values():
            if isinstance(provider, BatchProvider):
                return provider
        raise UnavailableError("batches are Anthropic's; set CDA_MODEL=anthropic:ID")

    def look(self) -> None:
        """See that every chosen model is there and takes the key, without paying. Raises UnavailableError, one line."""
        for choice in sorted({choice.name: choice for choice in self._choices.values()}.values(), key=lambda c: c.name):
            fault: CallFault | None = None
            try:
                self.background.run(self._provider(choice).look(choice.model), LOOK_S)
            except CallFault as caught:
                fault = caught
            except TimeoutError as caught:
                fault = transport_fault(caught)
            if fault is not None:
                raise UnavailableError(f"{choice.name}: {fault.detail}; {_REMEDIES[choice.provider](fault.kind)}")

    def pending(self) -> int:
        """Requests under way."""
        return self.background.pending()

    def close(self) -> None:
        """Cancel what is in flight and free what is held."""
        self.pacing.close()
        self.background.close(self._wound_up())

    async def _wound_up(self) -> None:
        for provider in self._providers.values():
            await provider.close()

    def choice(self, role: str) -> Choice:
        """The model of a role and its use. Raises UnavailableError for a role without one."""
        if role not in self._choices:
            raise UnavailableError(f"no model is chosen for the role {role}; set CDA_MODEL or CDA_MODEL_{role.upper()}")
        return self._choices[role]

    def _provider(self, choice: Choice) -> ModelProvider:
        return self._providers[choice.provider]

    def _received(self, asking: "_Asking") -> Received:
        """One answer, asked for as often as tries and time allow; a try that failed for good is recorded and raised."""
        fault = CallFault(FailureKind.TIMED_OUT, "no try was allowed")
        for attempt in range(self._tries):
            asking.tries += 1
            tried = self._tried(asking)
            if isinstance(tried, Received):
                return tried
            fault = tried
            wait = fault.wait_s if fault.wait_s is not None else self._first_wait_s * 2**attempt
            if fault.wait_s is None:
                wait = min(wait, LONGEST_WAIT_S)
            fault = _spent(fault, wait, asking.left_s)
            last = not fault.again or attempt == self._tries - 1
            if last or fault.lost:
                asking.record(
                    fault.kind, most_used(asking.request, asking.choice) if fault.lost else Usage(), fault.lost
                )
            if last:
                break
            try:
                self.pacing.sleep(wait)
            except Closed:
                fault = CallFault(FailureKind.UNREACHABLE, "the client was closed")
                break
        raise ModelFailure(fault.kind, asking.request.role, fault.detail)

    def _tried(self, asking: "_Asking") -> Received | CallFault:
        """One try in its turn. What a library raises is named here and let go: its text may hold what was sent."""
        asking.meter.admit()
        try:
            with self.pacing.turn(monotonic() + asking.left_s) as began:
                asking.begun()
                seconds = asking.left_s
                if seconds <= 0:
                    raise NoTurn
                sent = self._provider(asking.choice).send(asking.request, asking.choice, seconds)
                try:
                    received = self.background.run(sent, seconds)
                except CallFault as fault:
                    if fault.kind is FailureKind.OVERLOADED:
                        self.pacing.pushed_back(began, fault.wait_s or 0.0)
                    return fault
                self.pacing.went_well()
                return received
        except NoTurn:
            return CallFault(FailureKind.TIMED_OUT, "no time was left to ask")
        except TimeoutError as caught:
            return transport_fault(caught)
        except (Closed, CancelledError):
            return CallFault(FailureKind.UNREACHABLE, "the client was closed")


@dataclass(slots=True)
class _Asking:
    """One question under way: its clock, its tries and what was recorded of it."""

    request: ModelRequest
    choice: Choice
    meter: RunMeter
    prices: Prices
    tries: int = 0
    calls: list[ModelCall] = field(default_factory=list)
    started: float = field(default_factory=monotonic)
    deadline: float | None = None

    @property
    def left_s(self) -> float:
        """Seconds left for the run and, from its first turn on, for the role."""
        run = self.meter.remaining_s
        return run if self.deadline is None else min(run, self.deadline - monotonic())

    def begun(self) -> None:
        """The role's time runs from its first turn: others' calls are not its own."""
        if self.deadline is None:
            self.deadline = monotonic() + self.choice.max_seconds

    def record(self, outcome: str, usage: Usage | None, estimated: bool = False) -> None:
        """Count what was used since the last record."""
        told = usage if usage is not None else most_used(self.request, self.choice)
        usd = self.prices.cost(self.choice.name, told)
        call = ModelCall(
            role=self.request.role,
            model=self.choice.name,
            usage=told,
            usd=usd if usd else Decimal(0),
            seconds=monotonic() - self.started,
            outcome=str(outcome),
            tries=self.tries,
            static_sha256=hashlib.sha256(self.request.static.encode()).hexdigest(),
            estimated=estimated or usage is None,
        )
        self.calls.append(call)
        self.started, self.tries = monotonic(), 0
        self.meter.record(call)


def judged(request: ModelRequest, received: Received) -> tuple[ModelFailure | None, BaseModel | None]:
    """What a paid answer is worth: a failure, or the answer that satisfies the contract (None when none was asked)."""
    kind, detail, answer = _judged(request, received)
    return (None if kind is None else ModelFailure(kind, request.role, detail)), answer


def _judged(request: ModelRequest, received: Received) -> tuple[FailureKind | None, str, BaseModel | None]:
    match received.ending:
        case Ending.REFUSED:
            return FailureKind.REFUSED, f"the model refused{received.note and f' ({received.note})'}", None
        case Ending.TRUNCATED:
            return FailureKind.TRUNCATED, "the answer was cut at its largest size", None
        case Ending.ODD:
            return FailureKind.BAD_ANSWER, f"the model stopped for a reason not known here ({received.note})", None
    if request.answer is None or (received.turn.calls and request.tools):
        return None, "", None
    try:
        return None, "", request.answer.model_validate_json(received.answer_text)
    except ValidationError as error:
        faults = error.errors(include_input=False, include_context=False, include_url=False)
        kinds = ", ".join(sorted({fault["type"] for fault in faults}))
        return FailureKind.BAD_ANSWER, f"the answer breaks its contract in {len(faults)} places ({kinds})", None


def _complained(request: ModelRequest, received: Received, failure: ModelFailure) -> ModelRequest:
    """The same question, with the answer that broke its contract and what is wrong with it."""
    said = (ModelTurn(received.answer_text),) if received.answer_text else ()
    wrong = json.dumps({"error": str(failure), "do": "Answer again, whole, as the schema says."})
    return replace(request, turns=(*request.turns, *said, UserTurn(wrong)))


def _spent(fault: CallFault, wait: float, left_s: float) -> CallFault:
    """The fault, final when the wait would take longer than there is time."""
    if not fault.again or wait < left_s:
        return fault
    asked = f"; it asks to wait {wait:g} s and {left_s:.1f} s are left" if fault.wait_s is not None else ""
    return CallFault(fault.kind, fault.detail + asked, lost=fault.lost)


def _anthropic_remedy(kind: FailureKind) -> str:
    match kind:
        case FailureKind.UNAUTHORISED:
            return "correct ANTHROPIC_API_KEY"
        case FailureKind.UNKNOWN_MODEL:
            return "correct CDA_MODEL"
        case _:
            return "try again later, or correct ANTHROPIC_BASE_URL"


def _openai_remedy(kind: FailureKind) -> str:
    return _anthropic_remedy(kind).replace("ANTHROPIC", "OPENAI")


_REMEDIES = {"anthropic": _anthropic_remedy, "openai": _openai_remedy}
