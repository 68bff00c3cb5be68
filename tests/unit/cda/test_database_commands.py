"""`cda db`: up, migrate, down, as a user runs them."""

import json
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from embedded_server import TestServer

from backends.errors import BackendError, BackendUnavailable
from backends.migrations import migrations
from cda.cli import cli
from cda.errors import UsageError

pytestmark = pytest.mark.promise("database.commands")
ALL = [migration.name for migration in migrations()]


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cda-pg-") as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setenv("CDA_HOME", folder)
        yield Path(folder)
        CliRunner().invoke(cli, ["db", "down"])


def run(*words: str) -> dict[str, object]:
    done = CliRunner().invoke(cli, ["db", *words, "--json"], catch_exceptions=False, standalone_mode=False)
    document: dict[str, object] = json.loads(done.stdout)
    return document


def test_the_embedded_server_comes_up_migrated_and_goes_down(home: Path) -> None:
    assert run("up") == {"server": "embedded", "state": "started", "applied": ALL}
    assert run("up") == {"server": "embedded", "state": "running", "applied": []}
    assert run("migrate") == {"server": "embedded", "applied": []}
    assert run("down") == {"server": "embedded", "state": "stopped"}
    assert run("down") == {"server": "embedded", "state": "not running"}
    with pytest.raises(BackendUnavailable, match="cda db up"):
        run("migrate")


def test_a_given_database_is_migrated_and_never_stopped(
    home: Path, postgres_server: TestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", postgres_server.empty_database())
    assert run("up") == {"server": "DATABASE_URL", "state": "given", "applied": ALL}
    assert run("migrate") == {"server": "DATABASE_URL", "applied": []}
    with pytest.raises(UsageError, match="stops no server but its own"):
        run("down")
    assert not (home / "postgres").exists()


def test_a_dead_database_is_one_sentence_without_its_address(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://canary:canary@127.0.0.1:1/canary")
    with pytest.raises(BackendUnavailable) as caught:
        run("up")
    assert "canary" not in str(caught.value)
    assert "127.0.0.1" not in str(caught.value)


def test_a_home_that_the_server_cannot_use_is_refused(home: Path) -> None:
    closed = 0o700 if os.geteuid() == 0 else 0o500
    home.chmod(closed)
    with pytest.raises(BackendError, match="CDA_HOME"):
        run("up")
    assert stat.S_IMODE(home.stat().st_mode) == closed
    home.chmod(0o755)
