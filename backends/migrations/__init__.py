"""The database's tables, as numbered SQL files that are applied once each, in order, all or none.

A file that was applied is never edited: its sha256 is kept with its number, and a database whose history differs from
these files is refused. A transaction-wide lock keeps two operators apart: the second finds the work done.
"""

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from backends.errors import BackendError
from backends.postgres import Database, Transaction

LEAST_PGVECTOR = (0, 8)
LOCK = 0x636461  # "cda": the advisory lock of whoever migrates


@dataclass(frozen=True, slots=True)
class Migration:
    """One file: 0001_targets.sql has the number 1."""

    number: int
    name: str
    sql: str

    @property
    def sha256(self) -> str:
        """Of the file's text."""
        return sha256(self.sql.encode("utf-8")).hexdigest()


@cache
def migrations() -> tuple[Migration, ...]:
    """All of them, by number."""
    files = sorted(Path(__file__).parent.glob("[0-9]*.sql"))
    return tuple(Migration(int(file.name[:4]), file.stem, file.read_text(encoding="utf-8")) for file in files)


def migrate(database: Database) -> list[str]:
    """Bring the database to these files' state; the names of what was applied now.

    BackendError when the extension cannot be had, or when the database has another history; nothing is changed then.
    """
    with database.transaction(timeout_s=600) as change:
        change.run("SELECT pg_advisory_xact_lock(%s)", LOCK)
        _require_extension(change, make=True)
        change.run("CREATE SCHEMA IF NOT EXISTS cda")
        change.run(
            "CREATE TABLE IF NOT EXISTS cda.migrations (number integer PRIMARY KEY, name text NOT NULL,"
            " sha256 text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
        )
        due = _due(change)
        for migration in due:
            change.script(migration.sql)
            change.run(
                "INSERT INTO cda.migrations (number, name, sha256) VALUES (%s, %s, %s)",
                migration.number,
                migration.name,
                migration.sha256,
            )
    return [migration.name for migration in due]


def require_current(database: Database) -> None:
    """Raise BackendError unless the extension is there and every migration is applied; changes nothing."""
    with database.transaction() as look:
        _require_extension(look, make=False)
        known = look.rows("SELECT to_regclass('cda.migrations') IS NOT NULL")[0][0]
        due = _due(look) if known else list(migrations())
    if due:
        raise BackendError(f"the database lacks {len(due)} migration(s) of cda; run `cda db migrate`")


def _due(look: Transaction) -> list[Migration]:
    """What is not applied yet. BackendError when what is applied are not these files' first ones."""
    applied = look.rows("SELECT number, sha256 FROM cda.migrations ORDER BY number")
    ours = migrations()
    if len(applied) > len(ours):
        raise BackendError("the database was migrated by a newer cda than this one; install that, or another database")
    for (number, digest), migration in zip(applied, ours, strict=False):
        if (number, digest) != (migration.number, migration.sha256):
            raise BackendError(
                f"migration {migration.name} was applied to the database with other words than this cda has; "
                "use the version that made it, or another database"
            )
    return list(ours[len(applied) :])


def _require_extension(look: Transaction, *, make: bool) -> None:
    """The extension `vector` of at least LEAST_PGVECTOR, made when it may be."""
    least = ".".join(map(str, LEAST_PGVECTOR))
    held = look.rows("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    if not held and not make:
        raise BackendError(f"the database has no extension pgvector (>= {least}); run `cda db migrate`")
    if not held:
        offered = look.rows("SELECT default_version FROM pg_available_extensions WHERE name = 'vector'")
        if not offered:
            raise BackendError(f"this Postgres server has no extension pgvector; install pgvector >= {least} on it")
        _require_version(offered[0][0], least)
        look.run("CREATE EXTENSION IF NOT EXISTS vector")
        return
    _require_version(held[0][0], least)


def _require_version(held: str, least: str) -> None:
    numbers = tuple(int(part) for part in held.split(".")[:2] if part.isdigit())
    if numbers < LEAST_PGVECTOR:
        raise BackendError(
            f"the database has pgvector {held} and {least} is the least that will do: update the extension "
            "(ALTER EXTENSION vector UPDATE) on a server that has it"
        )
