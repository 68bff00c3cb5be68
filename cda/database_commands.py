"""`cda db`: the database behind the pgvector backend, which is DATABASE_URL's, or an embedded server of one's own.

Other packages add commands through entry points of the group `cda.db_commands`.
"""

import json
from typing import TYPE_CHECKING, Any

import click

from backends.embedded import EmbeddedPostgres
from cda.entry_point_group import EntryPointGroup
from cda.errors import UsageError

if TYPE_CHECKING:
    from cda.settings import Settings

_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.group("db", cls=EntryPointGroup, points="cda.db_commands", no_args_is_help=True)
def database_group() -> None:
    """Start, stop and migrate the database of the pgvector backend: the one in DATABASE_URL, else an embedded one."""


@database_group.command()
@_JSON
def up(as_json: bool) -> None:
    """Start the embedded Postgres (not when DATABASE_URL is set) and apply what migrations are due.

    It keeps running, under CDA_HOME/postgres, until `cda db down`. Started by root it runs as the account cda-postgres.
    """
    settings = _settings()
    state = "given"
    if settings.database_url is None:
        state = "started" if EmbeddedPostgres(settings.postgres_path).up() else "running"
    applied = _migrated(settings)
    _say({"server": _server(settings), "state": state, "applied": applied}, as_json, _words(settings, state, applied))


@database_group.command()
@_JSON
def down(as_json: bool) -> None:
    """Stop the embedded Postgres; its data stay."""
    settings = _settings()
    if settings.database_url is not None:
        raise UsageError("DATABASE_URL is set, and cda stops no server but its own; unset it to stop the embedded one")
    stopped = EmbeddedPostgres(settings.postgres_path).down()
    state = "stopped" if stopped else "not running"
    _say({"server": "embedded", "state": state}, as_json, f"the embedded Postgres: {state}")


@database_group.command()
@_JSON
def migrate(as_json: bool) -> None:
    """Apply the migrations that the database lacks. Two who do this at once do it once."""
    settings = _settings()
    applied = _migrated(settings)
    _say({"server": _server(settings), "applied": applied}, as_json, f"{len(applied)} migration(s) applied")


def _settings() -> "Settings":
    from cda.settings import load_settings

    return load_settings()


def _server(settings: "Settings") -> str:
    return "embedded" if settings.database_url is None else "DATABASE_URL"


def _migrated(settings: "Settings") -> list[str]:
    from backends.factory import open_database
    from backends.pgvector_config import PgVectorConfig

    database = open_database(PgVectorConfig(settings.database_url, settings.postgres_path))
    from backends.migrations import migrate as apply

    try:
        return apply(database)
    finally:
        database.close()


def _words(settings: "Settings", state: str, applied: list[str]) -> str:
    where = "the database of DATABASE_URL" if state == "given" else f"the embedded Postgres under {settings.home}"
    return f"{where}: {'reached' if state == 'given' else state}, {len(applied)} migration(s) applied"


def _say(document: dict[str, Any], as_json: bool, words: str) -> None:
    click.echo(json.dumps(document, indent=2) if as_json else words)
