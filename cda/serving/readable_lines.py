"""Lines of a client on stdio: what is no message of the protocol gets its refusal, where the SDK would say nothing.

A lone surrogate is legal JSON for most writers and for no strict reader. The SDK drops such a line, and whoever sent
it waits for ever; here the request is refused by its id, in words that hold nothing of it.
"""

import json
from collections.abc import AsyncIterator
from typing import Any, Protocol

from anyio import AsyncFile
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from cda.serving.strict_json import says_two_things


class Answers(Protocol):
    """Where a refusal is sent."""

    async def send(self, item: SessionMessage, /) -> None:
        """Send one message to the client."""
        ...


class ReadableLines:
    """The lines of a stream that are messages; set `answers` before the first is read."""

    def __init__(self, lines: AsyncFile[str]) -> None:
        self._lines = lines
        self.answers: Answers | None = None

    async def __aiter__(self) -> AsyncIterator[str]:
        """Lines in order."""
        async for line in self._lines:
            refused = refusal(line)
            if refused is None:
                yield line
            elif self.answers is not None:
                await self.answers.send(SessionMessage(refused))


def refusal(line: str) -> JSONRPCError | None:
    """Why a line is no message; None for one that is, and for an empty line, which says nothing."""
    if not line.strip():
        return None
    try:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return _refused(line)
    return _refused(line) if says_two_things(line) else None


def _refused(line: str) -> JSONRPCError:
    try:
        sent = json.loads(line)
    except (ValueError, RecursionError):
        return _error(None, PARSE_ERROR, "the line is no JSON")
    known = sent.get("id") if isinstance(sent, dict) else None
    return _error(_usable(known), INVALID_REQUEST, "the line is no valid message of the protocol")


def _usable(known: Any) -> str | int | None:
    """The id when it is one that an answer can carry."""
    if isinstance(known, str):
        return known if len(known) <= 200 and known.isprintable() else None
    return known if isinstance(known, int) and not isinstance(known, bool) else None


def _error(known: str | int | None, code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=known, error=ErrorData(code=code, message=message))
