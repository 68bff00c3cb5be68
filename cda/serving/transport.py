"""How a tool server is reached: stdio, where standard output is protocol and nothing else, or HTTP on the loopback."""

import ipaddress
import os
import re
import socket
import sys
from collections.abc import Sequence
from io import TextIOWrapper

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from cda.errors import UnavailableError, UsageError
from cda.serving.http_refusals import OwnRefusals
from cda.serving.quiet_log import log_quietly
from cda.serving.tool_server import ToolServer

PATH = "/mcp"
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_HOST_NAME = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])\Z")


def reserve_stdout() -> TextIOWrapper:
    """Take standard output for the protocol: the stream returned is the only way to it from now on.

    Descriptor 1 and everything that prints to it, here or in a child, leads to stderr until the process ends; a banner
    or a library's print would otherwise be read as a broken message.
    """
    sys.stdout.flush()
    wire = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return TextIOWrapper(wire, encoding="utf-8", newline="\n")


def serve_stdio(server: ToolServer, wire: TextIOWrapper) -> None:
    """Serve one client until it closes our stdin; `wire` comes from `reserve_stdout`."""
    anyio.run(server.run_stdio_on, anyio.wrap_file(wire))


def serve_http(server: ToolServer, *, host: str, port: int, allow_hosts: Sequence[str] = ()) -> None:
    """Serve streamable HTTP at `PATH` until a signal; port 0 takes a free one, which the line on stderr names.

    Raises UsageError for a host that is not loopback without `allow_hosts`, and UnavailableError when the address
    cannot be bound. This server has no authentication of its own.
    """
    security = host_rules(host, allow_hosts)
    listener = _bind(host, port)
    app = server.streamable_http_app(host=host, streamable_http_path=PATH, transport_security=security)
    config = uvicorn.Config(OwnRefusals(app), log_config=None, access_log=False, server_header=False)
    shown = f"[{host}]" if ":" in host else host
    print(f"serving http://{shown}:{listener.getsockname()[1]}{PATH}", file=sys.stderr, flush=True)
    log_quietly()
    uvicorn.Server(config).run(sockets=[listener])


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


def is_loopback(host: str) -> bool:
    """True for localhost and for addresses that only this machine can reach."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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
