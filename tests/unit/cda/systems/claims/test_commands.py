"""`cda claims seed`, the doctor's look at the claims server, and how a server is found."""

import json
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from click.testing import CliRunner

from cda.cli import cli
from cda.errors import UsageError
from cda.serving.key_store import make_key
from cda.settings import load_settings
from cda.systems.claims.commands import claims_group
from cda.systems.claims.doctor_checks import examine
from cda.systems.claims.seed import seed_database

pytestmark = pytest.mark.promise("claims.command")


def test_seed_tells_what_it_wrote_and_never_writes_over_it(tmp_path: Path) -> None:
    file = tmp_path / "new" / "claims.sqlite"
    run = ["seed", "--out", str(file), "--days", "2", "--seed", "5", "--json"]

    done = CliRunner().invoke(claims_group, run)

    assert json.loads(done.stdout) == {"file": str(file), "claims": 6000, "days": 2, "seed": 5}
    before = file.read_bytes()
    again = CliRunner().invoke(claims_group, run)
    assert isinstance(again.exception, UsageError)
    assert (again.stdout, file.read_bytes() == before) == ("", True)
    assert [left.name for left in file.parent.iterdir()] == ["claims.sqlite"]


def test_seed_does_not_write_through_a_link_that_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")

    with pytest.raises(UsageError, match="never written over"):
        seed_database(tmp_path / "link")
    assert not (tmp_path / "nowhere").exists()


def test_the_server_is_an_entry_point_that_the_group_of_servers_lists() -> None:
    assert "claims" in {point.name for point in entry_points(group="cda.mcp_servers")}
    listed = CliRunner().invoke(cli, ["mcp", "--help"])
    assert "claims" in listed.stdout
    assert "policy" in listed.stdout


def test_the_doctor_says_what_is_missing_what_is_broken_and_what_can_be_read(tmp_path: Path) -> None:
    settings = load_settings()
    absent = {finding.name: finding for finding in examine(settings)}
    seed_database(settings.claims_db_path)
    make_key(settings.keys_path, key_id="one", tools=["all"])
    ready = {finding.name: finding for finding in examine(settings)}
    settings.claims_db_path.write_bytes(b"x" * 5000)
    settings.keys_path.chmod(0o666)
    broken = {finding.name: finding for finding in examine(settings)}

    assert {finding.state for finding in absent.values()} == {"ok"}
    assert all("only `cda mcp claims` needs it" in finding.detail for finding in absent.values())
    assert [finding.detail for finding in ready.values()] == ["can be read"] * 2
    assert {name: finding.state for name, finding in broken.items()} == {"claims database": "fail", "API keys": "fail"}
    assert all(finding.remedy for finding in broken.values())
