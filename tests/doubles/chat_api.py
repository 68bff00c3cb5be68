"""Chat completions as the double knows them, for any compatible server."""

import json
from collections.abc import Mapping
from typing import Any

from doubles.messages_actor import Said
from doubles.messages_api import tokens_of

UNREAL = ("thinking", "output_config", "system", "cache_control")


class ChatRefused(Exception):
    """An error answer of a compatible server."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message

    def document(self) -> dict[str, Any]:
        kind = "invalid_request_error"
        return {"error": {"message": self.message, "type": kind, "param": None, "code": self.code}}


def check(body: Mapping[str, Any], models: Mapping[str, int], *, schemas: bool) -> None:
    """Refuse what the service would refuse; `schemas` tells whether this server takes a schema for the answer."""
    if body.get("model") not in models:
        raise ChatRefused(404, "model_not_found", f"The model {body.get('model')} does not exist")
    if any(name in body for name in UNREAL):
        raise ChatRefused(400, "unknown_parameter", "unknown parameter")
    form = body.get("response_format")
    if form is not None and not schemas:
        raise ChatRefused(400, "unsupported_parameter", "response_format is not supported")
    if form is not None:
        _strict(form["json_schema"]["schema"])
    for tool in body.get("tools", []):
        _strict(tool["function"]["parameters"])
    if not body.get("messages"):
        raise ChatRefused(400, "invalid", "messages: at least one")


def _strict(schema: Any) -> None:
    """A strict schema closes every object and requires every property."""
    if not isinstance(schema, Mapping):
        return
    if schema.get("type") == "object":
        closed = schema.get("additionalProperties") is False
        if not closed or set(schema.get("required", [])) != set(schema.get("properties", {})):
            raise ChatRefused(400, "invalid_json_schema", "objects are closed and every property is required")
    for word in ("default", "oneOf", "discriminator"):
        if word in schema:
            raise ChatRefused(400, "invalid_json_schema", f"{word} is not permitted")
    for inner in [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values()]:
        _strict(inner)
    for inner in [*schema.get("anyOf", []), *schema.get("allOf", []), schema.get("items")]:
        _strict(inner)


def as_messages(body: Mapping[str, Any]) -> dict[str, Any]:
    """The request in the form of the Messages API, for actors. A forced tool is the answer's schema."""
    system, messages = [], []
    for one in body["messages"]:
        match one["role"]:
            case "system" | "developer":
                system.append({"type": "text", "text": one["content"]})
            case "tool":
                result = {"type": "tool_result", "tool_use_id": one["tool_call_id"], "content": one["content"]}
                if messages and messages[-1]["role"] == "user":
                    messages[-1]["content"].append(result)
                else:
                    messages.append({"role": "user", "content": [result]})
            case role:
                content = [{"type": "text", "text": one["content"]}] if one.get("content") else []
                content += [_call(call) for call in one.get("tool_calls") or []]
                messages.append({"role": role, "content": content})
    whole: dict[str, Any] = {"model": body["model"], "system": system, "messages": messages}
    tools = [
        {"name": tool["function"]["name"], "input_schema": tool["function"]["parameters"]}
        for tool in body.get("tools", [])
    ]
    form = body.get("response_format")
    schema = form["json_schema"]["schema"] if form else None
    forced = forced_tool(body)
    if forced is not None:
        schema = next(tool["input_schema"] for tool in tools if tool["name"] == forced)
        tools = [tool for tool in tools if tool["name"] != forced]
    if schema is not None:
        whole["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    return {**whole, "tools": tools} if tools else whole


def forced_tool(body: Mapping[str, Any]) -> str | None:
    """The tool that the model must call, if one is named."""
    choice = body.get("tool_choice")
    return str(choice["function"]["name"]) if isinstance(choice, Mapping) else None


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    return {"type": "tool_use", "id": call["id"], "name": function["name"], "input": json.loads(function["arguments"])}


FINISHED = {"max_tokens": "length", "refusal": "content_filter", "tool_use": "tool_calls", "end_turn": "stop"}


def completion(body: Mapping[str, Any], said: Said, number: int) -> dict[str, Any]:
    """The reply, cut at its largest size."""
    words = said.words
    room = (body.get("max_completion_tokens") or body.get("max_tokens") or 1 << 20) * 4
    stop = said.stop
    if stop is None and len(words.encode()) > room:
        words, stop = words.encode()[:room].decode(errors="ignore"), "max_tokens"
    calls = [(name, json.dumps(dict(arguments))) for name, arguments in said.calls]
    forced = forced_tool(body)
    if forced is not None and not calls:
        calls, words = [(forced, words)], ""
    reply: dict[str, Any] = {"role": "assistant", "content": words or None, "refusal": None}
    if calls:
        reply["tool_calls"] = [
            {"id": f"call_{number:06}_{place}", "type": "function", "function": {"name": name, "arguments": text}}
            for place, (name, text) in enumerate(calls)
        ]
    reason = FINISHED[stop or ("tool_use" if said.calls else "end_turn")]
    tokens_in, out = tokens_of(body["messages"]), tokens_of(reply)
    return {
        "id": f"chatcmpl-{number:06}",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": body["model"],
        "choices": [{"index": 0, "message": reply, "finish_reason": reason, "logprobs": None}],
        "usage": {
            "prompt_tokens": tokens_in,
            "completion_tokens": out,
            "total_tokens": tokens_in + out,
            "prompt_tokens_details": {"cached_tokens": 0},
        },
    }
