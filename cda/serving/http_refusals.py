"""Refusals of the HTTP transport in our own words.

Below the tools the SDK refuses a malformed request with the library's text, which holds the request; this wrapper sits
around the whole application and rewrites every answer of status 400 and above.
"""

import json
import re
from http import HTTPStatus
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_REASONS = {
    400: "the request is no valid message of the protocol",
    403: "this origin is not allowed",
    404: "there is no such session or path",
    406: "the client must accept application/json and text/event-stream",
    413: "the request is too large",
    415: "the request must be application/json",
    503: "the server cannot answer now",
    421: "this host is not allowed; see --allow-host",
}
_VERSION = re.compile(r"(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|v[0-9]{1,3}(?:\.[0-9]{1,3}){0,2})\Z")


class OwnRefusals:
    """Wraps an application; answers below 400 pass through untouched, streamed ones included."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        start: Message | None = None
        body = bytearray()

        async def guarded(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and message["status"] >= 400:
                start = message
            elif start is None or message["type"] != "http.response.body":
                await send(message)
            else:
                body.extend(message.get("body", b""))
                if not message.get("more_body", False):
                    text = json.dumps(_refusal(start["status"], bytes(body))).encode("ascii")
                    await send({**start, "headers": _headers(start, len(text))})
                    await send({"type": "http.response.body", "body": text})

        await self._app(scope, receive, guarded)


def _refusal(status: int, body: bytes) -> dict[str, Any]:
    """A JSON-RPC error with the code and id of the original and, of its data, the protocol versions to choose from and
    the one that was asked for, which the protocol wants back, when it has the form of a version."""
    try:
        original = json.loads(body)
        error = original["error"]
        code, data = int(error["code"]), error.get("data")
    except (ValueError, KeyError, TypeError):
        original, code, data = {}, -32600, None
    refused: dict[str, Any] = {"code": code, "message": _REASONS.get(status, HTTPStatus(status).phrase)}
    if isinstance(data, dict) and "supported" in data:
        refused["data"] = {"supported": data["supported"]}
        asked = data.get("requested")
        if isinstance(asked, str) and _VERSION.match(asked):
            refused["data"]["requested"] = asked
    return {"jsonrpc": "2.0", "id": original.get("id"), "error": refused}


def _headers(start: Message, length: int) -> list[tuple[bytes, bytes]]:
    kept = [(name, value) for name, value in start["headers"] if name not in (b"content-length", b"content-type")]
    return [*kept, (b"content-type", b"application/json"), (b"content-length", str(length).encode("ascii"))]
