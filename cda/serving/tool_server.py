"""An MCP server whose tools are typed functions over strict arguments.

The SDK's own argument check answers with the rejected value and drops unknown names; this server checks first and
speaks its own words, so that neither an answer to a bad call nor a line on stderr repeats what a caller sent.
"""

import json
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import anyio.to_thread
from anyio import AsyncFile
from mcp.server import MCPServer
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, CallToolResult, TextContent, ToolAnnotations
from mcp_types import Tool as ListedTool
from pydantic import BaseModel, ValidationError

from cda.serving.arguments import Arguments
from cda.serving.kernel import Call, Denied, Kernel
from cda.serving.principal import Rate
from cda.serving.readable_lines import ReadableLines

_log = logging.getLogger(__name__)

ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)

_PROTOCOL_ERRORS: Mapping[int, str] = {
    METHOD_NOT_FOUND: "method not found",
    INVALID_PARAMS: "invalid parameters",
    INTERNAL_ERROR: "internal error",
    -32001: "unauthenticated: a valid key is required",
    -32029: "too_many_failures: too many failed authentications; wait a minute",
}

_DENIED: Mapping[str, int] = {"unauthenticated": -32001, "too_many_failures": -32029}
_current: ContextVar[Call | None] = ContextVar("cda_call", default=None)
OPEN_RATE = Rate(1_000_000, 1)  # of a server without a limiter; nothing counts it

READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


@dataclass(frozen=True, slots=True)
class ServedTool(Generic[ArgumentsT]):
    """One read-only tool: what it is called, what it takes, what it answers, and the function (run in a worker thread)
    that makes the one from the other or raises `PolicyToolError`."""

    name: str
    title: str
    description: str
    arguments: type[ArgumentsT]
    answer: type[BaseModel]
    run: Callable[[ArgumentsT], BaseModel]
    rows: Callable[[Any], int] = lambda _answer: 1

    def listed(self) -> ListedTool:
        """The tool as `tools/list` shows it."""
        return ListedTool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.arguments.input_schema(),
            output_schema=self.answer.model_json_schema(mode="serialization"),
            annotations=READ_ONLY,
        )

    def read(self, arguments: Mapping[str, Any]) -> ArgumentsT:
        """The arguments, checked. Raises `Refused`."""
        return self.arguments.read(arguments)

    def answer_to(self, arguments: ArgumentsT) -> BaseModel:
        """Run. Raises what `run` raises."""
        return self.run(arguments)

    def count(self, answer: BaseModel) -> int:
        """How many rows of data an answer holds, for the ledger."""
        return self.rows(answer)


class ToolServer(MCPServer[None]):
    """A server of `ServedTool`s behind a kernel. A refusal is a tool error whose text is "CODE: what and what to do"; a
    crash is "internal_error: ..." and its place, never its message, goes to the log.

    `kernel` None: open to anyone, and nothing is recorded. `on_start` runs once when serving begins; it must return at
    once (start a thread for anything slow), because the client's handshake waits for it. `stdio_secret` gives the key
    of the one caller on stdio, which is asked for at every request.
    """

    def __init__(
        self,
        name: str,
        *,
        title: str,
        version: str,
        instructions: str,
        tools: Sequence[ServedTool[Any]],
        on_start: Callable[[], None] = lambda: None,
        kernel: Callable[[Mapping[str, ServedTool[Any]]], Kernel] | None = None,
        stdio_secret: str | None = None,
    ) -> None:
        def lifespan(_server: MCPServer[None]) -> AbstractAsyncContextManager[None]:
            return _started(on_start)

        super().__init__(
            name,
            title=title,
            version=version,
            instructions=instructions,
            lifespan=lifespan,
            subscriptions=False,
            log_level="WARNING",
            middleware=[_own_words, self._let_in],
        )
        self._served = {tool.name: tool for tool in tools}
        if len(self._served) != len(tools):
            raise ValueError("two tools of a server have one name")
        self.kernel = kernel(self._served) if kernel else _open(self._served)
        self._stdio_secret = stdio_secret

    @property
    def keyed(self) -> bool:
        """True when callers must be recognised."""
        return self.kernel.keyed

    async def list_tools(self) -> list[ListedTool]:
        """The tools that the caller may use, on one page: many clients read no second one."""
        call = _current.get()
        names = self.kernel.visible(call.principal if call else None)
        return [self._served[name].listed() for name in names]

    async def call_tool(
        self,
        name: str,  # noqa: ARG002 - what was let in is what is run
        arguments: dict[str, Any],  # noqa: ARG002
        context: Context[None, Any] | None = None,  # noqa: ARG002
    ) -> CallToolResult:
        """Run the tool that was let in, in a worker thread; a caller that goes away is not waited for."""
        call = _current.get()
        if call is None or call.tool is None:
            return _error("internal_error", "the request did not come through the kernel")
        try:
            content = await anyio.to_thread.run_sync(self.kernel.answer, call, abandon_on_cancel=True)
        except Denied as denied:
            return _error(denied.code, str(denied))
        except Exception as crash:
            _log.error("tool %s crashed: %s", call.tool, _place(crash))  # its message may hold what was sent
            return _error("internal_error", f"{call.tool} failed on the server; its log names the place")
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        return CallToolResult(content=[TextContent(text=text)], structured_content=content)

    async def _let_in(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Every request and notification, in both eras of the protocol and on every transport."""
        call = self._call_of(ctx)
        try:
            await anyio.to_thread.run_sync(self.kernel.admit, call)
        except Denied as denied:
            if call.tool is not None and call.principal is not None:
                return _error(denied.code, str(denied))
            raise MCPError(_DENIED.get(denied.code, INTERNAL_ERROR), denied.code) from None
        token = _current.set(call)
        try:
            return await call_next(ctx)
        finally:
            _current.reset(token)

    def _call_of(self, ctx: ServerRequestContext[Any, Any]) -> Call:
        # A client with a wrong key shuts out nobody but its own process.
        peer, secret = f"stdio:{os.getpid()}", self._stdio_secret
        if ctx.request is not None:
            peer = ctx.request.client.host if ctx.request.client else "unknown"
            secret = bearer(ctx.request.headers.getlist("authorization"))
        call = Call(peer=peer, secret=secret)
        if ctx.method == "tools/call":
            params = ctx.params or {}
            name, arguments = params.get("name"), params.get("arguments")
            call.tool = name if isinstance(name, str) else ""
            call.arguments = arguments if isinstance(arguments, dict) else {}
        return call

    async def run_stdio_on(self, stdin: AsyncFile[str], stdout: AsyncFile[str]) -> None:
        """Serve one client on the two streams until the first ends."""
        server, lines = self._lowlevel_server, ReadableLines(stdin)
        async with stdio_server(stdin=cast(AsyncFile[str], lines), stdout=stdout) as (reader, writer):
            lines.answers = writer
            await server.run(reader, writer, server.create_initialization_options())


def bearer(headers: Sequence[str]) -> str | None:
    """The secret of the one Authorization header; None for none, for another scheme, and for two of them: whoever is
    between here and the client may have looked at the other."""
    scheme, _, secret = (headers[0] if len(headers) == 1 else "").partition(" ")
    return secret.strip() or None if scheme.lower() == "bearer" else None


def _open(tools: Mapping[str, ServedTool[Any]]) -> Kernel:
    return Kernel(tools, identities=None, limiter=None, ledger=None, rate=OPEN_RATE)


async def _own_words(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Protocol errors in fixed words: the SDK's name the method, the address or the prompt that was asked for."""
    try:
        return await call_next(ctx)
    except MCPError as error:
        raise MCPError(error.code, _PROTOCOL_ERRORS.get(error.code, "the request was refused")) from None
    except ValidationError:
        raise MCPError(INVALID_PARAMS, _PROTOCOL_ERRORS[INVALID_PARAMS]) from None
    except Exception as crash:
        _log.error("a request crashed: %s", _place(crash))
        raise MCPError(INTERNAL_ERROR, _PROTOCOL_ERRORS[INTERNAL_ERROR]) from None


@asynccontextmanager
async def _started(on_start: Callable[[], None]) -> AsyncIterator[None]:
    on_start()
    yield


def _error(code: str, message: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=f"{code}: {message}")], is_error=True)


def _place(error: BaseException) -> str:
    """The type of an error and where it was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "" if trace is None else f" at {trace.tb_frame.f_globals.get('__name__', '?')}:{trace.tb_lineno}"
    return f"{type(error).__name__}{where}"
