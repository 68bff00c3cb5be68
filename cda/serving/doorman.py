"""What stands before the protocol on HTTP: a bearer is asked for with the status codes of HTTP, and health is told.

The kernel asks again inside the protocol, by the same rule; here it only decides which status a refusal has.
"""

import json

import anyio.to_thread
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from cda.serving.kernel import Call, Denied, Kernel
from cda.serving.tool_server import bearer

HEALTH = "/health"
_STATUS = {"unauthenticated": 401, "too_many_failures": 429}


class Doorman:
    """Wraps an application; a request without a valid bearer gets 401, and no word of it is read further."""

    def __init__(self, app: ASGIApp, kernel: Kernel) -> None:
        self._app, self._kernel = app, kernel

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            client = scope.get("client")
            secret = bearer(Headers(scope=scope).get("authorization"))
            call = Call(peer=client[0] if client else "unknown", secret=secret)
            try:
                await anyio.to_thread.run_sync(self._kernel.authenticate, call)
            except Denied as denied:
                await _answer(send, _STATUS.get(denied.code, 503), {}, [(b"www-authenticate", b"Bearer")])
                return
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


async def _answer(send: Send, status: int, body: dict[str, str], headers: list[tuple[bytes, bytes]]) -> None:
    text = json.dumps(body).encode("ascii")
    length = (b"content-length", str(len(text)).encode("ascii"))
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(b"content-type", b"application/json"), length, *headers],
        }
    )
    await send({"type": "http.response.body", "body": text})
