"""A client whose model is a function: for tests and for reading recorded answers. Nothing leaves the process."""

import hashlib
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Protocol

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
    Turn,
    Usage,
    UserTurn,
)
from cda.llm.calling import OK, judged
from cda.llm.provider import Ending, Received

BYTES_PER_TOKEN = 4
PRICE = Decimal("0.000001")  # a token, of either kind: so that a budget in money is exercised too


class Spoken(Protocol):
    """What a script gives back: words (an answer is JSON), calls of tools, and why it stopped if not by itself."""

    @property
    def words(self) -> str:
        """The text."""
        ...

    @property
    def calls(self) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        """Calls as (name, arguments)."""
        ...

    @property
    def stop(self) -> str | None:
        """None, "refusal" or "max_tokens"."""
        ...


class ScriptedClient:
    """A `ModelClient` over a function of the request's body, in the form of the Messages API."""

    def __init__(self, script: Callable[[Mapping[str, Any]], Spoken], model: str = "scripted:script") -> None:
        self._script, self._model, self._closed, self._number = script, model, False, 0

    def ask(self, request: ModelRequest, meter: RunMeter) -> ModelReply:
        """Answer at once. Raises ModelFailure as any client does."""
        if self._closed:
            raise ModelFailure(FailureKind.UNREACHABLE, request.role, "the client was closed")
        meter.admit()
        self._number += 1
        body = _body(request)
        said = self._script(body)
        calls = tuple(
            ToolCall(f"call_{self._number}_{place}", name, arguments)
            for place, (name, arguments) in enumerate(said.calls)
        )
        ending = {"refusal": Ending.REFUSED, "max_tokens": Ending.TRUNCATED}.get(said.stop or "", Ending.DONE)
        failure, answer = judged(request, Received(ModelTurn(said.words, calls), ending, None, said.words))
        call = self._call(request, body, said, failure.kind if failure else OK)
        meter.record(call)
        if failure is not None:
            raise failure
        return ModelReply(ModelTurn(said.words, calls), answer, call)

    def describe(self, role: str) -> str:  # noqa: ARG002 - one script plays every role
        """The name of the script, for every role."""
        return self._model

    def close(self) -> None:
        """Answer no more."""
        self._closed = True

    def _call(self, request: ModelRequest, body: Mapping[str, Any], said: Spoken, outcome: str) -> ModelCall:
        usage = Usage(input=_tokens(body), output=_tokens([said.words, *said.calls]))
        return ModelCall(
            role=request.role,
            model=self._model,
            usage=usage,
            usd=(usage.input + usage.output) * PRICE,
            seconds=0.0,
            outcome=str(outcome),
            static_sha256=hashlib.sha256(request.static.encode()).hexdigest(),
        )


def _tokens(value: Any) -> int:
    return -(-len(json.dumps(value, ensure_ascii=False, default=dict).encode()) // BYTES_PER_TOKEN)


def _body(request: ModelRequest) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "model": "script",
        "system": [{"type": "text", "text": request.static}],
        "messages": [_message(turn) for turn in request.turns],
    }
    if request.answer is not None:
        schema = request.answer.model_json_schema()
        whole["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    if request.tools:
        whole["tools"] = [{"name": tool.name, "input_schema": dict(tool.schema)} for tool in request.tools]
    return whole


def _message(turn: Turn) -> dict[str, Any]:
    match turn:
        case UserTurn(content):
            return {"role": "user", "content": [{"type": "text", "text": content}]}
        case ModelTurn(text, calls):
            said: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
            said += [
                {"type": "tool_use", "id": call.call_id, "name": call.name, "input": dict(call.arguments)}
                for call in calls
            ]
            return {"role": "assistant", "content": said}
        case ResultsTurn(results):
            answers = [{"type": "tool_result", "tool_use_id": one.call_id, "content": one.content} for one in results]
            return {"role": "user", "content": answers}
