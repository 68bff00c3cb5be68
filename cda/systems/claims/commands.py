"""`cda claims seed` and `cda mcp claims`."""

import json
import sys
from pathlib import Path
from typing import Literal

import click

from cda.serving.http_options import http_options
from cda.serving.wire import reserve_stdout


@click.group("claims", no_args_is_help=True)
def claims_group() -> None:
    """Insurance claims: make a synthetic database to try the server on."""


@claims_group.command("seed")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The file to write; it must not be there.")
@click.option("--days", type=int, default=1, show_default=True, help="Days of claims, 3,000 a day.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same claims.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def seed(out: Path, days: int, seed: int, as_json: bool) -> None:
    """Write a database of invented claims, members, plans and providers."""
    from cda.systems.claims.seed import MAX_DAYS, seed_database

    length = max(1, min(days, MAX_DAYS))
    with click.progressbar(length=length, label="claims", file=sys.stderr) as bar:
        count = seed_database(out, days=days, seed=seed, progress=lambda _done, _of: bar.update(1))
    if as_json:
        click.echo(json.dumps({"file": str(out), "claims": count, "days": days, "seed": seed}))
    else:
        click.echo(f"{out}: {count} claims of {days} day(s); serve it with CDA_CLAIMS_DB={out} cda mcp claims")


@click.command("claims")
@click.option("--transport", type=click.Choice(["stdio", "http"]), default="stdio", show_default=True)
@http_options
def serve_claims(
    transport: Literal["stdio", "http"],
    host: str,
    port: int,
    allow_hosts: tuple[str, ...],
    tls_cert: str | None,
    tls_key: str | None,
    behind_proxy: bool,
) -> None:
    """Insurance claims, read-only: a claim, its notes, a member's claims and year, a plan's rule. Needs a key."""
    wire = reserve_stdout() if transport == "stdio" else None  # before what is imported can print
    from cda.serving.http_options import http_of
    from cda.settings import load_settings
    from cda.systems.claims.server import run_claims_server

    at = http_of(transport, host, port, allow_hosts, tls_cert, tls_key, behind_proxy)
    run_claims_server(load_settings(), wire=wire, at=at)
