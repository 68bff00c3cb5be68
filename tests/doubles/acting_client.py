"""A model client whose models are actors, in process: requests are taken as the contract has them, answers validated.

For the harness's side alone; that the real client libraries carry the same requests is shown over the wire doubles.
"""

import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from doubles.actors import Actor, Said, Seen, role_of
from pydantic import ValidationError

from cda.contracts.model_client import (
    FailureKind,
    ModelCall,
    ModelFailure,
    ModelReply,
    ModelRequest,
    ModelTurn,
    ResultsTurn,
    RunMeter,
    ToolCall,
    Usage,
    UserTurn,
)


def seen_in(request: ModelRequest) -> Seen:
    """What an actor is shown of a request."""
    first = request.turns[0]
    assert isinstance(first, UserTurn)
    results = [r.content for turn in request.turns if isinstance(turn, ResultsTurn) for r in turn.results]
    return Seen(role_of(request.static), request.static, json.loads(first.content), results)


class ActingClient:
    """Answers with an actor; `requests` holds what was asked."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor
        self._lock = threading.Lock()
        self.requests: list[ModelRequest] = []

    def ask(self, request: ModelRequest, meter: RunMeter) -> ModelReply:
        meter.admit()
        with self._lock:
            self.requests.append(request)
        said = self._actor(seen_in(request))
        call = ModelCall(request.role, "test:actor", Usage(input=1000, output=100), Decimal("0.001"), 0.0, "ok")
        try:
            answer = request.answer.model_validate(said.answer) if request.answer is not None else None
        except ValidationError:
            meter.record(replace(call, outcome=FailureKind.BAD_ANSWER.value))
            raise ModelFailure(FailureKind.BAD_ANSWER, request.role) from None
        meter.record(call)
        return ModelReply(_turn(said), answer, call)

    def describe(self, role: str) -> str:
        return "test:actor"

    def close(self) -> None:
        return None


class StallingClient(ActingClient):
    """A client whose model never answers: it gives up when the run's time is over, as the real ones do."""

    def ask(self, request: ModelRequest, meter: RunMeter) -> ModelReply:
        meter.admit()
        threading.Event().wait(meter.remaining_s)
        call = ModelCall(request.role, "test:actor", Usage(), Decimal(0), 0.0, FailureKind.TIMED_OUT.value)
        meter.record(call)
        raise ModelFailure(FailureKind.TIMED_OUT, request.role)


def _turn(said: Said) -> ModelTurn:
    calls = tuple(ToolCall(f"call_{n}", name, dict(arguments)) for n, (name, arguments) in enumerate(said.calls))
    text: Mapping[str, Any] | None = said.answer
    return ModelTurn(json.dumps(text) if text is not None else "", calls)
