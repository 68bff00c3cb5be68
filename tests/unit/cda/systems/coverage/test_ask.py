"""`cda ask` in process: what is read, what is refused, and what comes out. Processes are in tests/integration."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from coverage_world import HMO, T1, request

from cda.errors import UsageError
from cda.systems.coverage.ask_command import ask

COVERED = request(HMO, "A9276", "2024-03-15", {**T1, "fingersticks_per_day": 5})


@pytest.fixture
def run(built_home: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("CDA_HOME", str(built_home))
    monkeypatch.setenv("CDA_EMBEDDER", "tfidf")

    def invoke(*arguments: str | Path, stdin: bytes | None = None) -> Result:
        return CliRunner().invoke(ask, [str(argument) for argument in arguments], input=stdin)

    return invoke


def told(result: Result) -> Any:
    assert (result.exit_code, result.exception) == (0, None), result.output
    return json.loads(result.stdout)


def file(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode("utf-8"))
    return path


@pytest.mark.promise("cli.ask")
def test_options_and_a_request_file_ask_the_same_question(run: Any, tmp_path: Path) -> None:
    facts = file(tmp_path, "facts.json", COVERED["facts"])
    options = ("--payer", "MHP", "--plan", HMO, "--code", "A9276", "--dx", "E10.9", "--as-of", "2024-03-15")
    by_options = told(run(*options, "--question", "Is it covered?", "--facts", facts, "--json"))
    by_file = told(run("--request", file(tmp_path, "r.json", COVERED), "--json"))
    assert by_options["gate"] == by_file["gate"] == {"state": "DETERMINE", "reasons": []}
    assert by_options["determination"] == by_file["determination"]
    assert set(by_file) == {
        *("run_id", "line", "gate", "determination", "verification", "lines", "redacted_narrative", "preflight"),
        *("versus", "iterations", "input_tokens", "output_tokens", "usd", "latency_s", "retrieved_clause_ids"),
        "provenance",
    }
    assert (by_file["usd"], by_file["input_tokens"], by_file["line"]) == ("0", 0, None)


@pytest.mark.promise("cli.ask")
def test_a_file_of_facts_adds_to_those_of_the_request(run: Any, tmp_path: Path) -> None:
    asked = file(tmp_path, "r.json", COVERED | {"facts": T1})
    more = file(tmp_path, "f.json", {"fingersticks_per_day": 2})
    assert told(run("--request", asked, "--facts", more, "--json"))["determination"]["outcome"] == "NOT_COVERED"
    for wrong in ([], [1], "x", 7):
        halted = told(
            run("--request", file(tmp_path, "w.json", COVERED | {"facts": wrong or [0]}), "--facts", more, "--json")
        )
        assert halted["gate"] == {"state": "HALT", "reasons": ["facts: is an object"]}


@pytest.mark.promise("cli.ask")
def test_the_narrative_comes_from_standard_input(run: Any) -> None:
    options = (
        "--payer",
        "MHP",
        "--plan",
        HMO,
        "--code",
        "A9276",
        "--as-of",
        "2024-03-15",
        "--narrative",
        "-",
        "--json",
    )
    said = "\ufeffType 1 diabetes mellitus – Zoë. Fingersticks 5 times a day."
    assert told(run(*options, stdin=said.encode("utf-8")))["redacted_narrative"].startswith(
        "Type 1 diabetes mellitus – "
    )
    refused = run(*options, stdin=b"Type 1 diab\xe9tes")
    assert isinstance(refused.exception, UsageError)
    assert str(refused.exception) == "--narrative -: standard input is not UTF-8 text"


@pytest.mark.promise("cli.ask")
def test_versus_uses_the_names_of_the_contract(run: Any, tmp_path: Path) -> None:
    asked = file(tmp_path, "r.json", COVERED | {"facts": {**T1, "fingersticks_per_day": 2}})
    versus = told(run("--request", asked, "--versus", "2025-01-20", "--json"))["versus"]
    assert (versus["as_of_date"], versus["outcome"], versus["gate"]) == ("2025-01-20", "COVERED", "DETERMINE")
    assert set(versus["differences"][0]) == {"kind", "from", "to", "text"}


@pytest.mark.promise("cli.ask")
def test_people_get_the_answer_in_words(run: Any, tmp_path: Path) -> None:
    result = run("--request", file(tmp_path, "r.json", COVERED))
    assert result.exit_code == 0
    assert "DETERMINE  COVERED" in result.stdout


@pytest.mark.promise("cli.ask")
def test_a_request_without_anything_in_it_is_a_halt(run: Any, tmp_path: Path) -> None:
    halted = told(run("--request", file(tmp_path, "r.json", {}), "--json"))
    assert halted["gate"]["reasons"] == ["payer_id: empty; name the payer"]


@pytest.mark.promise("cli.usage")
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "nothing asked"),
        (("--request", "R", "--payer", "MHP"), "--request holds the whole request; leave out --payer"),
        (("--batch", "R", "--payer", "MHP"), "--batch holds whole requests"),
        (("--batch", "R", "--request", "R"), "--batch holds whole requests"),
        (("--request", "absent.json"), "cannot be read (FileNotFoundError)"),
        (("--batch", "absent.jsonl"), "cannot be read (FileNotFoundError)"),
        (("--batch", "."), "cannot be read (IsADirectoryError)"),
        (("--request", "."), "cannot be read (IsADirectoryError)"),
        (("--request", "latin.json"), "cannot be read (UnicodeDecodeError)"),
        (("--request", "cut.json"), "not a JSON document (line 1, column 13)"),
        (("--request", "deep.json"), "not a JSON document (nested too deep, or a number too long)"),
        (("--request", "long.json"), "not a JSON document (nested too deep, or a number too long)"),
        (("--request", "list.json"), "a request is a JSON object"),
        (("--request", "R", "--facts", "list.json"), "a file of facts is a JSON object"),
    ],
)
def test_wrong_usage_and_unreadable_files_are_refused_before_anything_is_built(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CDA_HOME", str(tmp_path / "home"))
    file(tmp_path, "R", COVERED)
    file(tmp_path, "latin.json", '{"narrative": "é"}'.encode("latin-1"))
    file(tmp_path, "cut.json", b'{"payer_id":')
    file(tmp_path, "deep.json", b"[" * 200_000 + b"]" * 200_000)
    file(tmp_path, "long.json", b"9" * 5000)
    file(tmp_path, "list.json", [COVERED])
    result = run(*arguments)
    assert isinstance(result.exception, UsageError)
    assert why in str(result.exception)
    assert result.stdout == ""
    assert not (tmp_path / "home").exists()


@pytest.mark.promise("cli.usage")
@pytest.mark.parametrize("day", ["20250120", "2025-W03-1", "2025-02-30", "tomorrow", ""])
def test_the_other_date_has_one_form(run: Any, day: str) -> None:
    result = run("--payer", "MHP", "--versus", day)
    assert result.exit_code == 2
    assert "YYYY-MM-DD" in result.stderr


@pytest.mark.promise("cli.batch")
def test_a_batch_answers_in_order_with_the_numbers_of_the_lines(run: Any, tmp_path: Path) -> None:
    lines = [
        json.dumps(COVERED).encode(),
        b"{not json",
        b"",
        b"   ",
        b"\xff\xfe",
        json.dumps(COVERED | {"payer_id": "ZZZ"}).encode(),
        b"[" * 100_000,
        json.dumps(COVERED | {"surprise": 1}).encode(),
        json.dumps(COVERED | {"facts": {**T1, "fingersticks_per_day": 2}}).encode(),
    ]
    path = file(tmp_path, "batch.jsonl", b"\n".join(lines))
    result = run("--batch", path, "--concurrency", "8")
    assert result.exit_code == 0
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(row["line"], row["gate"]["state"]) for row in rows] == [
        (1, "DETERMINE"),
        (2, "HALT"),
        (5, "HALT"),
        (6, "HALT"),
        (7, "HALT"),
        (8, "HALT"),
        (9, "DETERMINE"),
    ]
    assert rows[5]["gate"]["reasons"] == ["surprise: is no field of a request"]
    assert (rows[0]["determination"]["outcome"], rows[6]["determination"]["outcome"]) == ("COVERED", "NOT_COVERED")


@pytest.mark.promise("cli.batch")
def test_more_lines_than_workers_keep_their_order(run: Any, tmp_path: Path) -> None:
    requests = [COVERED | {"facts": {**T1, "fingersticks_per_day": n % 8}} for n in range(40)]
    path = file(tmp_path, "batch.jsonl", "\n".join(map(json.dumps, requests)).encode() + b"\n")
    rows = [json.loads(line) for line in run("--batch", path, "--concurrency", "3", "--json").stdout.splitlines()]
    assert [row["line"] for row in rows] == list(range(1, 41))
    assert [row["determination"]["outcome"] for row in rows] == [
        "COVERED" if n % 8 >= 4 else "NOT_COVERED" for n in range(40)
    ]


@pytest.mark.promise("cli.batch")
def test_an_empty_batch_is_done_with_nothing_said(run: Any, tmp_path: Path) -> None:
    result = run("--batch", file(tmp_path, "empty.jsonl", b""))
    assert (result.exit_code, result.stdout) == (0, "")
