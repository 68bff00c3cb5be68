"""The rules and replies of the Messages API as its double knows them: version 2026-10-21.

What the service refuses is refused here, so that a request which passes is one that the service would take.
"""

import hashlib
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from doubles.messages_actor import Said

VERSION = "2026-10-21"
GONE = ("temperature", "top_p", "top_k")
SCHEMA_WORDS = {
    "type", "enum", "const", "anyOf", "allOf", "$ref", "$defs", "properties", "required", "items", "minItems",
    "additionalProperties", "description", "title", "format",
}  # fmt: skip
CHUNK = 12  # characters of one streamed delta


class Refused(Exception):
    """An error answer of the service."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message

    def document(self) -> dict[str, Any]:
        return {
            "type": "error",
            "error": {"type": self.kind, "message": self.message, "details": None},
            "request_id": "req_double",
        }


def bad(message: str) -> Refused:
    return Refused(400, "invalid_request_error", message)


def check(body: Mapping[str, Any], models: Mapping[str, int], *, counting: bool = False) -> None:
    """Refuse what the service would refuse."""
    if body.get("model") not in models:
        raise Refused(404, "not_found_error", f"model: {body.get('model')}")
    for name in GONE:
        if name in body:
            raise bad(f"{name}: not supported")
    tokens = body.get("max_tokens")
    if not counting and (not isinstance(tokens, int) or not 0 <= tokens <= 128_000):
        raise bad("max_tokens: a number up to 128000")
    for block in body.get("system", []):
        if block["type"] != "text" or not block["text"]:
            raise bad("system: text blocks that are not empty")
    _messages(body.get("messages") or [])
    form = (body.get("output_config") or {}).get("format")
    if form is not None:
        if form.get("type") != "json_schema":
            raise bad("output_config.format.type: json_schema")
        _schema(form["schema"], "output_config.format.schema")
    names = [tool["name"] for tool in body.get("tools", [])]
    if len(set(names)) != len(names):
        raise bad("tools: names must be unique")
    for tool in body.get("tools", []):
        _schema(tool["input_schema"], f"tools.{tool['name']}")
    if sum(1 for _ in _breakpoints(body)) > 4:
        raise bad("cache_control: at most 4 breakpoints")


def _messages(messages: list[Mapping[str, Any]]) -> None:
    if not messages or messages[0]["role"] != "user":
        raise bad("messages: the first is the user's")
    if messages[-1]["role"] == "assistant":
        raise bad("messages: this model does not support prefilling")
    open_calls: set[str] = set()
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks or any(block["type"] == "text" and not block["text"] for block in blocks):
            raise bad("messages: text content blocks must be non-empty")
        answered = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
        if message["role"] == "user" and answered != open_calls:
            raise bad("messages: each tool_use must have its tool_result in the next message")
        open_calls = {block["id"] for block in blocks if block["type"] == "tool_use"}


def _schema(schema: Any, where: str) -> None:
    if not isinstance(schema, Mapping):
        return
    extra = set(schema) - SCHEMA_WORDS
    if extra:
        raise bad(f"{where}: {', '.join(sorted(extra))} not supported")
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        raise bad(f"{where}: additionalProperties must be false")
    for name in ("properties", "$defs"):
        for key, inner in schema.get(name, {}).items():
            _schema(inner, f"{where}.{key}")
    for inner in [*schema.get("anyOf", []), *schema.get("allOf", []), schema.get("items")]:
        _schema(inner, where)


def _breakpoints(body: Mapping[str, Any]) -> Any:
    blocks = [*body.get("tools", []), *body.get("system", [])]
    for message in body.get("messages", []):
        blocks += message["content"] if isinstance(message["content"], list) else []
    yield from (block for block in [*blocks, body] if block.get("cache_control"))


def tokens_of(value: Any) -> int:
    """Tokens of a text or a piece of a request: four bytes each, rounded up."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return -(-len(text.encode()) // 4)


@dataclass
class Cache:
    """Prefixes that were sent before. A prefix shorter than the model's floor is not cached and nothing is said."""

    seen: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def usage(self, body: Mapping[str, Any], floor: int) -> dict[str, int]:
        """Input tokens as the service splits them: the static prefix, and in a loop the conversation before."""
        prefix = {"model": body["model"], "tools": body.get("tools", []), "system": body.get("system", [])}
        whole = tokens_of([body.get("tools", []), body.get("system", []), body["messages"]])
        marks = [(prefix, tokens_of([prefix["tools"], prefix["system"]]))]
        if body.get("cache_control"):
            marks += [
                ({**prefix, "messages": body["messages"][: end + 1]}, tokens_of([prefix, body["messages"][: end + 1]]))
                for end in range(len(body["messages"]))
            ]
        elif not any(block.get("cache_control") for block in body.get("system", [])):
            marks = []
        read = 0
        written = 0
        with self.lock:
            for text, marked in marks:
                size = min(marked, whole)
                key = hashlib.sha256(json.dumps(text, sort_keys=True).encode()).hexdigest()
                if size < floor:
                    continue
                if key in self.seen:
                    read = max(read, size)
                else:
                    self.seen.add(key)
                    written = max(written, size)
        written = max(0, written - read)
        return {
            "input_tokens": whole - read - written,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
        }


def message(body: Mapping[str, Any], said: Said, usage: Mapping[str, int], number: int) -> dict[str, Any]:
    """The reply: what was said, cut at max_tokens."""
    words, stop = said.words, said.stop
    room = body["max_tokens"] * 4
    if stop is None and len(words.encode()) > room:
        words, stop = words.encode()[:room].decode(errors="ignore"), "max_tokens"
    content: list[dict[str, Any]] = []
    if said.thinking:
        content.append({"type": "thinking", "thinking": said.thinking, "signature": "c2lnbmVk"})
    if words:
        content.append({"type": "text", "text": words, "citations": None})
    content += [
        {"type": "tool_use", "id": f"toolu_{number:06}_{place}", "name": name, "input": dict(arguments)}
        for place, (name, arguments) in enumerate(said.calls)
    ]
    stop = stop or ("tool_use" if said.calls else "end_turn")
    details = {"type": "refusal", "category": "bio", "explanation": None} if stop == "refusal" else None
    return {
        "id": f"msg_{number:06}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "stop_details": details,
        "usage": {**usage, "output_tokens": tokens_of(content) if content else 1, "service_tier": "standard"},
    }


def events(whole: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The same reply as the events of a stream."""
    head = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    found: list[tuple[str, dict[str, Any]]] = [("message_start", {"message": head})]
    for place, block in enumerate(whole["content"]):
        empty, deltas = _streamed(block)
        found.append(("content_block_start", {"index": place, "content_block": empty}))
        found += [("content_block_delta", {"index": place, "delta": delta}) for delta in deltas]
        found.append(("content_block_stop", {"index": place}))
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None, "stop_details": whole["stop_details"]}
    found.append(("message_delta", {"delta": end, "usage": {"output_tokens": whole["usage"]["output_tokens"]}}))
    return [*found, ("message_stop", {})]


def _streamed(block: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    match block["type"]:
        case "text":
            text = block["text"]
            parts = [text[at : at + CHUNK] for at in range(0, len(text), CHUNK)]
            return {**block, "text": ""}, [{"type": "text_delta", "text": part} for part in parts]
        case "tool_use":
            text = json.dumps(block["input"])
            parts = [text[at : at + CHUNK] for at in range(0, len(text), CHUNK)]
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": part} for part in parts]
        case _:
            signature = {"type": "signature_delta", "signature": block["signature"]}
            return {**block, "thinking": "", "signature": ""}, [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                signature,
            ]
