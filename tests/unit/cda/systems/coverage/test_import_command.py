import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cda.errors import UsageError
from cda.systems.coverage.import_command import import_policies

GOOD = {"title": "Widget", "ncd_id": 9, "text": "The widget is not covered."}
BAD = {"title": "Gadget", "ncd_id": 10, "text": ""}


def run(*words: object) -> Result:
    return CliRunner().invoke(import_policies, [str(word) for word in words])


@pytest.fixture
def statements(tmp_path: Path) -> Path:
    path = tmp_path / "statements.jsonl"
    path.write_text(f"{json.dumps(GOOD)}\n{json.dumps(BAD)}\n", encoding="utf-8")
    return path


@pytest.mark.promise("importers.command")
def test_json_is_one_document_on_stdout_and_the_words_go_to_stderr(statements: Path, tmp_path: Path) -> None:
    done = run(statements, "--format", "ncd-jsonl", "--out", tmp_path / "out", "--json")
    report = json.loads(done.stdout)
    assert done.exit_code == 0
    assert report["counts"] == {
        "records": 2,
        "landed": 1,
        "skipped": 1,
        "warnings": 0,
        "policies": 1,
        "versions": 1,
        "clauses": 1,
        "DATED": 0,
        "UNDATED": 1,
        "AMBIGUOUS": 0,
    }
    assert report["skipped"] == [
        {
            "file": "statements.jsonl",
            "line": 2,
            "id": "MCD-NCD-10",
            "message": "no text beyond its title (Gadget); it cannot be cited",
        }
    ]
    assert (tmp_path / "out" / "MCD-NCD-9.yaml").is_file()
    assert "1 of 2 records landed" in done.stderr


@pytest.mark.promise("importers.command")
def test_when_nothing_lands_the_report_is_printed_nothing_is_written_and_the_exit_code_is_2(tmp_path: Path) -> None:
    path = tmp_path / "statements.jsonl"
    path.write_text(json.dumps(BAD), encoding="utf-8")
    done = run(path, "--format", "ncd-jsonl", "--out", tmp_path / "out", "--json")
    assert done.exit_code == 2
    assert json.loads(done.stdout)["counts"]["landed"] == 0
    assert not (tmp_path / "out").exists()


@pytest.mark.promise("importers.command")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--format", "mcd-csv"], "columns missing"),
        (["--format", "pdf"], "--payer is missing"),
        (["--format", "pdf", "--payer", "A", "--effective-start", "20240101"], "--effective-start"),
        (["--format", "pdf", "--payer", "A"], "not a PDF"),
        (["--format", "ncd-jsonl", "--payer", "../A"], "--payer"),
        (["--format", "ncd-jsonl", "--title", "A", "--code", "B"], "--code, --title: only for --format pdf"),
    ],
)
def test_wrong_words_are_a_usage_error_and_write_nothing(
    statements: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    done = run(statements, *words, "--out", tmp_path / "out")
    assert isinstance(done.exception, UsageError)
    assert message in str(done.exception)
    assert not (tmp_path / "out").exists()


@pytest.mark.promise("importers.command")
def test_a_bulk_import_shows_progress_on_stderr_only(tmp_path: Path) -> None:
    path = tmp_path / "statements.jsonl"
    lines = [json.dumps({**GOOD, "ncd_id": number}) for number in range(1, 1_101)]
    path.write_text("\n".join(lines), encoding="utf-8")
    done = run(path, "--format", "ncd-jsonl", "--out", tmp_path / "out")
    assert done.stdout == ""
    assert "1,100 of 1,100 policies written" in done.stderr
