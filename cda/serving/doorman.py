"""What stands before the protocol on HTTP: a bearer is asked for with the status codes of HTTP, and health is told.

The kernel asks again inside the protocol, by the same rule; here it only decides which status a refusal has, and where
a client without a token may get one.
"""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import anyio.to_thread
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cda.serving.kernel import Call, Denied, Kernel
from cda.serving.oauth_resource import WELL_KNOWN, OAuthResource
from cda.serving.principal import Principal
from cda.serving.strict_json import object_of, says_two_things
from cda.serving.tool_server import bearer

HEALTH = "/health"
MAX_BODY = 4 * 1024 * 1024  # the SDK takes no larger one
_REFUSALS: Mapping[str, tuple[int, str]] = {
    "unauthenticated": (401, "a valid key is required: Authorization: Bearer KEY"),
    "too_many_failures": (429, "too many failed authentications; wait a minute"),
    "rate_limited": (429, "too many calls; wait a minute"),
    "token_in_address": (400, "a token is sent in the Authorization header and nowhere else"),
    "ambiguous": (400, "the message has a name twice in one object"),
    "insufficient_scope": (403, "the token has no scope that opens this tool"),
}
_BROKEN = (503, "the server cannot answer now")


class Doorman:
    """Wraps an application; a request without a valid bearer gets 401, and no word of it is read further. A session of
    the protocol belongs to whoever began it."""

    def __init__(self, app: ASGIApp, kernel: Kernel) -> None:
        self._app, self._kernel = app, kernel

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        client, headers = scope.get("client"), Headers(scope=scope)
        call = Call(peer=client[0] if client else "unknown", secret=bearer(headers.getlist("authorization")))
        if _token_in_address(scope):
            await self._refuse(send, "token_in_address", "invalid_request")
            return
        try:
            principal = await anyio.to_thread.run_sync(self._kernel.knock, call)
        except Denied as denied:
            shown = denied.code == "unauthenticated" and call.secret is not None
            await self._refuse(send, denied.code, "invalid_token" if shown else None)
            return
        owner = AccessToken(token="", client_id=principal.id, scopes=[])  # the SDK binds sessions to it
        if scope["method"] == "POST" and _bearable(headers):
            body, receive = await _whole(receive)
            if says_two_things(body):
                await self._refuse(send, "ambiguous", None)
                return
            if principal.scopes is not None and await self._beyond(call, principal, body, send):
                return
        await self._app({**scope, "user": AuthenticatedUser(owner)}, receive, send)

    async def _beyond(self, call: Call, principal: Principal, body: bytes, send: Send) -> bool:
        """True when the body calls a tool that other scopes would open: then the refusal is on the record, and the
        answer says which scopes to ask for."""
        tool, arguments = _called(body)
        resource = self._kernel.resource
        if tool is None or resource is None or principal.may(tool):
            return False
        wider = resource.wider(principal.scopes or (), tool)
        if wider is None or tool not in self._kernel.names:
            return False  # no such tool, and no scope would help: the protocol says so
        call.tool, call.arguments = tool, arguments
        try:
            await anyio.to_thread.run_sync(self._kernel.admit, call)
        except Denied as denied:
            code = "insufficient_scope" if denied.code == "unknown_tool" else denied.code
            await self._refuse(send, code, "insufficient_scope" if code == "insufficient_scope" else None, wider)
            return True
        return False

    async def _refuse(self, send: Send, code: str, error: str | None, scope: str | None = None) -> None:
        status, words = _REFUSALS.get(code, _BROKEN)
        headers = []
        if status in (401, 403) or error is not None:
            resource = self._kernel.resource
            challenge = resource.challenge(error, scope) if resource is not None else "Bearer"
            headers = [(b"www-authenticate", challenge.encode("ascii"))]
        body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": words}}
        await _answer(send, status, body, headers)


class Metadata:
    """Answers where a client looks for the authorisation server of this resource, without asking who it is."""

    def __init__(self, app: ASGIApp, resource: OAuthResource) -> None:
        self._app, self._document = app, resource.metadata
        self._paths = {WELL_KNOWN, resource.metadata_path}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and scope["path"] in self._paths and scope["method"] == "GET":
            await _answer(send, 200, self._document, [])
        else:
            await self._app(scope, receive, send)


class Health:
    """Answers `HEALTH` with 200 and nothing about the server but that it answers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and scope["path"] == HEALTH and scope["method"] == "GET":
            await _answer(send, 200, {"status": "ok"}, [])
        else:
            await self._app(scope, receive, send)


def _token_in_address(scope: Scope) -> bool:
    """True when the query holds a token: addresses are written into logs on the way, and kept."""
    query = scope.get("query_string", b"").decode("latin-1")
    return any(name.lower() in ("access_token", "token") for name, _ in parse_qsl(query, keep_blank_values=True))


def _bearable(headers: Headers) -> bool:
    """False for a body that says it is too large; the application refuses it before it is read."""
    length = headers.get("content-length", "0")
    return not (length.isdecimal() and (len(length) > 9 or int(length) > MAX_BODY))


async def _whole(receive: Receive) -> tuple[bytes, Receive]:
    """The body, as far as it may be long, and what gives its messages to the application again."""
    held: list[Message] = []
    size = 0
    while size <= MAX_BODY:
        message = await receive()
        held.append(message)
        size += len(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body", False):
            break
    body = b"".join(message.get("body", b"") for message in held)

    async def again() -> Message:
        return held.pop(0) if held else await receive()

    return body, again


def _called(body: bytes) -> tuple[str | None, Mapping[str, Any]]:
    """The tool that a message calls, and its arguments; None for any other message."""
    message = object_of(body) or {}
    params = message.get("params")
    if message.get("method") != "tools/call" or not isinstance(params, dict) or not isinstance(params.get("name"), str):
        return None, {}
    arguments = params.get("arguments")
    return params["name"], arguments if isinstance(arguments, dict) else {}


async def _answer(send: Send, status: int, body: Mapping[str, Any], headers: list[tuple[bytes, bytes]]) -> None:
    text = json.dumps(body).encode("ascii")
    length = (b"content-length", str(len(text)).encode("ascii"))
    start = {"type": "http.response.start", "status": status}
    await send({**start, "headers": [(b"content-type", b"application/json"), length, *headers]})
    await send({"type": "http.response.body", "body": text})
