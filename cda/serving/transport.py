"""How a tool server is reached: stdio, where standard output is protocol and nothing else, or HTTP on the loopback."""

import re
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp

from cda.errors import UnavailableError, UsageError
from cda.serving.addresses import is_loopback
from cda.serving.doorman import Doorman, Health, Metadata
from cda.serving.http_refusals import OwnRefusals
from cda.serving.impatient_http import ImpatientHttp
from cda.serving.quiet_log import log_quietly
from cda.serving.tool_server import ToolServer
from cda.serving.wire import reserve_stdin

PATH = "/mcp"
GRACE_S = 10  # for calls under way when the server is asked to stop
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_HOST_NAME = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])\Z")


def serve(server: ToolServer, *, wire: TextIOWrapper | None, at: "Http") -> None:
    """Serve on `wire` (stdio, from `reserve_stdout`) or, without it, on HTTP, until the client goes or a signal comes;
    then what the kernel holds is closed, the ledger with a signed checkpoint."""
    try:
        if wire is None:
            serve_http(server, at)
        else:
            serve_stdio(server, wire)
    finally:
        server.kernel.close()


def serve_stdio(server: ToolServer, wire: TextIOWrapper) -> None:
    """Serve one client until it closes our stdin; `wire` comes from `reserve_stdout`."""
    anyio.run(server.run_stdio_on, anyio.wrap_file(reserve_stdin()), anyio.wrap_file(wire))


@dataclass(frozen=True, slots=True)
class Http:
    """Where and how to listen. `tls` is a certificate file and its key file; `behind_proxy` says that somebody else
    ends TLS in front of this server."""

    host: str = "127.0.0.1"
    port: int = 8000
    allow_hosts: tuple[str, ...] = ()
    tls: tuple[str, str] | None = None
    behind_proxy: bool = False

    def check(self, *, keyed: bool) -> TransportSecuritySettings:
        """The rules for Host and Origin. UsageError for a host that is not the loopback without names to be called by;
        where keys travel, without TLS; and where none are asked for, unless a proxy asks instead."""
        security = host_rules(self.host, self.allow_hosts)
        if not (keyed or is_loopback(self.host) or self.behind_proxy):
            raise UsageError(
                "anybody on the network could call this server: give --keys, or say --behind-proxy when a proxy in "
                "front of this server asks who calls; nothing was opened"
            )
        if keyed and not (is_loopback(self.host) or self.tls or self.behind_proxy):
            raise UsageError(
                "keys would cross the network in the clear: give --tls-cert and --tls-key, or say --behind-proxy when "
                "a proxy in front of this server ends TLS; nothing was opened"
            )
        return security


def serve_http(server: ToolServer, at: Http) -> None:
    """Serve streamable HTTP at `PATH`, and `HEALTH`, until a signal; then calls under way are finished.

    Port 0 takes a free one, which the line on stderr names. Raises UsageError as `Http.check`, and UnavailableError
    when the address cannot be bound.
    """
    security = at.check(keyed=server.keyed)
    listener = _bind(at.host, at.port)
    app = server.streamable_http_app(host=at.host, streamable_http_path=PATH, transport_security=security)
    guarded: ASGIApp = OwnRefusals(app)
    if server.keyed:
        guarded = Doorman(guarded, server.kernel)
    if server.kernel.resource is not None:
        guarded = Metadata(guarded, server.kernel.resource)
    certificate, key = at.tls or (None, None)
    config = uvicorn.Config(
        Health(guarded),
        http=ImpatientHttp,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # anyone on this machine could name another address in them, and fail in its name
        ssl_certfile=certificate,
        ssl_keyfile=key,
        timeout_graceful_shutdown=GRACE_S,
    )
    shown = f"[{at.host}]" if ":" in at.host else at.host
    scheme = "https" if at.tls else "http"
    print(f"serving {scheme}://{shown}:{listener.getsockname()[1]}{PATH}", file=sys.stderr, flush=True)
    log_quietly()
    with _stopping_well():
        uvicorn.Server(config).run(sockets=[listener])


@contextmanager
def _stopping_well() -> Iterator[None]:
    """The web server gives a signal on when it has stopped; it ends the process as an exit does, so that what is open
    is closed."""

    def leave(_signal: int, _frame: object) -> None:
        raise SystemExit(0)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def host_rules(host: str, allow_hosts: Sequence[str]) -> TransportSecuritySettings:
    """Which Host and Origin headers are answered: the loopback names when bound there, and `allow_hosts`.

    The check is what keeps a web page that rebinds its name to this address from reading the answers. The SDK turns it
    off for any host but the loopback, so it is always set here.
    """
    for name in allow_hosts:
        if not _HOST_NAME.match(name):
            raise UsageError("an allowed host is a bare host name or address: no scheme, no port, no wildcard")
    names = [*(LOOPBACK_NAMES if is_loopback(host) else ()), *allow_hosts]
    if not names:
        raise UsageError(
            "a host that is not the loopback needs --allow-host NAME for every name its clients call it by; "
            "nothing was opened"
        )
    return TransportSecuritySettings(
        allowed_hosts=[form for name in names for form in (name, f"{name}:*")],
        allowed_origins=[
            form
            for name in names
            for scheme in ("http", "https")
            for form in (f"{scheme}://{name}", f"{scheme}://{name}:*")
        ],
    )


def _bind(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise UnavailableError(
            f"the address cannot be bound at port {port} ({error.strerror or type(error).__name__}); "
            "choose another --port, or 0 for a free one"
        ) from error
    # Without it an answer of two writes waits 40 ms for the client's acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
