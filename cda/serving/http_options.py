"""The options that say where a server listens, the same for every server."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from cda.serving.transport import Http

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--host", default="127.0.0.1", show_default=True, help="HTTP: the address to listen on."),
    click.option(
        "--port",
        type=click.IntRange(0, 65535),
        default=8000,
        show_default=True,
        help="HTTP: the port; 0 takes a free one.",
    ),
    click.option(
        "--allow-host",
        "allow_hosts",
        multiple=True,
        metavar="NAME",
        help="HTTP: a host name that clients may call this server by (repeatable). Needed for any --host that is not "
        "the loopback.",
    ),
    click.option("--tls-cert", type=click.Path(exists=True, dir_okay=False), help="HTTP: the certificate's file."),
    click.option("--tls-key", type=click.Path(exists=True, dir_okay=False), help="HTTP: the certificate's key file."),
    click.option("--behind-proxy", is_flag=True, help="HTTP: a proxy in front of this server ends TLS."),
)


def http_options(command: CommandT) -> CommandT:
    """The options, on a command that takes a --transport."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def http_of(
    transport: str,
    host: str,
    port: int,
    allow_hosts: tuple[str, ...],
    tls_cert: str | None,
    tls_key: str | None,
    behind_proxy: bool,
) -> "Http":
    """Where to listen. UsageError for options of HTTP on stdio, and for half of a certificate."""
    from cda.serving.transport import Http

    if transport != "http" and (allow_hosts or tls_cert or tls_key or behind_proxy):
        raise click.UsageError("--allow-host, --tls-cert, --tls-key and --behind-proxy belong to --transport http")
    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key belong together")
    tls = (tls_cert, tls_key) if tls_cert and tls_key else None
    return Http(host, port, allow_hosts, tls, behind_proxy)
