"""Postgres behind one door: a pool of connections, a bound on every statement, and errors as plain sentences.

The only importer of psycopg. No error says a host, a user, a password or a value: of what the server answers only its
five-letter code is repeated. Identifiers in SQL come from this tree; every value is bound.
"""

import logging
import re
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
from pgvector.psycopg.vector import register_vector_info
from psycopg import errors
from psycopg.types import TypeInfo
from psycopg_pool import ConnectionPool, PoolTimeout

from backends.errors import AccessRefused, BackendError, BackendUnavailable

STATEMENT_TIMEOUT_S = 30.0
CONNECT_TIMEOUT_S = 5
CONNECTIONS = 4
# search_path: the extension's types are in `public`, on some hosts in `extensions`; a schema that is not there is no
# error. jit: compiling a statement takes longer than running it. Plans are made for the values at hand: a generic one
# cannot know how few rows a payer has. work_mem: the eligible of a wide filter are counted and sorted in memory.
SESSION = {
    "search_path": "cda, public, extensions",
    "jit": "off",
    "plan_cache_mode": "force_custom_plan",
    "work_mem": "64MB",
    "client_min_messages": "error",
}

# The pool reports failed connections to this logger with the host in the words.
logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)

# A connection that fails has no code, only the server's words.
_REFUSED = re.compile(r"authentication failed|not permitted to log in|no pg_hba\.conf entry|role .* does not exist")

Row = tuple[Any, ...]
Query = tuple[str, Sequence[object]]


class TableMissing(BackendError):
    """A table that a statement names is not in the database."""


class Transaction:
    """What runs in one transaction. `%s` stands for a bound value."""

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection

    def rows(self, sql: str, *values: object) -> list[Row]:
        """The rows of a query."""
        return self._connection.execute(sql.encode("utf-8"), values).fetchall()

    def run(self, sql: str, *values: object) -> int:
        """Run a statement without rows; how many rows it touched."""
        return self._connection.execute(sql.encode("utf-8"), values or None).rowcount

    def script(self, sql: str) -> None:
        """Run several statements that bind nothing."""
        self._connection.execute(sql.encode("utf-8"))

    def together(self, queries: Sequence[Query]) -> list[list[Row]]:
        """The rows of each query, all sent before the first answer is read."""
        with self._connection.pipeline():
            cursors = [self._connection.execute(sql.encode("utf-8"), values) for sql, values in queries]
        return [cursor.fetchall() for cursor in cursors]

    def copy(self, sql: str, types: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Stream rows into a `COPY ... FROM STDIN (FORMAT BINARY)`; `types` are the columns' types."""
        with self._connection.cursor() as cursor, cursor.copy(sql.encode("utf-8")) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)

    def copy_text(self, sql: str, rows: Iterable[Sequence[object]]) -> int:
        """Stream rows into a `COPY ... FROM STDIN`, for types without a binary form; how many they were."""
        with self._connection.cursor() as cursor:
            with cursor.copy(sql.encode("utf-8")) as copy:
                for row in rows:
                    copy.write_row(row)
            return cursor.rowcount


class Database:
    """One database. Connects on first use; safe for several threads."""

    def __init__(
        self, url: str, *, statement_timeout_s: float = STATEMENT_TIMEOUT_S, patience_s: float = CONNECT_TIMEOUT_S
    ) -> None:
        """`patience_s` bounds the wait for a connection: a free one, or a new one in place of one that broke."""
        self._url = url
        self._timeout_s = statement_timeout_s
        self._patience_s = patience_s
        self._pool: ConnectionPool[psycopg.Connection[Row]] | None = None
        self._opening = threading.Lock()
        self._closed = False

    @contextmanager
    def transaction(self, *, timeout_s: float | None = None) -> Iterator[Transaction]:
        """A transaction: committed when the block ends, rolled back when it raises. `timeout_s` bounds each of its
        statements instead of the usual bound. Raises BackendUnavailable, AccessRefused, BackendError."""
        with _plain_errors(), self._opened().connection() as connection, connection.transaction():
            if timeout_s is not None:
                connection.execute("SELECT set_config('statement_timeout', %s, true)", (_milliseconds(timeout_s),))
            yield Transaction(connection)

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Queries that need no common snapshot: each is its own transaction, and none waits for the one before."""
        with _plain_errors(), self._opened().connection() as connection:
            yield Transaction(connection)

    def close(self) -> None:
        """Close every connection; a second close does nothing, any use after it is an error."""
        with self._opening:
            self._closed = True
            if self._pool is not None:
                self._pool.close()
                self._pool = None

    def _opened(self) -> "ConnectionPool[psycopg.Connection[Row]]":
        with self._opening:
            if self._closed:
                raise BackendError("the database is closed")
            if self._pool is None:
                # The pool tries again and again until its time is up; a wrong password is known after one try.
                psycopg.connect(self._url, connect_timeout=CONNECT_TIMEOUT_S).close()
                self._pool = ConnectionPool(
                    self._url,
                    connection_class=psycopg.Connection[Row],
                    kwargs={"autocommit": True, "connect_timeout": CONNECT_TIMEOUT_S, "application_name": "cda"},
                    min_size=1,
                    max_size=CONNECTIONS,
                    timeout=self._patience_s,
                    reconnect_timeout=self._patience_s,
                    configure=partial(_configure, self._timeout_s),
                    check=ConnectionPool.check_connection,
                    num_workers=1,
                    open=True,
                )
                # Whoever forgets to close a database, or just ends, leaves no thread and no open connection.
                weakref.finalize(self, self._pool.close)
            return self._pool


def _configure(timeout_s: float, connection: psycopg.Connection[Row]) -> None:
    session = SESSION | {"statement_timeout": _milliseconds(timeout_s)}
    calls = ", ".join("set_config(%s, %s, false)" for _ in session)
    values = [part for setting in session.items() for part in setting]
    connection.execute(f"SELECT {calls}".encode(), values)
    vector = TypeInfo.fetch(connection, "vector")
    if vector is not None:  # it is not there before the first migration
        register_vector_info(connection, vector)


def _milliseconds(seconds: float) -> str:
    return str(round(seconds * 1000))


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Every error of the driver as one of ours, in words of ours. The original is not chained: it names the host."""
    try:
        yield
    except psycopg.Error as error:
        raise _translated(error) from None


def _translated(error: psycopg.Error) -> BackendError:  # noqa: PLR0911 - one return a kind of error
    code = error.sqlstate or ""
    match error:
        case errors.DiskFull():
            return BackendError("the database's disk is full; nothing was written")
        case errors.QueryCanceled():
            return BackendUnavailable("the database did not answer a statement in time; nothing was written")
        case errors.UndefinedTable():
            return TableMissing("the database lacks a table of cda; run `cda db migrate`")
        case errors.InsufficientPrivilege():
            return AccessRefused("the database user may not do this; grant it the schema `cda` or use another user")
        case _ if code.startswith("28") or _REFUSED.search(str(error)):
            return AccessRefused("the database does not let in the user of DATABASE_URL, or not with this password")
        case _ if code.startswith("40"):
            return BackendUnavailable("the database was busy with another writer; run this again")
        case PoolTimeout() | errors.OperationalError() | errors.InterfaceError():
            return BackendUnavailable("the database does not answer; see that it runs (`cda db up`) and DATABASE_URL")
        case errors.ProgrammingError() if not code:
            return BackendError("DATABASE_URL is no address of a Postgres database: postgresql://USER@HOST/NAME")
    return BackendError(f"the database refused a statement (code {code or type(error).__name__})")
