"""`cda corpus index` builds once and then leaves the index as it is."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from cda.systems.coverage.corpus_commands import corpus_group


@pytest.mark.promise("corpus.index")
def test_a_second_index_command_changes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CDA_HOME", str(tmp_path))
    monkeypatch.setenv("CDA_EMBEDDER", "tfidf")
    runner = CliRunner()
    first = json.loads(runner.invoke(corpus_group, ["index", "--json"]).stdout)
    again = json.loads(runner.invoke(corpus_group, ["index", "--json"]).stdout)
    assert (first["state"], again["state"]) == ("built", "unchanged")
    assert first["added"] == again["unchanged"] > 50
    assert first["manifest"] == again["manifest"]
