"""Migrations: once, in order, whole; and a database of another history is refused."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from embedded_server import TestServer

from backends.errors import BackendError
from backends.migrations import migrate, migrations, require_current
from backends.pgvector import PgVectorBackend
from backends.postgres import Database

pytestmark = pytest.mark.promise("database.migrations")


@pytest.fixture
def empty(postgres_server: TestServer) -> Iterator[Database]:
    database = Database(postgres_server.empty_database())
    yield database
    database.close()


def test_a_second_run_finds_nothing_to_do(empty: Database) -> None:
    assert migrate(empty) == [migration.name for migration in migrations()]
    assert migrate(empty) == []
    require_current(empty)


def test_of_two_operators_one_migrates_and_the_other_finds_it_done(postgres_server: TestServer) -> None:
    url = postgres_server.empty_database()

    def operate(_: int) -> list[str]:
        database = Database(url)
        try:
            return migrate(database)
        finally:
            database.close()

    with ThreadPoolExecutor(4) as pool:
        applied = sorted(pool.map(operate, range(4)))
    assert applied == [[], [], [], [migration.name for migration in migrations()]]


def test_files_are_numbered_from_one_without_a_gap() -> None:
    assert [migration.number for migration in migrations()] == list(range(1, len(migrations()) + 1))


def test_a_database_without_migrations_names_the_command(empty: Database) -> None:
    with pytest.raises(BackendError, match="cda db migrate"):
        PgVectorBackend(empty).targets()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE cda.migrations SET sha256 = 'x' WHERE number = 1", "0001_targets was applied .* with other words"),
        ("INSERT INTO cda.migrations (number, name, sha256) VALUES (9999, 'later', 'x')", "newer cda"),
        (
            "UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'",
            "pgvector 0.7.4 and 0.8 is the least",
        ),
    ],
)
def test_a_database_of_another_history_is_refused(empty: Database, change: str, words: str) -> None:
    migrate(empty)
    with empty.transaction() as tampered:
        tampered.run(change)
    for judge in (migrate, require_current, lambda database: PgVectorBackend(database).targets()):
        with pytest.raises(BackendError, match=words):
            judge(empty)


def test_a_migration_that_fails_leaves_the_database_as_it_was(empty: Database) -> None:
    with empty.transaction() as other:
        other.script("CREATE SCHEMA cda; CREATE TABLE cda.targets (somebody_elses int)")
    with pytest.raises(BackendError, match="42P07"):
        migrate(empty)
    with empty.reading() as look:
        assert look.rows("SELECT to_regclass('cda.migrations')") == [(None,)]


class ServerWithout:
    """A server that offers no extension at all."""

    def rows(self, sql: str, *values: object) -> list[tuple[object, ...]]:
        return []


def test_a_server_without_the_extension_is_told_so() -> None:
    from backends.migrations import _require_extension

    with pytest.raises(BackendError, match="no extension pgvector; install"):
        _require_extension(ServerWithout(), make=True)  # type: ignore[arg-type]
