"""The Messages API through Anthropic's library: the one module that imports it.

The library's retries, spans and debug log are off: the first would sleep past our deadline, the last two can hold what
was sent. Nothing is kept on the server: every request carries its whole conversation.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import anthropic
from pydantic import BaseModel

from cda.contracts.model_client import (
    FailureKind,
    ModelRequest,
    ModelTurn,
    ResultsTurn,
    ToolCall,
    ToolSpec,
    Turn,
    Usage,
    UserTurn,
)
from cda.llm.choice import Choice
from cda.llm.provider import (
    BatchItem,
    BatchResult,
    CallFault,
    Ending,
    Received,
    no_answer,
    status_fault,
    transport_fault,
)

PUBLIC = "https://api.anthropic.com"
CONNECT_S = 5.0
CACHED: dict[str, Any] = {"type": "ephemeral"}
ENDINGS = {
    "end_turn": Ending.DONE,
    "stop_sequence": Ending.DONE,
    "tool_use": Ending.DONE,
    "max_tokens": Ending.TRUNCATED,
    "model_context_window_exceeded": Ending.TRUNCATED,
    "refusal": Ending.REFUSED,
}
KEPT = {"thinking", "redacted_thinking"}  # blocks that the API wants back within a tool loop


class AnthropicProvider:
    """One account at one address."""

    repairs = 0  # the API holds answers to their schema; what it cannot hold them to is not asked for twice

    def __init__(self, key: str, base_url: str | None) -> None:
        for name in ("anthropic", "httpx2", "httpcore2"):
            logging.getLogger(name).setLevel(logging.WARNING)
        self._sdk = anthropic.AsyncAnthropic(
            api_key=key, base_url=base_url or PUBLIC, max_retries=0, open_telemetry=False, webhook_key=""
        )

    async def send(self, request: ModelRequest, choice: Choice, seconds: float) -> Received:
        """Ask once. Raises CallFault."""
        whole = body(request, choice)
        timeout = anthropic.Timeout(seconds, connect=min(CONNECT_S, seconds))
        fault: CallFault
        try:
            message = await self._sdk.messages.create(**whole, timeout=timeout)
            got = received(message)
            if got is not None:
                return got
            fault = no_answer()
        except Exception as caught:  # the library's own boundary: it lets foreign errors out
            fault = _fault(caught)
        raise fault

    async def count(self, request: ModelRequest, choice: Choice) -> int:
        """Input tokens of a request as the service counts them; free. Raises CallFault."""
        whole = body(request, choice)
        del whole["max_tokens"]
        fault: CallFault
        try:
            return (await self._sdk.messages.count_tokens(**whole)).input_tokens
        except Exception as caught:
            fault = _fault(caught)
        raise fault

    async def look(self, model: str) -> None:
        """See that the service has the model and that it keeps to a schema. Raises CallFault."""
        fault: CallFault | None = None
        try:
            info = await self._sdk.models.retrieve(model)
            able = info.capabilities.structured_outputs.supported if info.capabilities else True
            if info.lifecycle == "retired":
                fault = CallFault(FailureKind.UNKNOWN_MODEL, "the model is retired")
            elif not able:
                fault = CallFault(FailureKind.UNKNOWN_MODEL, "the model cannot keep to a schema")
        except Exception as caught:
            fault = _fault(caught)
        if fault is not None:
            raise fault

    def body(self, request: ModelRequest, choice: Choice) -> Mapping[str, Any]:
        """What is sent for a question."""
        return body(request, choice)

    async def make_batch(self, items: Sequence[BatchItem]) -> str:
        """The name of a new batch. Raises CallFault."""
        wanted: list[Any] = [{"custom_id": item.item_id, "params": body(item.request, item.choice)} for item in items]
        fault: CallFault
        try:
            return (await self._sdk.messages.batches.create(requests=wanted)).id
        except Exception as caught:  # the library's own boundary
            fault = _fault(caught)
        raise fault

    async def batch_ended(self, name: str) -> bool:
        """Whether every question of a batch has come to an end. Raises CallFault."""
        fault: CallFault
        try:
            return (await self._sdk.messages.batches.retrieve(name)).processing_status == "ended"
        except Exception as caught:  # the library's own boundary
            fault = _fault(caught)
        raise fault

    async def batches(self) -> list[tuple[str, int, bool]]:
        """The account's newest batches: name, questions, whether ended. Raises CallFault."""
        fault: CallFault
        try:
            page = await self._sdk.messages.batches.list(limit=100)
            return [(one.id, _count(one.request_counts), one.processing_status == "ended") for one in page.data]
        except Exception as caught:  # the library's own boundary
            fault = _fault(caught)
        raise fault

    async def batch_results(self, name: str) -> list[BatchResult]:
        """What came of a batch that has ended. Raises CallFault."""
        fault: CallFault
        try:
            lines = await self._sdk.messages.batches.results(name)
            return [_result(line) async for line in lines]
        except Exception as caught:  # the library's own boundary
            fault = _fault(caught)
        raise fault

    async def close(self) -> None:
        """Free the connections."""
        await self._sdk.close()


def body(request: ModelRequest, choice: Choice) -> dict[str, Any]:
    """The request as the API takes it. What is the same in every request of a role comes first and is marked for the
    cache; in a tool loop the conversation so far is marked too."""
    whole: dict[str, Any] = {
        "model": choice.model,
        "max_tokens": choice.max_tokens,
        "system": [{"type": "text", "text": request.static, "cache_control": CACHED}],
        "messages": [_message(turn) for turn in request.turns],
    }
    config: dict[str, Any] = {}
    if choice.effort is not None:
        config["effort"] = choice.effort
    if request.answer is not None:
        config["format"] = {"type": "json_schema", "schema": _schema(request.answer)}
    if config:
        whole["output_config"] = config
    if choice.thinking is not None:
        whole["thinking"] = {"type": choice.thinking}
    if request.tools:
        whole["tools"] = [_tool(tool) for tool in request.tools]
        whole["cache_control"] = CACHED
    return whole


def _schema(answer: type[BaseModel]) -> dict[str, Any]:
    return anthropic.transform_schema(answer)


def _tool(tool: ToolSpec) -> dict[str, Any]:
    schema = anthropic.transform_schema(dict(tool.schema))
    return {"name": tool.name, "description": tool.description, "input_schema": schema, "strict": True}


def _message(turn: Turn) -> dict[str, Any]:
    match turn:
        case UserTurn(content):
            return {"role": "user", "content": [{"type": "text", "text": content}]}
        case ModelTurn(text, calls, carried):
            return {"role": "assistant", "content": json.loads(carried) if carried else _said(text, calls)}
        case ResultsTurn(results):
            return {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": result.call_id,
                        "content": result.content,
                        **({"is_error": True} if result.is_error else {}),
                    }
                    for result in results
                ],
            }


def _said(text: str, calls: tuple[ToolCall, ...]) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    return said + [
        {"type": "tool_use", "id": call.call_id, "name": call.name, "input": dict(call.arguments)} for call in calls
    ]


def received(message: anthropic.types.Message) -> Received | None:
    """What a message says. The library does not check what it parses: None for a body that is no message."""
    try:
        texts = [block.text for block in message.content if block.type == "text"]
        calls = tuple(
            ToolCall(block.id, block.name, _mapping(block.input))
            for block in message.content
            if block.type == "tool_use"
        )
        kept = any(block.type in KEPT for block in message.content)
        carried = json.dumps([block.to_dict() for block in message.content]) if kept else ""
        stop = message.stop_reason or "none"
        details = message.stop_details
        usage = message.usage
        told = Usage(
            input=usage.input_tokens,
            cache_read=usage.cache_read_input_tokens or 0,
            cache_write=usage.cache_creation_input_tokens or 0,
            output=usage.output_tokens,
        )
    except (AttributeError, TypeError, ValueError):
        return None
    ending = ENDINGS.get(stop, Ending.ODD)
    note = (details.category or "") if ending is Ending.REFUSED and details is not None else stop
    text = "".join(texts)
    return Received(
        ModelTurn(text, calls, carried), ending, told, text, note if note.replace("_", "").isalpha() else ""
    )


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError("arguments are an object")
    return value


def _count(counts: anthropic.types.messages.MessageBatchRequestCounts) -> int:
    return counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired


def _result(line: Any) -> BatchResult:
    """One line of a batch's results. Only what succeeded is paid."""
    match line.result.type:
        case "succeeded":
            got = received(line.result.message)
            return BatchResult(line.custom_id, got, None if got is not None else no_answer())
        case "errored":
            word = str(line.result.error.error.type)
            kind = FailureKind.REJECTED if word == "invalid_request_error" else FailureKind.UNREACHABLE
            detail = f"the batch says {word}" if word.replace("_", "").isalpha() else "the batch says that it failed"
        case "expired":
            kind, detail = FailureKind.TIMED_OUT, "the batch expired before this question was asked"
        case _:
            kind, detail = FailureKind.UNREACHABLE, "the batch was cancelled before this question was asked"
    return BatchResult(line.custom_id, None, CallFault(kind, detail))


def _fault(error: Exception) -> CallFault:
    if isinstance(error, anthropic.APIStatusError):
        word = str(error.error_code or error.type or "")
        return status_fault(error.status_code, word if word.replace("_", "").isalpha() else "", error.response.headers)
    if isinstance(error, (anthropic.APIResponseValidationError, AttributeError, TypeError)):
        return no_answer()
    return transport_fault(error)
