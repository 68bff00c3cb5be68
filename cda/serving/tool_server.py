"""An MCP server whose tools are typed functions over strict arguments.

The SDK's own argument check answers with the rejected value and drops unknown names; this server checks first and
speaks its own words, so that neither an answer to a bad call nor a line on stderr repeats what a caller sent.
"""

import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

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

from cda.errors import PolicyToolError
from cda.serving.arguments import Arguments, Refused

_log = logging.getLogger(__name__)

ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)

_PROTOCOL_ERRORS: Mapping[int, str] = {
    METHOD_NOT_FOUND: "method not found",
    INVALID_PARAMS: "invalid parameters",
    INTERNAL_ERROR: "internal error",
}

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

    def call(self, arguments: Mapping[str, Any]) -> BaseModel:
        """Check the arguments, then run. Raises `Refused` or what `run` raises."""
        return self.run(self.arguments.read(arguments))


class ToolServer(MCPServer[None]):
    """A server of `ServedTool`s. A refusal is a tool error whose text is "CODE: what and what to do"; a crash is
    "internal_error: ..." and its place, never its message, goes to the log.

    `on_start` runs once when serving begins; it must return at once (start a thread for anything slow), because the
    client's handshake waits for it.
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
            middleware=[_own_words],
        )
        self._served = {tool.name: tool for tool in tools}
        if len(self._served) != len(tools):
            raise ValueError("two tools of a server have one name")

    async def list_tools(self) -> list[ListedTool]:
        """All tools, on one page: many clients read no second one."""
        return [tool.listed() for tool in self._served.values()]

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any],
        context: Context[None, Any] | None = None,  # noqa: ARG002
    ) -> CallToolResult:
        """Run one tool in a worker thread; a caller that goes away is not waited for."""
        tool = self._served.get(name)
        if tool is None:
            return _error("unknown_tool", f"this server has {', '.join(self._served)}")
        try:
            answer = await anyio.to_thread.run_sync(tool.call, arguments, abandon_on_cancel=True)
        except Refused as refused:
            return _error("invalid_argument", str(refused))
        except PolicyToolError as refused:
            return _error(refused.code, str(refused))
        except Exception as crash:
            _log.error("tool %s crashed: %s", tool.name, _place(crash))  # its message may hold what was sent
            return _error("internal_error", f"{tool.name} failed on the server; its log names the place")
        structured = answer.model_dump(mode="json")
        text = json.dumps(structured, ensure_ascii=False, separators=(",", ":"))
        return CallToolResult(content=[TextContent(text=text)], structured_content=structured)

    async def run_stdio_on(self, stdout: AsyncFile[str]) -> None:
        """Serve one client on stdin and on the given stream until stdin ends."""
        server = self._lowlevel_server
        async with stdio_server(stdout=stdout) as (reader, writer):
            await server.run(reader, writer, server.create_initialization_options())


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
