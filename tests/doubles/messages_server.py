"""A double of the model services on loopback, for the real client libraries: Messages API and chat completions.

`double.url` is ANTHROPIC_BASE_URL; `double.openai_url` is OPENAI_BASE_URL. An actor answers (`doubles.messages_actor`),
faults are set on the object, and everything that came in is kept as raw bytes. By hand:

    PYTHONPATH=tests python -m doubles.messages_server --port 5081 --key anything
"""

import argparse
import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from doubles import chat_api, messages_api
from doubles.chat_api import ChatRefused
from doubles.messages_actor import Actor, Said, smallest
from doubles.messages_api import Cache, Refused
from doubles.messages_batches import Batches

Kind = Literal[
    "status", "page", "hang", "trickle", "drop", "cut", "garbled", "empty", "truncated", "refusal", "broken", "prose"
]
ASKING = ("/v1/messages", "/v1/chat/completions")
HAIKU, SONNET = "claude-haiku-4-5", "claude-sonnet-5"


@dataclass(frozen=True)
class Seen:
    """One request as it came in; `status` is 0 when no answer was sent. Times are of the monotonic clock."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    status: int
    came: float
    answered: float


@dataclass
class Fault:
    """What happens to the next `times` questions (or to requests of another `path`).

    status: an error answer. page: a gateway's HTML page. hang: nothing until the double closes. trickle: a byte every
    `seconds`. drop: read, then closed. cut: half of the answer. garbled: 200 with broken JSON. empty: 200 with {}.
    truncated: the answer is cut by its largest size. refusal: the model refuses. broken: JSON that breaks the schema.
    prose: words instead of JSON.
    """

    kind: Kind
    times: int = 1
    path: str | None = None
    status: int = 529
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.05


class ModelDouble:
    """The services. A context manager. `models` gives each model's shortest cached prefix in tokens; `latency_s` is
    what every question takes; `schemas` is whether the chat server takes a schema for the answer."""

    def __init__(self, actor: Actor = smallest, *, key: str = "the-key", port: int = 0) -> None:
        self.key, self.actor = key, actor
        self.models = {SONNET: 1024, HAIKU: 4096, "claude-opus-5": 512, "gpt-double": 1024}
        self.retired: set[str] = set()
        self.latency_s = 0.0
        self.schemas = True
        self.faults: list[Fault] = []
        self.seen: list[Seen] = []
        self.bodies: list[dict[str, Any]] = []
        self.cache = Cache()
        self.batches = Batches(self.answered)
        self.most_in_flight = self._in_flight = self._number = 0
        self.lock = threading.RLock()
        self.closing = threading.Event()

        class Handler(_Handler):
            service = self

        self._server = _Server(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.openai_url = self.url + "/v1"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def __enter__(self) -> "ModelDouble":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def questions(self) -> list[Seen]:
        """The requests that asked a model."""
        return [one for one in self.seen if urlsplit(one.path).path in ASKING]

    def take_fault(self, path: str) -> Fault | None:
        with self.lock:
            for fault in self.faults:
                fits = path in ASKING if fault.path is None else fault.path in path
                if fits and fault.times > 0:
                    fault.times -= 1
                    return fault
        return None

    def next_number(self) -> int:
        with self.lock:
            self._number += 1
            return self._number

    def enter(self, step: int) -> None:
        with self.lock:
            self._in_flight += step
            self.most_in_flight = max(self.most_in_flight, self._in_flight)

    def answered(self, body: Mapping[str, Any], fault: Fault | None = None) -> dict[str, Any]:
        """The reply to one question of the Messages API. Raises Refused."""
        messages_api.check(body, self.models)
        usage = self.cache.usage(body, self.models[body["model"]])
        return messages_api.message(body, self.said(body, fault), usage, self.next_number())

    def said(self, body: Mapping[str, Any], fault: Fault | None) -> Said:
        """What the actor says, or what a fault of the model makes of it."""
        match fault.kind if fault else None:
            case "truncated":
                words = self.actor(body).words
                return Said(text=words[: max(1, len(words) // 2)], stop="max_tokens")
            case "refusal":
                return Said(stop="refusal")
            case "broken":
                return Said(answer={"of_nobody": [1, 2]})
            case "prose":
                return Said(text="Happy to help! The member clearly qualifies.")
        return self.actor(body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service: ModelDouble
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Kept in `seen` instead."""

    def do_GET(self) -> None:
        self._came = time.monotonic()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.service.enter(1)
        try:
            self._answer(urlsplit(self.path).path, body)
        finally:
            self.service.enter(-1)

    do_POST = do_DELETE = do_GET  # noqa: N815 - the base class names them

    def _answer(self, path: str, body: bytes) -> None:
        service = self.service
        fault = service.take_fault(path)
        if service.closing.is_set():
            self.close_connection = True
            return
        if path in ASKING and service.latency_s:
            service.closing.wait(service.latency_s)
        kind = fault.kind if fault else None
        if kind in ("hang", "drop"):
            self._note(body, 0)
            if kind == "hang":
                service.closing.wait()
            self.close_connection = True
            return
        if fault is not None and kind in ("status", "page", "garbled", "empty"):
            self._fail(fault, body)
            return
        try:
            content, form = self._routed(path, json.loads(body) if body else {}, fault)
            status = 200
        except (Refused, ChatRefused) as refused:
            status, content, form = refused.status, json.dumps(refused.document()).encode(), "application/json"
        self._note(body, status)
        self._send(status, content, form, {}, fault)

    def _note(self, body: bytes, status: int) -> None:
        with self.service.lock:
            seen = Seen(self.command, self.path, dict(self.headers), body, status, self._came, time.monotonic())
            self.service.seen.append(seen)
            if body:
                with suppress(ValueError):
                    self.service.bodies.append(json.loads(body))

    def _fail(self, fault: Fault, body: bytes) -> None:
        chat = "anthropic-version" not in self.headers
        kind = {429: "rate_limit_error", 529: "overloaded_error", 402: "billing_error"}.get(fault.status, "api_error")
        words = Refused(fault.status, kind, "later").document()
        if chat:
            words = ChatRefused(fault.status, kind, "later").document()
        status = fault.status if fault.kind in ("status", "page") else 200
        content = {
            "page": b"<html><body><h1>502 Bad Gateway</h1></body></html>",
            "garbled": b'{"id": "msg_1", "type": "mess',
            "empty": b"{}",
        }.get(fault.kind, json.dumps(words).encode())
        form = "text/html" if fault.kind == "page" else "application/json"
        self._note(body, status)
        self._send(status, content, form, fault.headers, None)

    def _send(self, status: int, content: bytes, form: str, headers: Mapping[str, str], fault: Fault | None) -> None:
        kind = fault.kind if fault else None
        with suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", form)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("request-id", "req_double")
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if kind == "trickle" and fault is not None:
                for at in range(len(content)):
                    self.wfile.write(content[at : at + 1])
                    self.wfile.flush()
                    if self.service.closing.wait(fault.seconds):
                        break
            else:
                self.wfile.write(content[: len(content) // 2] if kind == "cut" else content)
            self.wfile.flush()
        if kind in ("cut", "trickle"):
            self.close_connection = True

    def _routed(self, path: str, body: Any, fault: Fault | None) -> tuple[bytes, str]:
        """The content of a good answer and its media type. Raises Refused or ChatRefused."""
        parts = [unquote(part) for part in path.strip("/").split("/")][1:]
        form = "application/json"
        if "anthropic-version" not in self.headers:
            return json.dumps(self._chat(parts, body, fault)).encode(), form
        self._authorise()
        match self.command, parts:
            case "POST", ["messages"] if body.get("stream"):
                lines = messages_api.events(self.service.answered(body, fault))
                text = "".join(f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n" for name, data in lines)
                return text.encode(), "text/event-stream"
            case "POST", ["messages"]:
                return json.dumps(self.service.answered(body, fault)).encode(), form
            case "POST", ["messages", "count_tokens"]:
                messages_api.check(body, self.service.models, counting=True)
                whole = [body.get("tools", []), body.get("system", []), body["messages"]]
                return json.dumps({"input_tokens": messages_api.tokens_of(whole)}).encode(), form
            case "GET", ["models", name]:
                return json.dumps(self._model(name)).encode(), form
            case _, ["messages", "batches", *rest]:
                url = f"{self.service.url}/v1/messages/batches"
                return self.service.batches.route(self.command, rest, body, url)
        raise Refused(404, "not_found_error", "no such path")

    def _authorise(self) -> None:
        if self.headers.get("Authorization") != f"Bearer {self.service.key}":
            raise Refused(401, "authentication_error", "invalid bearer token")
        if self.headers.get("anthropic-version") != messages_api.VERSION:
            raise Refused(400, "invalid_request_error", "anthropic-version: not known")

    def _model(self, name: str) -> dict[str, Any]:
        if name not in self.service.models:
            raise Refused(404, "not_found_error", f"model: {name}")
        lifecycle = "retired" if name in self.service.retired else "active"
        shared = {"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"}
        return {**shared, "lifecycle": lifecycle, "capabilities": None}

    def _chat(self, parts: list[str], body: Any, fault: Fault | None) -> dict[str, Any]:
        if self.headers.get("Authorization") != f"Bearer {self.service.key}":
            raise ChatRefused(401, "invalid_api_key", "Incorrect API key provided")
        match self.command, parts:
            case "POST", ["chat", "completions"]:
                chat_api.check(body, self.service.models, schemas=self.service.schemas)
                said = self.service.said(chat_api.as_messages(body), fault)
                return chat_api.completion(body, said, self.service.next_number())
            case "GET", ["models", *name] if "/".join(name) in self.service.models:
                return {"id": "/".join(name), "object": "model", "created": 1, "owned_by": "double"}
            case "GET", ["models"]:
                return {"object": "list", "data": [{"id": name, "object": "model"} for name in self.service.models]}
        raise ChatRefused(404, "not_found", "no such path or model")


def main(arguments: Callable[[], argparse.Namespace] | None = None) -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="A double of the model services on loopback.")
    parser.add_argument("--port", type=int, default=5081)
    parser.add_argument("--key", default="the-key")
    parser.add_argument("--seconds", type=float, default=0.0, help="What every question takes.")
    given = arguments() if arguments else parser.parse_args()
    with ModelDouble(key=given.key, port=given.port) as double, suppress(KeyboardInterrupt):
        double.latency_s = given.seconds
        print(f"ANTHROPIC_BASE_URL={double.url} OPENAI_BASE_URL={double.openai_url}", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
