"""The one place where a call of a tool is let through: who calls, how often, which tool, with what, and on the record.

The steps of a call, in order: authenticate, limit, authorise, validate, intent, run, sanitise, outcome. The first three
are asked of every request of the protocol, before any of it is read further. Whatever fails, nothing passes; and what
cannot be recorded does not happen.
"""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import uuid4

from pydantic import BaseModel

from cda.errors import ToolRefusal, UnavailableError
from cda.ledger import Ledger, LedgerUnavailable
from cda.ledger.record import Entry
from cda.serving.arguments import Refused
from cda.serving.oauth_resource import OAuthResource
from cda.serving.principal import ANYONE, Principal, Rate
from cda.serving.rate_limit import LimiterUnavailable, RateLimiter
from cda.serving.recognition import Identities, Recognition, TooManyFailures

_log = logging.getLogger(__name__)
GATES = ("authenticate", "limit", "authorise", "validate", "intent", "sanitise", "outcome")


class Denied(Exception):
    """A call that is not let through. `code` is a word of ours; the text names nothing that was sent."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Served(Protocol):
    """A tool as the kernel needs it."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def read(self, arguments: Mapping[str, Any]) -> Any:
        """The arguments, checked; raises Refused."""
        ...

    def answer_to(self, arguments: Any) -> BaseModel:
        """Run."""
        ...

    def count(self, answer: BaseModel) -> int:
        """How many rows an answer holds."""
        ...


@dataclass(slots=True)
class Call:
    """One request on its way. `tool` is the name as sent, for a call of a tool."""

    peer: str
    secret: str | None = None
    tool: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    principal: Principal | None = None
    hashed: str | None = None  # of the arguments, for the ledger
    id: str = field(default_factory=lambda: uuid4().hex)


class Kernel:
    """The gates of one server. Without `identities` it is open to anyone, which only a server may be whose data is
    nobody's in particular, on the loopback."""

    def __init__(
        self,
        tools: Mapping[str, Served],
        *,
        identities: Identities | None,
        limiter: RateLimiter | None,
        ledger: Ledger | None,
        rate: Rate,
        hasher: Callable[[bytes], str] | None = None,
        cleaner: Callable[[Any], Any] | None = None,
        resource: OAuthResource | None = None,
    ) -> None:
        self._tools, self._limiter, self._ledger = tools, limiter, ledger
        self._recognition = Recognition(identities, limiter) if identities is not None else None
        self._rate, self._hasher, self._cleaner = rate, hasher, cleaner
        self.resource = resource  # what this server is to an authorisation server; None when it takes keys alone

    @property
    def keyed(self) -> bool:
        """True when callers must be recognised."""
        return self._recognition is not None

    @property
    def names(self) -> frozenset[str]:
        """The names of all its tools."""
        return frozenset(self._tools)

    def knock(self, call: Call) -> Principal:
        """Who stands at the door of a transport, before a word of the request is read; `admit` asks again inside.
        Raises Denied, which is on the record when a secret was shown."""
        try:
            self.authenticate(call)
            return _known(call)
        except Denied as denied:
            if call.secret:
                self._refused(call, denied.code)
            raise

    def admit(self, call: Call) -> None:
        """Let a request of the protocol in. Raises Denied, which is on the record when a tool was asked for."""
        try:
            self.authenticate(call)
            self.limit(call)
            self.authorise(call)
        except Denied as denied:
            self._refused(call, denied.code)
            raise

    def answer(self, call: Call) -> Any:
        """The JSON answer of an admitted call of a tool. Raises Denied with a code of the tool's or of ours."""
        tool = self._tools[str(call.tool)]
        try:
            arguments = self.validate(call, tool)
        except Denied as denied:
            self._refused(call, denied.code)
            raise
        self.intent(call)
        outcome, rows = "internal_error", None
        try:
            answer = tool.answer_to(arguments)
            content = self.sanitise(answer.model_dump(mode="json"))
            outcome, rows = "ok", tool.count(answer)
        except ToolRefusal as refused:
            outcome = refused.code
            raise Denied(refused.code, str(refused)) from None
        finally:
            self.outcome(call, outcome, rows)
        return content

    def visible(self, principal: Principal | None) -> list[str]:
        """The names of the tools that a caller may use."""
        return [name for name in self._tools if principal is not None and principal.may(name)]

    def close(self) -> None:
        """Sign what the ledger holds, and close the limiter."""
        if self._ledger:
            self._ledger.close()
        if self._limiter:
            self._limiter.close()

    def authenticate(self, call: Call) -> None:
        """Who calls. A stranger from an address with too many failures is not even looked at."""
        if self._recognition is None:
            call.principal = ANYONE
            return
        try:
            call.principal = self._recognition.caller(call.peer, call.secret)
        except TooManyFailures:
            raise Denied("too_many_failures", "too many failed authentications; wait a minute") from None
        except (UnavailableError, LimiterUnavailable) as fault:
            raise self._broken("authentication", fault) from None
        if call.principal is None:
            raise Denied("unauthenticated", "a valid key is required")

    def limit(self, call: Call) -> None:
        """How often. Only calls of tools are counted."""
        if self._limiter is None or call.tool is None:
            return
        principal = _known(call)
        try:
            passes = self._limiter.take(f"key:{principal.id}", principal.rate or self._rate)
        except LimiterUnavailable as fault:
            raise self._broken("rate limiter", fault) from None
        if not passes:
            rate = principal.rate or self._rate
            raise Denied("rate_limited", f"at most {rate.count} calls in {rate.seconds} s pass; try again later")

    def authorise(self, call: Call) -> None:
        """Which tool. One that the caller may not use and one that there is not are refused in the same words."""
        if call.tool is None:
            return
        principal = _known(call)
        if call.tool not in self._tools or not principal.may(call.tool):
            names = ", ".join(self.visible(principal)) or "no tool"
            raise Denied("unknown_tool", f"this key may use {names}" if self.keyed else f"this server has {names}")

    def validate(self, call: Call, tool: Served) -> Any:
        """With what."""
        try:
            return tool.read(call.arguments)
        except Refused as refused:
            raise Denied("invalid_argument", str(refused)) from None

    def intent(self, call: Call) -> None:
        """On the record before anything is read."""
        self._record(call, "intent", "")

    def sanitise(self, content: Any) -> Any:
        """Nothing in an answer that is not shown."""
        return self._cleaner(content) if self._cleaner else content

    def outcome(self, call: Call, outcome: str, rows: int | None) -> None:
        """On the record before anything is returned."""
        self._record(call, "outcome", outcome, rows)

    def _record(self, call: Call, kind: str, outcome: str, rows: int | None = None) -> None:
        if self._ledger is None:
            return
        try:
            self._ledger.append(self._entry(call, kind, outcome, rows))
        except LedgerUnavailable as fault:
            raise self._broken("ledger", fault) from None

    def _refused(self, call: Call, code: str) -> None:
        """A refusal stands, whether or not it can be recorded. Floods of failed keys are not."""
        unread = call.tool is None and code != "unauthenticated"
        if self._ledger is None or unread or code == "too_many_failures":
            return
        try:
            self._ledger.append(self._entry(call, "refusal", code, None))
        except LedgerUnavailable as fault:
            _log.error("a refusal was not recorded: %s", fault)

    def _entry(self, call: Call, kind: str, outcome: str, rows: int | None) -> Entry:
        tool = call.tool if call.tool in self._tools else "unknown"
        principal = call.principal.id if call.principal else "unknown"
        if call.hashed is None and self._hasher:
            # What was sent is hashed in one form, so that equal arguments have equal hashes.
            content = json.dumps(call.arguments, sort_keys=True, default=repr).encode("utf-8", "surrogatepass")
            call.hashed = self._hasher(content)
        return Entry(kind, call.id, principal, str(tool), call.hashed or "", outcome, rows)  # type: ignore[arg-type]

    @staticmethod
    def _broken(part: str, fault: Exception) -> Denied:
        _log.error("the %s does not work, so nothing passes: %s", part, fault)
        return Denied("internal_error", "the server cannot answer now; its log names the part")


def _known(call: Call) -> Principal:
    if call.principal is None:
        raise Denied("unauthenticated", "a valid key is required")
    return call.principal
