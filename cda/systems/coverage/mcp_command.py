"""`cda mcp`: the policy server, and those of other packages: entry points of the group `cda.mcp_servers`."""

from typing import Literal

import click

from cda.entry_point_group import EntryPointGroup


@click.group(cls=EntryPointGroup, points="cda.mcp_servers", no_args_is_help=True)
def mcp_group() -> None:
    """Run one of the MCP servers, over stdio (default) or streamable HTTP at /mcp."""


@mcp_group.command("policy")
@click.option("--transport", type=click.Choice(["stdio", "http"]), default="stdio", show_default=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="HTTP: the address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="HTTP: the port; 0 takes a free one."
)
@click.option(
    "--allow-host",
    "allow_hosts",
    multiple=True,
    metavar="NAME",
    help="HTTP: a host name that clients may call this server by (repeatable). Needed for any --host that is not the "
    "loopback; the server has no authentication of its own, so put a proxy that has one before it.",
)
def policy(transport: Literal["stdio", "http"], host: str, port: int, allow_hosts: tuple[str, ...]) -> None:
    """The policy corpus: search clauses, read one, list versions, look up a code, list a plan's riders. Read-only."""
    from cda.settings import load_settings
    from cda.systems.coverage.server import run_policy_server

    if allow_hosts and transport != "http":
        raise click.UsageError("--allow-host belongs to --transport http")
    run_policy_server(load_settings(), transport=transport, host=host, port=port, allow_hosts=allow_hosts)


if __name__ == "__main__":
    mcp_group(prog_name="cda mcp")
