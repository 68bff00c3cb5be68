"""The command line as people and programs use it: real processes on a home of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from coverage_world import HMO, T1, request

COVERED = request(HMO, "A9276", "2024-03-15", {**T1, "fingersticks_per_day": 5})


def cda(home: Path, *arguments: str | Path, stdin: bytes = b"", **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command; only the variables given here and the paths are in its environment."""
    environment = {"CDA_HOME": str(home), "CDA_EMBEDDER": "tfidf", "PATH": os.defpath, **variables}
    command = [sys.executable, "-W", "error", "-c", "from cda.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=120, env=environment)


def document(done: subprocess.CompletedProcess[bytes]) -> Any:
    """The one JSON document of stdout: `json.loads` refuses anything before or after it."""
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout.decode("utf-8"))


def file(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode("utf-8"))
    return path


@pytest.mark.promise("cli.first_run")
def test_the_first_ask_builds_what_it_needs_and_the_second_does_not(tmp_path: Path) -> None:
    asked, home = file(tmp_path, "r.json", COVERED), tmp_path / "deep" / "home"
    first = cda(home, "ask", "--request", asked, "--json")
    assert document(first)["gate"]["state"] == "DETERMINE"
    assert b"building it from the shipped policies" in first.stderr
    assert b"building the index: " in first.stderr
    second = cda(home, "ask", "--request", asked, "--json")
    assert second.stderr == b""
    one, two = document(first), document(second)
    for changing in ("run_id", "latency_s"):
        assert one.pop(changing) != two.pop(changing)
    assert one == two


@pytest.mark.promise("cli.first_run")
def test_two_first_asks_at_once_both_answer(tmp_path: Path) -> None:
    asked = file(tmp_path, "r.json", COVERED)
    environment = {"CDA_HOME": str(tmp_path / "home"), "CDA_EMBEDDER": "tfidf", "PATH": os.defpath}
    command = [sys.executable, "-c", "from cda.cli import main; main()", "ask", "--request", str(asked), "--json"]
    both = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)
    ]
    for process in both:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err.decode()
        assert json.loads(out)["gate"]["state"] == "DETERMINE"


@pytest.mark.promise("cli.ask")
@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({}, "DETERMINE"),
        ({"payer_id": "ZZZ"}, "HALT"),
        ({"as_of_date": "20240315"}, "HALT"),
        ({"procedure_codes": ["A9276", "Z9999"]}, "HALT"),
        ({"procedure_codes": ["31241"]}, "REFUSE"),
        ({"plan_id": None}, "REVIEW"),
        ({"surprise": 1}, "HALT"),
    ],
)
def test_whatever_the_gate_says_the_exit_code_is_0(
    built_home: Path, tmp_path: Path, change: dict[str, Any], state: str
) -> None:
    done = cda(built_home, "ask", "--request", file(tmp_path, "r.json", COVERED | change), "--json")
    assert (document(done)["gate"]["state"], done.stderr) == (state, b"")


@pytest.mark.promise("cli.ask")
def test_an_injected_fault_of_the_environment_is_a_review(built_home: Path, tmp_path: Path) -> None:
    asked = file(tmp_path, "r.json", COVERED)
    done = cda(built_home, "ask", "--request", asked, "--json", CDA_FAULT="hallucinate")
    assert document(done)["gate"]["state"] == "REVIEW"
    refused = cda(built_home, "ask", "--request", asked, "--json", CDA_FAULT="nonsense")
    assert (refused.returncode, refused.stdout) == (2, b"")
    assert b"CDA_FAULT" in refused.stderr
    assert b"nonsense" not in refused.stderr


@pytest.mark.promise("cli.ask")
def test_json_is_utf_8_whatever_the_locale(built_home: Path, tmp_path: Path) -> None:
    asked = file(tmp_path, "r.json", COVERED | {"narrative": "Seen by the team – “Zoë 王”."})
    done = cda(built_home, "ask", "--request", asked, "--json", PYTHONIOENCODING="ascii")
    assert document(done)["redacted_narrative"].endswith("王”.")
    people = cda(built_home, "ask", "--request", asked, PYTHONIOENCODING="ascii")
    assert (people.returncode, people.stderr) == (0, b"")


@pytest.mark.promise("cli.ask")
def test_arguments_that_are_not_utf_8_are_a_halt(built_home: Path) -> None:
    options = ("--payer", "MHP", "--plan", HMO, "--code", "A9276", "--as-of", "2024-03-15", "--json")
    environment = {"CDA_HOME": str(built_home), "CDA_EMBEDDER": "tfidf", "PATH": os.defpath, "PYTHONUTF8": "1"}
    command = [os.fsencode(sys.executable), b"-c", b"from cda.cli import main; main()", b"ask"]
    words = [*map(os.fsencode, options), b"--narrative", b"Type 1 diab\xe9tes"]
    done = subprocess.run(command + words, capture_output=True, check=False, timeout=60, env=environment)
    assert document(done)["gate"]["reasons"] == ["narrative: is not well formed"]


@pytest.mark.promise("cli.batch")
def test_a_batch_is_one_document_a_line_in_order(built_home: Path, tmp_path: Path) -> None:
    lines = [json.dumps(COVERED).encode(), b"{", json.dumps(COVERED | {"payer_id": ""}).encode()] * 5
    batch = file(tmp_path, "b.jsonl", b"\n".join(lines) + b"\n")
    done = cda(built_home, "ask", "--batch", batch, "--concurrency", "4")
    assert (done.returncode, done.stderr) == (0, b"")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["line"] for row in rows] == list(range(1, 16))
    assert [row["gate"]["state"] for row in rows] == ["DETERMINE", "HALT", "HALT"] * 5
    assert len({row["run_id"] for row in rows}) == 15


@pytest.mark.promise("cli.batch")
def test_a_reader_that_goes_away_ends_a_batch_quietly(built_home: Path, tmp_path: Path) -> None:
    batch = file(tmp_path, "b.jsonl", b"\n".join([json.dumps(COVERED).encode()] * 200))
    environment = {"CDA_HOME": str(built_home), "CDA_EMBEDDER": "tfidf", "PATH": os.defpath}
    command = [sys.executable, "-c", "from cda.cli import main; main()", "ask", "--batch", str(batch)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        process.wait(timeout=60)


@pytest.mark.promise("cli.usage")
@pytest.mark.parametrize(
    "arguments",
    [
        ("ask",),
        ("ask", "--request", "absent.json"),
        ("ask", "--batch", "absent.jsonl"),
        ("ask", "--no-such-option"),
        ("ask", "--payer", "MHP", "--versus", "20250120"),
        ("ask", "--payer", "MHP", "--reasoner", "oracle"),
        ("search",),
        ("search", "x", "--k", "99"),
        ("trace", "show", "absent"),
        ("asl",),
    ],
)
def test_wrong_usage_exits_2_with_nothing_on_stdout_and_nothing_built(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = cda(tmp_path / "home", *arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Traceback" not in done.stderr
    assert not (tmp_path / "home").exists()


@pytest.mark.promise("cli.usage")
def test_standard_input_that_is_not_utf_8_exits_2(tmp_path: Path) -> None:
    done = cda(tmp_path / "home", "ask", "--payer", "MHP", "--narrative", "-", stdin=b"diab\xe9tes")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().strip() == "cda: --narrative -: standard input is not UTF-8 text"


@pytest.mark.promise("coverage.dead_services")
@pytest.mark.parametrize("command", [("ask", "--payer", "MHP"), ("search", "x")])
def test_what_is_needed_and_broken_exits_3_with_one_line(tmp_path: Path, command: tuple[str, ...]) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "corpus.sqlite").write_bytes(b"no database")
    done = cda(home, *command)
    assert (done.returncode, done.stdout) == (3, b"")
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("cda: ")
    assert line.endswith("build it with: cda corpus build")
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    unwritable = cda(tmp_path / "file" / "home", *command)
    assert (unwritable.returncode, unwritable.stdout) == (3, b"")
    assert unwritable.stderr.decode().splitlines()[-1].endswith("set CDA_HOME or CDA_STORE")


@pytest.mark.promise("cli.search", "cli.trace", "cli.doctor")
def test_search_trace_and_doctor_each_print_one_document(built_home: Path, tmp_path: Path) -> None:
    asked = file(tmp_path, "r.json", COVERED)
    where = {"CDA_TRACE_DIR": str(tmp_path / "traces")}
    run_id = document(cda(built_home, "ask", "--request", asked, "--json", **where))["run_id"]
    listed = document(cda(built_home, "trace", "list", "--json", **where))
    assert [(row["run_id"], row["gate"]) for row in listed["runs"]] == [(run_id, "DETERMINE")]
    assert document(cda(built_home, "trace", "show", run_id, "--json", **where))["run_id"] == run_id
    hits = document(cda(built_home, "search", "glucose sensor", "--payer", "MHP", "--as-of", "2024-03-15", "--json"))
    assert all(hit["clause_id"].startswith("MHP-") for hit in hits["hits"])
    assert document(cda(built_home, "doctor", "--json", **where))["ok"] is True


@pytest.mark.promise("cli.speed")
@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (("--help",), {"numpy", "onnxruntime", "tantivy", "rich", "mcp", "yaml", "pypdf", "sqlite3"}),
        (("ask", "--help"), {"numpy", "onnxruntime", "tantivy", "rich", "mcp", "yaml", "pypdf", "sqlite3"}),
        (("search", "--help"), {"numpy", "onnxruntime", "tantivy", "rich", "mcp", "yaml", "pypdf", "sqlite3"}),
        (("ask", "--request", "r.json", "--json"), {"onnxruntime", "tokenizers", "rich", "mcp", "pypdf"}),
    ],
)
def test_a_command_loads_only_what_it_needs(
    built_home: Path, tmp_path: Path, arguments: tuple[str, ...], unwanted: set[str]
) -> None:
    file(tmp_path, "r.json", COVERED)
    code = (
        f"import sys; sys.argv = ['cda', *{arguments!r}]\nfrom cda.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {sorted(unwanted)!r} if name in sys.modules], file=sys.stderr)"
    )
    environment = {"CDA_HOME": str(built_home), "CDA_EMBEDDER": "tfidf", "PATH": os.defpath}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, check=False, timeout=60
    )
    assert done.stderr.decode().splitlines()[-1] == "[]"
