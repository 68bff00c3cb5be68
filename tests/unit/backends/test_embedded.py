"""The embedded Postgres: started, found again, stopped."""

import multiprocessing
import os
import signal
import stat
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from embedded_server import HASTY

from backends import embedded
from backends.embedded import EmbeddedPostgres
from backends.errors import BackendError, BackendUnavailable
from backends.postgres import Database

pytestmark = pytest.mark.promise("database.embedded")


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cda-pg-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
        EmbeddedPostgres(Path(folder) / "postgres").down()


def answer(server: EmbeddedPostgres) -> object:
    database = Database(server.url)
    with database.reading() as look:
        found = look.rows("SELECT 6 * 7")[0][0]
    database.close()
    return found


def start_and_die(folder: Path) -> None:
    EmbeddedPostgres(folder, options=HASTY).up()
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_server_outlives_its_killed_starter_and_is_found_and_stopped(home: Path) -> None:
    starter = multiprocessing.get_context("spawn").Process(target=start_and_die, args=(home / "postgres",))
    starter.start()
    starter.join()
    assert starter.exitcode == -signal.SIGKILL
    server = EmbeddedPostgres(home / "postgres")
    assert server.up() is False
    assert answer(server) == 42
    assert server.down() is True
    assert (server.running, server.down()) == (False, False)
    with pytest.raises(BackendUnavailable, match="cda db up"):
        _ = server.url


def test_what_was_written_is_there_after_a_restart_even_when_the_server_was_killed(home: Path) -> None:
    server = EmbeddedPostgres(home / "postgres")
    server.up()
    database = Database(server.url)
    with database.transaction() as change:
        change.script("CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)")
    database.close()
    pid = int((home / "postgres" / "data" / "postmaster.pid").read_text(encoding="utf-8").split()[0])
    os.kill(pid, signal.SIGKILL)
    while server.running:
        pass  # the socket is closed when the process is gone
    assert server.up() is True
    database = Database(server.url)
    with database.reading() as look:
        assert look.rows("SELECT n FROM kept") == [(7,)]
    database.close()


def test_of_two_who_start_it_at_once_one_does(home: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        starts = list(pool.map(lambda _: EmbeddedPostgres(home / "postgres", options=HASTY).up(), range(2)))
    assert sorted(starts) == [False, True]


def test_a_home_whose_path_is_too_long_for_a_socket_works_too(home: Path) -> None:
    deep = home / ("d" * 60) / ("e" * 60)
    server = EmbeddedPostgres(deep, options=HASTY)
    server.up()
    assert answer(server) == 42
    short = Path(server.url.split("host=")[1].replace("%2F", "/"))
    assert stat.S_IMODE(short.stat().st_mode) == 0o700
    server.down()
    assert not short.exists()


def test_the_cluster_is_closed_to_others_and_no_folder_above_it_is_opened(home: Path) -> None:
    before = stat.S_IMODE(home.stat().st_mode)
    server = EmbeddedPostgres(home / "postgres", options=HASTY)
    server.up()
    assert stat.S_IMODE((home / "postgres" / "data").stat().st_mode) == 0o700
    assert stat.S_IMODE(home.stat().st_mode) == before


def test_a_home_that_the_server_cannot_use_is_refused_and_left_as_it_was(home: Path) -> None:
    closed = 0o700 if os.geteuid() == 0 else 0o500  # root's server runs as another account, a user's as the user
    home.chmod(closed)
    with pytest.raises(BackendError, match="CDA_HOME"):
        EmbeddedPostgres(home / "postgres").up()
    assert stat.S_IMODE(home.stat().st_mode) == closed
    home.chmod(0o755)


def test_programs_that_the_servers_account_cannot_reach_are_copied_to_where_it_can(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_enters", lambda *_: False)
    server = EmbeddedPostgres(home / "postgres", options=HASTY)
    server.up()
    assert answer(server) == 42
    assert (home / "postgres" / "server").exists() == (os.geteuid() == 0)
