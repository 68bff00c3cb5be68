"""The read-only connection, statement by statement and layer by layer."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from cda.errors import UnavailableError
from cda.systems.claims.store import LAYERS, ClaimsStore, ClaimsUnavailable, open_reader

# What each statement does when it is not stopped, and which of the three layers stop it alone.
STATEMENTS: dict[str, tuple[str, set[str]]] = {
    "insert": ("INSERT INTO plans VALUES ('PLN-X', 'x', 1, 1)", {"mode_ro", "query_only", "authorizer"}),
    "update": ("UPDATE claims SET paid_cents = 0", {"mode_ro", "query_only", "authorizer"}),
    "delete in a with": (
        "WITH x AS (SELECT 1) DELETE FROM claim_notes -- limit",
        {"mode_ro", "query_only", "authorizer"},
    ),
    "drop": ("DROP TABLE claim_notes", {"mode_ro", "query_only", "authorizer"}),
    "attach": ("ATTACH 'OUT/copy.sqlite' AS stolen", {"authorizer"}),
    "vacuum into": ("VACUUM INTO 'OUT/copy.sqlite'", {"query_only", "authorizer"}),
    "temporary table": ("CREATE TEMP TABLE t AS SELECT 1", {"query_only", "authorizer"}),
    "query_only off": ("PRAGMA query_only = OFF", {"authorizer"}),
    "writable schema": ("PRAGMA writable_schema = ON", {"authorizer"}),
    "journal mode": ("PRAGMA journal_mode = WAL", {"mode_ro", "query_only", "authorizer"}),
    "hidden column": ("SELECT enrolled_on FROM members LIMIT 1", {"authorizer"}),
    "schema": ("SELECT sql FROM sqlite_schema", {"authorizer"}),
    "recursion": (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n LIMIT 1",
        {"authorizer"},
    ),
    "function": ("SELECT hex(randomblob(8))", {"authorizer"}),
    "extension": ("SELECT load_extension('x')", {"the default of the module", "authorizer"}),
    "transaction": ("BEGIN IMMEDIATE", {"mode_ro", "authorizer"}),
    "savepoint": ("SAVEPOINT s", {"authorizer"}),
    "two statements": ("SELECT 1; DROP TABLE claims", {"mode_ro", "query_only", "authorizer"}),
}


@pytest.fixture
def copy(database: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(database, tmp_path / "claims.sqlite"))


def refused(file: Path, layers: frozenset[str], statement: str) -> bool:
    """Whether the statement is refused, within a bound for what never ends."""
    connection = open_reader(file, layers)
    connection.set_progress_handler(lambda: 1, 2_000_000)
    try:
        connection.execute(statement.replace("OUT", str(file.parent))).fetchall()
    except (sqlite3.DatabaseError, sqlite3.ProgrammingError, sqlite3.Warning) as error:
        return "interrupted" not in str(error)
    finally:
        connection.close()
    return False


@pytest.mark.promise("claims.readonly")
@pytest.mark.parametrize("name", STATEMENTS)
def test_no_statement_gets_through_the_connection(copy: Path, name: str) -> None:
    before = sha256(copy.read_bytes()).hexdigest()

    assert refused(copy, LAYERS, STATEMENTS[name][0])
    assert sha256(copy.read_bytes()).hexdigest() == before
    assert [file.name for file in copy.parent.iterdir()] == ["claims.sqlite"]


@pytest.mark.promise("claims.readonly")
@pytest.mark.parametrize("removed", sorted(LAYERS))
@pytest.mark.parametrize("name", STATEMENTS)
def test_with_a_layer_removed_the_others_hold_what_they_hold(copy: Path, name: str, removed: str) -> None:
    statement, held_by = STATEMENTS[name]

    assert refused(copy, LAYERS - {removed}, statement) == bool(held_by - {removed})


@pytest.mark.promise("claims.readonly")
def test_the_authorizer_is_the_layer_that_holds_everything(copy: Path) -> None:
    alone = frozenset({"authorizer"})

    assert all("authorizer" in held_by for _, held_by in STATEMENTS.values())
    assert [name for name, (statement, _) in STATEMENTS.items() if not refused(copy, alone, statement)] == []


def missing(file: Path) -> None:
    file.unlink()


def another_make(file: Path) -> None:
    file.unlink()
    sqlite3.connect(file).execute("CREATE TABLE claims (claim_id TEXT)").connection.close()


def no_database(file: Path) -> None:
    file.write_bytes(b"PK" * 4000)


def unfinished(file: Path) -> None:
    Path(f"{file}-wal").write_bytes(b"x" * 64)


def a_link(file: Path) -> None:
    moved = file.rename(file.with_name("moved.sqlite"))
    file.symlink_to(moved)


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def changed_by(statement: str) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        writer = sqlite3.connect(file)
        writer.executescript(f"PRAGMA legacy_alter_table = ON; {statement};")
        writer.close()

    change.__name__ = statement.partition(" AS")[0].lower()
    return change


FAULTS: list[tuple[Callable[[Path], None], str]] = [
    (missing, "cannot be read"),
    (another_make, "no claims database"),
    (no_database, "no claims database"),
    (unfinished, "left it unfinished"),
    (a_link, "not a link"),
    (a_folder, "no regular file"),
    (changed_by("CREATE VIEW extra AS SELECT 1"), "no claims database"),
    (changed_by("CREATE TRIGGER t AFTER INSERT ON claims BEGIN SELECT 1; END"), "no claims database"),
    (changed_by("ALTER TABLE plans RENAME TO p; CREATE VIEW plans AS SELECT * FROM p"), "no claims database"),
    (changed_by("CREATE VIRTUAL TABLE v USING fts5(x)"), "no claims database"),
    (changed_by("DROP TABLE claim_notes"), "no claims database"),
    (changed_by("ALTER TABLE claims DROP COLUMN denial_reason"), "no claims database"),
    (changed_by("PRAGMA user_version = 99"), "no claims database"),
]


@pytest.mark.promise("claims.closed")
@pytest.mark.parametrize(("fault", "words"), FAULTS, ids=[f.__name__ for f, _ in FAULTS])
def test_a_database_that_cannot_be_trusted_is_not_opened(copy: Path, fault: Callable[[Path], None], words: str) -> None:
    fault(copy)

    with pytest.raises(UnavailableError, match=words):
        ClaimsStore(copy)


def replaced(file: Path) -> None:
    fresh = Path(shutil.copy(file, file.with_name("fresh.sqlite")))
    fresh.replace(file)


@pytest.mark.promise("claims.closed")
@pytest.mark.parametrize("fault", [missing, unfinished, a_link, replaced], ids=lambda f: f.__name__)
def test_a_database_that_changes_under_the_server_is_not_answered_from(
    copy: Path, fault: Callable[[Path], None]
) -> None:
    store = ClaimsStore(copy)
    fault(copy)

    with pytest.raises(ClaimsUnavailable), store.reading():
        pass


@pytest.mark.promise("claims.closed")
def test_a_statement_that_takes_too_long_or_brings_too_much_is_stopped(database: Path) -> None:
    slow = ClaimsStore(database, time_limit_s=0.0)
    with slow.reading() as connection, pytest.raises(ClaimsUnavailable, match="OperationalError"):
        slow.rows(connection, "SELECT count(*) FROM claims AS a, claims AS b", ())
    store = ClaimsStore(database)
    with store.reading() as connection, pytest.raises(ClaimsUnavailable, match="more than 200 rows"):
        store.rows(connection, "SELECT claim_id FROM claims", ())


@pytest.mark.promise("claims.closed")
def test_every_call_has_a_connection_of_its_own_and_closes_it(database: Path) -> None:
    store = ClaimsStore(database)
    with store.reading() as first, store.reading() as second:
        assert first is not second
    descriptors = [Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd")]
    assert str(database) not in {os.readlink(descriptor) for descriptor in descriptors if descriptor.exists()}
