"""What the doctor finds on a whole, an empty and a damaged machine."""

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from coverage_world import settings

from cda import doctor
from cda.contracts.health import Finding
from cda.systems.coverage.doctor_checks import examine

pytestmark = pytest.mark.promise("cli.doctor")


def states(home: Path, **variables: Any) -> dict[str, str]:
    return {finding.name: finding.state for finding in examine(settings(home, **variables))}


@pytest.fixture
def own_home(built_home: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built_home, tmp_path / "own"))


def test_a_built_home_is_whole(built_home: Path) -> None:
    found = examine(settings(built_home))
    assert {finding.name: finding.state for finding in found} == {
        "corpus store": "ok",
        "index (tfidf)": "ok",
        "embedder": "ok",
        "traces": "ok",
    }
    assert not any(finding.remedy for finding in found)


def test_an_empty_home_is_a_warning_and_stays_empty(tmp_path: Path) -> None:
    home = tmp_path / "nothing" / "here"
    assert states(home) == {"corpus store": "warn", "embedder": "ok", "traces": "ok"}
    assert not home.parent.exists()


def test_the_default_embedder_is_known_by_its_weights(built_home: Path) -> None:
    found = {finding.name: finding for finding in examine(settings(built_home, CDA_EMBEDDER="minilm-int8"))}
    assert (found["embedder"].state, found["index (minilm-int8)"].state) == ("ok", "warn")
    assert found["index (minilm-int8)"].remedy == "run `cda corpus index`"


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\x00" + b"\x00" * 4000])
def test_a_store_that_is_none_fails_with_its_remedy(own_home: Path, content: bytes) -> None:
    (own_home / "corpus.sqlite").write_bytes(content)
    found = examine(settings(own_home))[0]
    assert (found.name, found.state, found.remedy) == ("corpus store", "fail", "run `cda corpus build` again")


def test_a_store_of_another_schema_fails(own_home: Path) -> None:
    with sqlite3.connect(own_home / "corpus.sqlite") as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    found = examine(settings(own_home))[0]
    assert found.state == "fail"
    assert "has schema version 99" in found.detail


def test_a_store_cut_short_fails(own_home: Path) -> None:
    store = own_home / "corpus.sqlite"
    store.write_bytes(store.read_bytes()[:40_000])
    assert states(own_home)["corpus store"] == "fail"


@pytest.mark.parametrize("name", ["manifest.json", "titles.npz", "tfidf.npz"])
def test_a_damaged_index_fails_with_its_remedy(own_home: Path, name: str) -> None:
    next(own_home.glob(f"index/*/{name}")).write_bytes(b"damage")
    found = {finding.name: finding for finding in examine(settings(own_home))}["index (tfidf)"]
    assert (found.state, found.remedy) == ("fail", "run `cda corpus index`")


def test_a_trace_folder_that_cannot_be_one_fails(built_home: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    assert states(built_home, CDA_TRACE_DIR=tmp_path / "file" / "traces")["traces"] == "fail"


def test_the_command_exits_1_when_something_is_broken(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDA_HOME", str(own_home))
    monkeypatch.setenv("CDA_EMBEDDER", "tfidf")
    well = CliRunner().invoke(doctor.doctor, ["--json"])
    assert (well.exit_code, json.loads(well.stdout)["ok"]) == (0, True)
    (own_home / "corpus.sqlite").write_bytes(b"damage")
    ill = CliRunner().invoke(doctor.doctor, ["--json"])
    assert (ill.exit_code, json.loads(ill.stdout)["ok"]) == (1, False)
    words = CliRunner().invoke(doctor.doctor, [])
    assert words.exit_code == 1
    assert "FAIL  corpus store: " in words.stdout
    assert "      -> run `cda corpus build` again" in words.stdout


def test_a_wrong_variable_is_a_finding_that_does_not_repeat_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDA_EMBEDDER", "s3cret-embedder")
    result = CliRunner().invoke(doctor.doctor, ["--json"])
    assert result.exit_code == 1
    assert "CDA_EMBEDDER" in result.stdout
    assert "s3cret" not in result.stdout


def test_a_check_that_fails_itself_hides_no_other(built_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        def __init__(self, name: str, check: Any) -> None:
            self.name, self.load = name, lambda: check

    def broken(_: Any) -> list[Finding]:
        raise RuntimeError("words of a chart")

    points = [Point("zz", lambda _: [Finding(name="last", state="ok", detail="")]), Point("aa", broken)]
    monkeypatch.setattr(doctor, "entry_points", lambda group: points)
    found = doctor.examine(settings(built_home))
    assert [(finding.name, finding.state) for finding in found] == [("aa", "fail"), ("last", "ok")]
    assert found[0].detail == "the check itself failed (RuntimeError)"
