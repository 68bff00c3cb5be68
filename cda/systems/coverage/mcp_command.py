"""`cda mcp`: the policy server, and those of other packages: entry points of the group `cda.mcp_servers`."""

from typing import Literal

import click

from cda.entry_point_group import EntryPointGroup
from cda.serving.http_options import http_options


@click.group(cls=EntryPointGroup, points="cda.mcp_servers", no_args_is_help=True)
def mcp_group() -> None:
    """Run one of the MCP servers, over stdio (default) or streamable HTTP at /mcp."""


@mcp_group.command("policy")
@click.option("--transport", type=click.Choice(["stdio", "http"]), default="stdio", show_default=True)
@http_options
@click.option("--keys/--no-keys", "keyed", default=False, help="Ask for keys, limit calls and keep the ledger.")
def policy(
    transport: Literal["stdio", "http"],
    host: str,
    port: int,
    allow_hosts: tuple[str, ...],
    tls_cert: str | None,
    tls_key: str | None,
    behind_proxy: bool,
    keyed: bool,
) -> None:
    """The policy corpus: search clauses, read one, list versions, look up a code, list a plan's riders. Read-only."""
    from cda.serving.http_options import http_of
    from cda.settings import load_settings
    from cda.systems.coverage.server import run_policy_server

    at = http_of(transport, host, port, allow_hosts, tls_cert, tls_key, behind_proxy)
    run_policy_server(load_settings(), transport=transport, at=at, keyed=keyed)


if __name__ == "__main__":
    mcp_group(prog_name="cda mcp")
