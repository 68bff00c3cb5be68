from importlib.metadata import EntryPoint
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from cda import entry_point_group
from cda.settings import Settings
from cda.systems.coverage import mcp_command
from cda.systems.coverage.mcp_client import settings_environment

other = click.Command("other", help="Another server.")


@pytest.mark.promise("server.extended")
def test_another_server_joins_the_group_by_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("other", f"{__name__}:other", "cda.mcp_servers")
    monkeypatch.setattr(EntryPoint, "load", lambda self: other)
    monkeypatch.setattr(entry_point_group, "entry_points", lambda *, group: [point] if group == point.group else [])
    vars(mcp_command.mcp_group).pop("_points", None)  # found once a process
    shown = CliRunner().invoke(mcp_command.mcp_group, ["--help"]).output
    assert "policy" in shown
    assert "Another server." in shown
    assert CliRunner().invoke(mcp_command.mcp_group, ["other"]).exit_code == 0
    assert CliRunner().invoke(mcp_command.mcp_group, ["nothing"]).exit_code == 2
    vars(mcp_command.mcp_group).pop("_points")


@pytest.mark.promise("server.loopback")
def test_an_allow_list_without_http_is_wrong_usage() -> None:
    result = CliRunner().invoke(mcp_command.mcp_group, ["policy", "--allow-host", "policy.example"])
    assert result.exit_code == 2
    assert "--transport http" in result.output


@pytest.mark.promise("server.extended")
def test_a_server_process_reads_the_settings_of_its_parent(tmp_path: Path) -> None:
    settings = Settings(CDA_HOME=tmp_path, CDA_EMBEDDER="tfidf", CDA_MAX_ITERATIONS=2)  # type: ignore[call-arg]
    variables = settings_environment(settings)
    assert variables["CDA_HOME"] == str(tmp_path)
    assert variables["CDA_EMBEDDER"] == "tfidf"
    assert "CDA_STORE" not in variables
    assert Settings.model_validate(variables) == settings
