"""The claims database opened for reading, and for nothing else.

Three layers: SQLite's read-only mode, its query_only switch, and an authorizer that allows the reading of named columns
and the calling of named functions. Only the authorizer stops ATTACH, VACUUM INTO and PRAGMA; the other two stand behind
it. One connection a call, with a limit of time and of rows.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG
from time import monotonic
from typing import Any
from urllib.parse import quote

from cda.errors import UnavailableError
from cda.systems.claims.schema import FUNCTIONS, READABLE, VERSION

LAYERS = frozenset(("mode_ro", "query_only", "authorizer"))
TIME_LIMIT_S = 2.0
ROW_LIMIT = 200
_STEPS = 1000  # of SQLite's virtual machine between two looks at the clock

_SHAPE = "SELECT m.name, c.name FROM sqlite_schema AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table'"
_ODD = "SELECT count(*) FROM sqlite_schema WHERE type IN ('view', 'trigger') OR sql LIKE 'CREATE VIRTUAL TABLE%'"
_VERSION = "PRAGMA user_version"
_QUERY_ONLY = "PRAGMA query_only = ON"
_UNTRUSTED_SCHEMA = "PRAGMA trusted_schema = OFF"


class ClaimsUnavailable(Exception):
    """The database cannot be read; the message is for the log and never for a caller."""


class ClaimsStore:
    """One database file. Raises UnavailableError when it is missing, of another make, not closed well, or a link; once
    open it answers from that very file or not at all."""

    def __init__(self, file: Path, *, time_limit_s: float = TIME_LIMIT_S) -> None:
        self._file, self._time_limit_s = file, time_limit_s
        try:
            self._identity = self._look()
            _require_shape(file)
        except ClaimsUnavailable as fault:
            raise UnavailableError(f"the claims database {file}: {fault}") from None

    def rows(
        self, connection: sqlite3.Connection, statement: str, values: Sequence[str | int]
    ) -> list[tuple[Any, ...]]:
        """The rows of a fixed statement. ClaimsUnavailable when it takes too long or brings too many."""
        try:
            found = connection.execute(statement, values).fetchmany(ROW_LIMIT + 1)
        except sqlite3.Error as error:
            raise ClaimsUnavailable(type(error).__name__) from None
        if len(found) > ROW_LIMIT:
            raise ClaimsUnavailable(f"more than {ROW_LIMIT} rows")
        return found

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection for one call, on the file that was opened at the start."""
        if self._look() != self._identity:
            raise ClaimsUnavailable("the file is another one than at the start")
        connection = open_reader(self._file)
        deadline = monotonic() + self._time_limit_s
        connection.set_progress_handler(lambda: monotonic() > deadline, _STEPS)
        try:
            if self._look() != self._identity:
                raise ClaimsUnavailable("the file is another one than at the start")
            yield connection
        finally:
            connection.close()

    def _look(self) -> tuple[int, int]:
        try:
            found = self._file.lstat()
        except OSError as error:
            raise ClaimsUnavailable(f"it cannot be read ({error.strerror})") from None
        if not S_ISREG(found.st_mode):
            raise ClaimsUnavailable("it is no regular file; name the file itself, not a link")
        for left in (f"{self._file}-wal", f"{self._file}-journal"):
            if Path(left).exists():
                raise ClaimsUnavailable("a writer has left it unfinished (its -wal or -journal file is there)")
        return found.st_dev, found.st_ino


def open_reader(file: Path, layers: frozenset[str] = LAYERS) -> sqlite3.Connection:
    """A read-only connection. `layers` is for the test that shows what each of them holds. ClaimsUnavailable when the
    file cannot be opened."""
    mode = "ro" if "mode_ro" in layers else "rw"
    try:
        connection = sqlite3.connect(
            f"file:{quote(str(file))}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False
        )
        # Bytes that are no UTF-8, a lone surrogate among them, must not hide the rest of a claim's notes.
        connection.text_factory = _text
        connection.execute(_UNTRUSTED_SCHEMA)
        if "query_only" in layers:
            connection.execute(_QUERY_ONLY)
        if "authorizer" in layers:
            connection.set_authorizer(_allowed)
    except sqlite3.Error as error:
        raise ClaimsUnavailable(f"it cannot be opened ({type(error).__name__})") from None
    return connection


def _text(stored: bytes) -> str:
    return stored.decode("utf-8", "replace")


def _allowed(action: int, first: str | None, second: str | None, _database: str | None, _source: str | None) -> int:
    match action:
        case sqlite3.SQLITE_SELECT:
            return sqlite3.SQLITE_OK
        # An empty column is what count(*) reads of a table.
        case sqlite3.SQLITE_READ if first in READABLE and (second in READABLE[first] or second == ""):
            return sqlite3.SQLITE_OK
        case sqlite3.SQLITE_FUNCTION if second in FUNCTIONS:
            return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _require_shape(file: Path) -> None:
    """Plain tables with the columns that the schema has, and its version; no view, trigger or virtual table, which
    would run what somebody else wrote."""
    connection = open_reader(file, LAYERS - {"authorizer"})
    try:
        version = connection.execute(_VERSION).fetchone()[0]
        odd = connection.execute(_ODD).fetchone()[0]
        columns: dict[str, set[str]] = {}
        for table, column in connection.execute(_SHAPE):
            columns.setdefault(table, set()).add(column)
    except sqlite3.Error as error:
        raise ClaimsUnavailable(f"it is no claims database ({type(error).__name__})") from None
    finally:
        connection.close()
    if odd or version != VERSION or any(not wanted <= columns.get(table, set()) for table, wanted in READABLE.items()):
        raise ClaimsUnavailable("it is no claims database of this version; make one with `cda claims seed`")
