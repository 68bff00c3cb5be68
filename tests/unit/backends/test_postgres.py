"""The door to Postgres: what its errors say and do not say, how long it waits, and what it leaves open."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from embedded_server import TestServer

from backends.errors import AccessRefused, BackendError, BackendUnavailable
from backends.postgres import Database, TableMissing

CANARIES = ("canary-user", "canary-word", "127.0.0.1")
pytestmark = pytest.mark.promise("backends.plain_errors")


@pytest.fixture
def database(postgres_server: TestServer) -> Iterator[Database]:
    url = postgres_server.database()
    database = Database(url, statement_timeout_s=2)
    yield database
    database.close()
    postgres_server.give_back(url)


def refusal(database: Database) -> BackendError:
    with pytest.raises(BackendError) as caught, database.reading() as look:
        look.rows("SELECT 1")
    error = caught.value
    assert error.__cause__ is None
    assert error.__suppress_context__
    assert not [canary for canary in CANARIES if canary in f"{error} {error!r} {database!r} {vars(error)}"]
    return error


@contextmanager
def server_that_says(code: str, words: str) -> Iterator[int]:
    """A port where every start of a session is answered with this error."""
    fields = f"SFATAL\0C{code}\0M{words}\0\0".encode()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    caller, _ = listener.accept()
                except OSError:
                    return
                with caller:
                    while (asked := caller.recv(4096))[4:8] in (b"\x04\xd2\x16/", b"\x04\xd2\x160"):
                        caller.sendall(b"N")  # no encryption here
                    assert asked
                    caller.sendall(b"E" + struct.pack(">i", 4 + len(fields)) + fields)

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]


def test_a_dead_server_is_told_in_one_sentence(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    error = refusal(Database(f"postgresql://canary-user:canary-word@127.0.0.1:{port}/x"))
    assert isinstance(error, BackendUnavailable)
    assert "does not answer" in str(error)
    assert not [canary for canary in CANARIES if canary in caplog.text]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("28P01", 'password authentication failed for user "canary-user"'),
        ("28000", 'no pg_hba.conf entry for host "127.0.0.1", user "canary-user"'),
        ("28000", 'role "canary-user" does not exist'),
    ],
)
def test_a_refused_user_is_told_apart_from_a_dead_server(code: str, words: str) -> None:
    with server_that_says(code, words) as port:
        error = refusal(Database(f"postgresql://canary-user:canary-word@127.0.0.1:{port}/x"))
    assert isinstance(error, AccessRefused)


@pytest.mark.parametrize("url", ["canary-word canary-user", "postgresql://canary-user:canary-word@[127.0.0.1/x", "a=b"])
def test_an_address_that_is_none_is_refused_without_repeating_it(url: str) -> None:
    assert "DATABASE_URL" in str(refusal(Database(url)))


@pytest.mark.parametrize(
    ("condition", "kind", "words"),
    [
        ("disk_full", BackendError, "disk is full"),
        ("insufficient_privilege", AccessRefused, "grant"),
        ("deadlock_detected", BackendUnavailable, "run this again"),
        ("undefined_table", TableMissing, "cda db migrate"),
        ("division_by_zero", BackendError, "22012"),
    ],
)
def test_what_the_server_refuses_is_told_by_its_kind(
    database: Database, condition: str, kind: type[BackendError], words: str
) -> None:
    with pytest.raises(kind, match=words) as caught, database.transaction() as change:
        change.script(f"DO $$ BEGIN RAISE {condition} USING MESSAGE = 'canary-word'; END $$")
    assert "canary" not in str(caught.value)


def test_a_statement_that_takes_too_long_is_stopped(postgres_server: TestServer) -> None:
    database = Database(postgres_server.empty_database(), statement_timeout_s=0.1)
    with pytest.raises(BackendUnavailable, match="in time"), database.reading() as look:
        look.rows("SELECT pg_sleep(60)")
    with database.transaction(timeout_s=30) as change:
        change.run("SELECT pg_sleep(0.3)")
    database.close()


def test_a_transaction_that_fails_changes_nothing(database: Database) -> None:
    with pytest.raises(BackendError, match="22012"), database.transaction() as change:
        change.script("CREATE TABLE cda.half (n int); SELECT 1 / 0")
    with database.reading() as look:
        assert look.rows("SELECT to_regclass('cda.half')") == [(None,)]


def test_connections_that_the_server_dropped_are_replaced(database: Database) -> None:
    with pytest.raises(BackendUnavailable, match="does not answer"), database.reading() as look:
        look.rows("SELECT pg_terminate_backend(pg_backend_pid())")
    with database.reading() as look:
        assert look.rows("SELECT 1") == [(1,)]


def test_opening_and_closing_leaves_no_connection(postgres_server: TestServer, database: Database) -> None:
    url = postgres_server.empty_database()
    name = url.split("@/")[1].split("?")[0]
    for _ in range(20):
        one = Database(url)
        with one.reading() as look:
            look.rows("SELECT 1")
        one.close()
    with database.reading() as look:
        count = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s"
        for _ in range(100):
            if look.rows(count, name) == [(0,)]:
                break  # a server's process ends a moment after its client has gone
            look.run("SELECT pg_sleep(0.02)")
        assert look.rows(count, name) == [(0,)]
