"""Chat completions of any compatible server through OpenAI's library: the one module that imports it.

An answer is asked for by schema; a server that takes none is asked to call one tool with the answer's schema instead.
The library's retries and debug log are off, as in `cda.llm.anthropic_provider`.
"""

import json
import logging
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import openai
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
from cda.llm.provider import CallFault, Ending, Received, no_answer, status_fault, transport_fault

PUBLIC = "https://api.openai.com/v1"
CONNECT_S = 5.0
ANSWER = "answer"  # the tool that carries an answer where a server takes no schema
ENDINGS = {
    "stop": Ending.DONE,
    "tool_calls": Ending.DONE,
    "function_call": Ending.DONE,
    "length": Ending.TRUNCATED,
    "content_filter": Ending.REFUSED,
}


class OpenAIProvider:
    """One account at one address; `key` is empty for a server that asks for none."""

    repairs = 1  # many compatible servers do not hold an answer to its schema

    def __init__(self, key: str, base_url: str | None) -> None:
        for name in ("openai", "httpx2", "httpcore2"):
            logging.getLogger(name).setLevel(logging.WARNING)
        self._public = base_url is None
        self._schemaless: set[str] = set()
        self._sdk = openai.AsyncOpenAI(
            api_key=key or "none",
            base_url=base_url or PUBLIC,
            max_retries=0,
            webhook_secret="",
        )
        self._sdk.organization = self._sdk.project = None  # the environment is read by settings alone

    async def send(self, request: ModelRequest, choice: Choice, seconds: float) -> Received:
        """Ask once; a server that refuses the schema is asked anew by tool. Raises CallFault."""
        by_tool = choice.model in self._schemaless
        try:
            return await self._sent(request, choice, seconds, by_tool=by_tool)
        except CallFault as fault:
            if by_tool or request.answer is None or fault.kind is not FailureKind.REJECTED:
                raise
        answered = await self._sent(request, choice, seconds, by_tool=True)
        self._schemaless.add(choice.model)
        return answered

    async def _sent(self, request: ModelRequest, choice: Choice, seconds: float, *, by_tool: bool) -> Received:
        whole = body(request, choice, by_tool=by_tool, public=self._public)
        timeout = openai.Timeout(seconds, connect=min(CONNECT_S, seconds))
        fault: CallFault
        try:
            got = received(await self._sdk.chat.completions.create(**whole, timeout=timeout))
            if got is not None:
                return got
            fault = no_answer()
        except Exception as caught:  # the library's own boundary: it lets foreign errors out
            fault = _fault(caught)
        raise fault

    async def look(self, model: str) -> None:
        """See that the server has the model, by its name or in its list; one that can tell neither is taken at its
        word. Raises CallFault."""
        fault = await self._looked(model)
        if fault is None:
            return
        if fault.kind is FailureKind.UNKNOWN_MODEL:
            try:
                listed = [one.id async for one in self._sdk.models.list()]
            except Exception as caught:  # the library's own boundary
                if _fault(caught).kind is FailureKind.UNKNOWN_MODEL:
                    return
                listed = []
            if model in listed:
                return
        raise fault

    async def _looked(self, model: str) -> CallFault | None:
        try:
            await self._sdk.models.retrieve(model)
        except Exception as caught:  # the library's own boundary
            return _fault(caught)
        return None

    async def close(self) -> None:
        """Free the connections."""
        await self._sdk.close()


def body(request: ModelRequest, choice: Choice, *, by_tool: bool, public: bool) -> dict[str, Any]:
    """The request as the API takes it. What is the same in every request of a role comes first: servers cache it."""
    whole: dict[str, Any] = {
        "model": choice.model,
        "messages": [{"role": "system", "content": request.static}],
        "max_completion_tokens" if public else "max_tokens": choice.max_tokens,
    }
    for turn in request.turns:
        whole["messages"] += _messages(turn)
    if choice.effort is not None:
        whole["reasoning_effort"] = choice.effort
    tools = [_tool(tool) for tool in request.tools]
    if request.answer is not None and not by_tool:
        schema = {"name": ANSWER, "schema": _schema(request.answer)["parameters"], "strict": True}
        whole["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif request.answer is not None:
        tools.append({"type": "function", "function": _schema(request.answer)})
        named = {"type": "function", "function": {"name": ANSWER}}
        whole["tool_choice"] = "required" if request.tools else named
    if tools:
        whole["tools"] = tools
    return whole


@lru_cache(maxsize=64)
def _schema(answer: type[BaseModel]) -> dict[str, Any]:
    """The answer's contract as a strict function; every field required, as strict schemas must be."""
    function = dict(openai.pydantic_function_tool(answer, name=ANSWER)["function"])
    return {"name": ANSWER, "parameters": _plain(function["parameters"]), "strict": True}


def _plain(schema: Any) -> Any:
    """The schema without what strict schemas do not take: defaults, and choices by discriminator."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: value for name, value in schema.items() if name not in ("default", "discriminator")}
    if "oneOf" in kept:
        kept["anyOf"] = kept.pop("oneOf")
    for name, value in kept.items():
        fields = name in ("properties", "$defs") and isinstance(value, dict)
        kept[name] = {key: _plain(inner) for key, inner in value.items()} if fields else _plain(value)
    return kept


def _tool(tool: ToolSpec) -> dict[str, Any]:
    parameters = {"additionalProperties": False, **tool.schema}
    function = {"name": tool.name, "description": tool.description, "parameters": parameters, "strict": True}
    return {"type": "function", "function": function}


def _messages(turn: Turn) -> list[dict[str, Any]]:
    match turn:
        case UserTurn(content):
            return [{"role": "user", "content": content}]
        case ModelTurn(text, calls):
            said: dict[str, Any] = {"role": "assistant", "content": text or None}
            if calls:
                said["tool_calls"] = [
                    {
                        "id": call.call_id,
                        "type": "function",
                        "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments))},
                    }
                    for call in calls
                ]
            return [said]
        case ResultsTurn(results):
            return [{"role": "tool", "tool_call_id": one.call_id, "content": one.content} for one in results]


def received(completion: Any) -> Received | None:
    """What a completion says. The library does not check what it parses: None for a body that is none."""
    try:
        first = completion.choices[0]
        said, stop = first.message, first.finish_reason or "none"
        made = [(call.id, call.function.name, call.function.arguments) for call in said.tool_calls or []]
        answers = [text for _, name, text in made if name == ANSWER]
        calls = tuple(ToolCall(key, name, _arguments(text)) for key, name, text in made if name != ANSWER)
        usage = _usage(completion.usage)
        refused = bool(getattr(said, "refusal", None))
        text = said.content or ""
    except (AttributeError, TypeError, ValueError, IndexError):
        return None
    ending = Ending.REFUSED if refused else ENDINGS.get(stop, Ending.ODD)
    note = stop if ending is Ending.ODD and stop.replace("_", "").isalpha() else ""
    return Received(ModelTurn(text, calls), ending, usage, answers[0] if answers else text, note)


def _arguments(text: str) -> Mapping[str, Any]:
    """Arguments that are no JSON object are given as the role will refuse them: under a name that no tool has."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"": "not a JSON object"}


def _usage(told: Any) -> Usage | None:
    """None for a server that tells no usage. The prompt's count includes what was read from a cache."""
    if told is None:
        return None
    details = getattr(told, "prompt_tokens_details", None)
    cached = int(getattr(details, "cached_tokens", None) or 0)
    return Usage(input=told.prompt_tokens - cached, cache_read=cached, output=told.completion_tokens)


def _fault(error: Exception) -> CallFault:
    if isinstance(error, openai.APIStatusError):
        word = str(error.code or error.type or "")
        word = word if word.replace("_", "").isalpha() else ""
        if error.status_code == 429 and word == "insufficient_quota":
            return CallFault(FailureKind.REJECTED, f"the service answered 429 {word}")
        return status_fault(error.status_code, word, error.response.headers)
    if isinstance(error, (openai.APIResponseValidationError, AttributeError, TypeError)):
        return no_answer()
    return transport_fault(error)
