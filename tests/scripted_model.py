"""A model client that answers what it is told to, for tests of what is built on one."""

from collections.abc import Callable
from decimal import Decimal
from threading import Lock

from pydantic import BaseModel

from cda.contracts.model_client import (
    ModelCall,
    ModelFailure,
    ModelReply,
    ModelRequest,
    ModelTurn,
    RunMeter,
    Usage,
)

Answerer = Callable[[ModelRequest], BaseModel | ModelFailure]


class ScriptedModel:
    """Asks `answerer` and bills 100 + 10 tokens, one cent, a call; a failure is billed too."""

    def __init__(self, answerer: Answerer) -> None:
        self._answerer = answerer
        self._lock = Lock()
        self.requests: list[ModelRequest] = []

    def ask(self, request: ModelRequest, meter: RunMeter) -> ModelReply:
        meter.admit()
        with self._lock:
            self.requests.append(request)
        answer = self._answerer(request)
        failed = isinstance(answer, ModelFailure)
        call = ModelCall(
            role=request.role,
            model=self.describe(request.role),
            usage=Usage(input=100, output=10),
            usd=Decimal("0.01"),
            seconds=0.5,
            outcome=answer.kind.value if isinstance(answer, ModelFailure) else "ok",
        )
        meter.record(call)
        if isinstance(answer, ModelFailure):
            raise answer
        assert not failed
        return ModelReply(turn=ModelTurn(answer.model_dump_json()), answer=answer, call=call)

    def describe(self, role: str) -> str:
        return "scripted:one"

    def close(self) -> None:
        pass
