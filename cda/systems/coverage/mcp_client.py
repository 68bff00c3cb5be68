"""`PolicyTools` over MCP: the same answers and the same errors, from a server process or a URL.

The harness is synchronous and the protocol is not, so one thread runs an event loop that holds the session; calls from
any thread are handed to it, each with a deadline.
"""

import asyncio
import atexit
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from datetime import date
from typing import Any, Self, TextIO, TypeVar

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel, SecretStr, ValidationError

from cda.contracts.policy_tools import ERROR_CODES, ClauseView, CodeView, RiderView, SearchAnswer, VersionView
from cda.errors import PolicyToolError, UnavailableError
from cda.settings import Settings
from cda.systems.coverage.tool_arguments import PlanRiders, PolicyVersions, SearchAnswers

DEADLINE_S = 30.0  # a search over a loading index answers after 20 s at the latest
GRACE_S = 2.0  # for the session's own time-out to come first, with its better reason

AnswerT = TypeVar("AnswerT", bound=BaseModel)


class McpPolicyTools:
    """`PolicyTools` through one MCP session; safe for several threads at once. Close it, or use it in a `with`.

    Raises UnavailableError when the server cannot be reached at the start. Afterwards every failure of the server or
    of the way to it is PolicyToolError("search_unavailable"), within `deadline_s` seconds and at once when the server
    is gone.
    """

    def __init__(self, server: AbstractAsyncContextManager[Any] | str, *, deadline_s: float = DEADLINE_S) -> None:
        self._server = server
        self._deadline_s = deadline_s
        self._connected: Future[Client] = Future()
        self._loop = asyncio.new_event_loop()
        self._session: anyio.CancelScope | None = None
        self._thread = threading.Thread(target=self._run, name="policy-mcp", daemon=True)
        self._thread.start()
        atexit.register(self.close)  # a daemon thread would be cut off and leave the server's process to itself
        try:
            self._client = self._connected.result(timeout=deadline_s + GRACE_S)
        except TimeoutError:
            self.close()
            raise UnavailableError("the policy server did not answer in time; see its stderr") from None
        except Exception as error:
            self.close()
            raise UnavailableError(f"the policy server cannot be reached ({_kind(error)})") from error

    @classmethod
    def over_stdio(
        cls,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        deadline_s: float = DEADLINE_S,
        errlog: TextIO | None = None,
    ) -> Self:
        """Start a server process and talk to it; `env` is added to a small safe set, its stderr goes to `errlog`."""
        parameters = StdioServerParameters(command=command[0], args=list(command[1:]), env=dict(env))
        return cls(stdio_client(parameters, errlog=errlog or sys.stderr), deadline_s=deadline_s)

    @classmethod
    def over_http(cls, url: str, *, deadline_s: float = DEADLINE_S) -> Self:
        """Talk to a server at a streamable HTTP address."""
        return cls(url, deadline_s=deadline_s)

    def search_policies(
        self,
        queries: Sequence[str],
        *,
        payer_id: str | None = None,
        plan_id: str | None = None,
        as_of: date | None = None,
        codes: Sequence[str] = (),
        k: int = 8,
        include_superseded: bool = False,
    ) -> list[SearchAnswer]:
        """See `PolicyTools.search_policies`."""
        arguments = {
            "queries": queries if isinstance(queries, str) else list(queries),
            "payer_id": payer_id,
            "plan_id": plan_id,
            "as_of_date": as_of,
            "codes": codes if isinstance(codes, str) else list(codes),
            "k": k,
            "include_superseded": include_superseded,
        }
        return self._ask("search_policies", arguments, SearchAnswers).answers

    def get_clause_by_id(self, clause_id: str) -> ClauseView:
        """See `PolicyTools.get_clause_by_id`."""
        return self._ask("get_clause_by_id", {"clause_id": clause_id}, ClauseView)

    def list_policy_versions(self, policy_id: str) -> tuple[VersionView, ...]:
        """See `PolicyTools.list_policy_versions`."""
        return self._ask("list_policy_versions", {"policy_id": policy_id}, PolicyVersions).versions

    def lookup_code(self, code: str, *, payer_id: str | None = None, as_of: date | None = None) -> CodeView:
        """See `PolicyTools.lookup_code`."""
        return self._ask("lookup_code", {"code": code, "payer_id": payer_id, "as_of_date": as_of}, CodeView)

    def get_plan_riders(self, plan_id: str, *, as_of: date | None = None) -> tuple[RiderView, ...]:
        """See `PolicyTools.get_plan_riders`."""
        return self._ask("get_plan_riders", {"plan_id": plan_id, "as_of_date": as_of}, PlanRiders).riders

    def close(self) -> None:
        """End the session and the server process it started; calls afterwards are refused."""
        atexit.unregister(self.close)
        if not self._loop.is_closed():
            with suppress(RuntimeError):  # closed in between: the session had ended by itself
                self._loop.call_soon_threadsafe(self._end_session)
        self._thread.join(timeout=10.0)  # the SDK gives the process 2 s each to end, to be terminated and to be killed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._hold_session())

    async def _hold_session(self) -> None:
        try:
            with anyio.CancelScope() as self._session:
                async with Client(self._server, read_timeout_seconds=self._deadline_s) as client:
                    self._connected.set_result(client)
                    await anyio.sleep_forever()
        except Exception as error:
            if not self._connected.done():
                self._connected.set_exception(error)

    def _end_session(self) -> None:
        if self._session is not None:
            self._session.cancel()

    def _ask(self, tool: str, arguments: Mapping[str, Any], model: type[AnswerT]) -> AnswerT:
        sent = {
            name: value.isoformat() if isinstance(value, date) else value
            for name, value in arguments.items()
            if value is not None
        }
        result = self._call(tool, sent)
        if result.is_error:
            raise _restored(result)
        try:
            return model.model_validate(result.structured_content)
        except ValidationError as error:
            raise _unavailable("answered off its schema: is it another version?") from error

    def _call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        asked = self._client.call_tool(tool, arguments)
        try:
            call = asyncio.run_coroutine_threadsafe(asked, self._loop)
        except RuntimeError as error:  # the loop has ended with the session
            asked.close()
            raise _unavailable("is gone") from error
        try:
            return call.result(timeout=self._deadline_s + GRACE_S)
        except TimeoutError as error:
            call.cancel()
            raise _unavailable(f"did not answer within {self._deadline_s:g} s") from error
        except Exception as error:
            raise _unavailable(f"did not answer ({_kind(error)})") from error


def settings_environment(settings: Settings) -> dict[str, str]:
    """The variables that make a server process read these same settings."""
    found = {}
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        alias = field.validation_alias
        if value is not None and alias is not None:
            said = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
            found[str(getattr(alias, "choices", [alias])[0])] = said
    return found


def _restored(result: CallToolResult) -> PolicyToolError:
    """The error that the tool raised on the other side; its text is "CODE: message"."""
    text = next((block.text for block in result.content if isinstance(block, TextContent)), "")
    code, _, message = text.partition(": ")
    if code in ERROR_CODES:
        return PolicyToolError(code, message)
    return _unavailable("failed; its log names the place")


def _unavailable(what: str) -> PolicyToolError:
    return PolicyToolError("search_unavailable", f"the policy server {what}")


def _kind(error: BaseException) -> str:
    """The innermost kind of an error; its text may hold what was sent."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return type(error).__name__
