import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from coverage_world import settings

from cda.errors import UsageError
from cda.settings import Settings
from evals.commands import eval_command, evals_group
from evals.provenance import MOVABLE, run_provenance
from evals.suite import Options
from evals.suites import coverage, retrieval, verifier

CASE: dict[str, Any] = {
    "case_id": "own-1",
    "payer_id": "MHP",
    "plan_id": "MHP-HMO-BASE",
    "procedure_codes": ["A9276"],
    "diagnosis_codes": ["E10.9"],
    "as_of_date": "2024-03-15",
    "narrative": "T1DM. Fingersticks five times a day. No hypoglycemia unawareness.",
    "question": "Covered?",
    "expected_outcome": "COVERED",
    "expected_gate": "DETERMINE",
    "gold_clause_ids": ["MHP-MP-0142.v1.C2"],
}


@pytest.fixture(autouse=True)
def _fitted(monkeypatch: pytest.MonkeyPatch, built_home: Path) -> None:
    monkeypatch.setenv("CDA_EMBEDDER", "tfidf")
    monkeypatch.setenv("CDA_HOME", str(built_home))


def asked(*arguments: str) -> Result:
    return CliRunner().invoke(eval_command, [*arguments], standalone_mode=False)


def own_file(folder: Path, *cases: dict[str, Any]) -> str:
    file = folder / "own.json"
    file.write_text(json.dumps({"cases": cases}), encoding="utf-8")
    return str(file)


@pytest.mark.promise("evals.command")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--suite", "melting"], "there are coverage, injection, retrieval, verifier"),
        (["--set", "flor"], "there are floor"),
        (["--case", "nobody"], "no case of the chosen sets"),
        (["--reasoner", "dice"], "is none of criteria"),
        (["--diff", "--limit", "3"], "take whole sets"),
        (["--set-baseline", "--set", "floor"], "takes the whole suite"),
        (["--accept", "why"], "goes with --set-baseline"),
        (["--suite", "verifier", "--set", "floor"], "has one set"),
        (["--suite", "retrieval", "--case", "nobody"], "no labelled query"),
        (["--suite", "verifier", "--case", "V-sound-01", "--report", "x.html"], "has no page"),
        (["--cases", "nowhere.json"], "cannot be read"),
        (["--limit", "1", "--report", "nowhere/at/all.html"], "its folder does not exist"),
    ],
)
def test_words_that_do_not_fit_are_refused(arguments: list[str], words: str) -> None:
    found = asked(*arguments)
    assert isinstance(found.exception, UsageError)
    assert words in str(found.exception)


@pytest.mark.promise("evals.command")
def test_cases_of_ones_own_are_scored_and_a_page_is_written(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    found = asked("--cases", own_file(tmp_path, CASE), "--json", "--report", str(page))
    card = json.loads(found.stdout)
    assert found.return_value == 0
    assert (card["both_correct"], card["case_set"]["count"], card["failures"]) == (1.0, 1, [])
    assert card["cases"][0]["case_id"] == "own-1"
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.promise("evals.command")
def test_a_false_auto_determination_is_exit_one(tmp_path: Path) -> None:
    found = asked("--cases", own_file(tmp_path, {**CASE, "expected_outcome": "NOT_COVERED"}))
    assert found.return_value == 1
    assert "floor: false_auto_determine is 1" in found.stderr


@pytest.mark.promise("evals.command")
def test_a_record_leads_to_its_trace(tmp_path: Path) -> None:
    card = json.loads(asked("--cases", own_file(tmp_path, CASE), "--json").stdout)
    assert (Path(card["traces"]) / f"{card['cases'][0]['run_id']}.jsonl").exists()


@pytest.mark.promise("evals.provenance")
def test_a_scorecard_names_everything_that_ranks_or_decides(tmp_path: Path) -> None:
    provenance = json.loads(asked("--cases", own_file(tmp_path, CASE), "--json").stdout)["provenance"]
    assert set(MOVABLE) <= provenance.keys()
    assert provenance["embedder"] == "tfidf"
    assert len(provenance["code_digest"]) == 64
    assert run_provenance.__doc__


@pytest.mark.promise("evals.command")
@pytest.mark.parametrize("fault", ["hallucinate", "paraphrase", "stale", "unsupported", "lowconf"])
def test_with_a_fault_injected_nothing_is_determined(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDA_FAULT", fault)
    card = json.loads(asked("--set", "floor", "--limit", "6", "--json").stdout)
    assert card["auto_determine_rate"] == 0.0
    assert card["false_auto_determine"] == 0
    assert card["provenance"]["fault"] == fault


@pytest.mark.promise("evals.command")
def test_limits_and_ids_choose_cases_in_order(built_home: Path) -> None:
    held: Settings = settings(built_home)
    assert coverage.prepare(Options(held, limit=3)).case_set["count"] == 3
    assert verifier.prepare(Options(held, case_ids=("V-sound-01",))).case_set["count"] == 1
    assert retrieval.prepare(Options(held, limit=2)).case_set["count"] == 2


@pytest.mark.promise("evals.command")
def test_the_group_of_case_commands_lists_what_is_installed() -> None:
    found = CliRunner().invoke(evals_group, ["--help"])
    assert found.exit_code == 0
    assert "Make and check case sets." in found.output
