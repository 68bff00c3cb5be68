"""`cda corpus`: one JSON document each, and the exit code of the answer."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cda.errors import UsageError, exit_code
from cda.systems.coverage.authored_corpus import check_corpus
from cda.systems.coverage.corpus_commands import corpus_group
from corpus.errors import StoreMissing

pytestmark = pytest.mark.promise("corpus.commands")

ROOT = Path(__file__).parents[5]

POLICY = """
payer: {payer_id: ACM, name: Acme, plans: [{plan_id: ACM-GOLD}]}
codes: {CPT: ["95249"]}
facts:
  made_up_count: {type: count, label: made-up count, unit: unit}
policy:
  policy_id: ACM-MP-1
  title: Sound
  doc_type: medical_policy_bulletin
  payer_id: ACM
  codes: ["95249"]
  versions:
    - version: v1
      effective_start: 2024-01-01
      clauses:
        - id: C1
          section: Limits
          codes: ["95249"]
          text: No more than 3 units are covered.
          criterion: {limit: {fact: made_up_count, op: "<=", value: 3}, beyond: not_covered}
"""

Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    return lambda *arguments: CliRunner().invoke(corpus_group, [str(argument) for argument in arguments])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "acme"
    folder.mkdir()
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
    return folder


@pytest.fixture
def store(run: Run, source: Path, tmp_path: Path) -> Path:
    path = tmp_path / "acme.sqlite"
    assert run("build", "--source", source, "--out", path).exit_code == 0
    return path


def document(result: Result) -> Any:
    return json.loads(result.stdout)


def test_the_shipped_corpora_have_no_fault() -> None:
    contents, faults = check_corpus(["builtin"])
    assert faults == ()
    assert contents is not None
    assert {"synthetic", "medicare"} == set(contents.corpora)


def test_the_guide_s_policy_and_rider_have_no_fault(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "guides" / "write-a-policy.md").read_text("utf-8")
    blocks = re.findall(r"```yaml\n((?:payer|rider):.*?)```", guide, re.DOTALL)
    assert len(blocks) == 2
    (tmp_path / "guide.yaml").write_text("---\n".join(blocks), encoding="utf-8")
    contents, faults = check_corpus([tmp_path])
    assert faults == ()
    assert contents is not None
    assert {version.policy_id for version in contents.versions} == {"ACM-MP-0100", "ACM-RID-PUMP"}


def test_build_writes_a_store_with_the_digest_it_prints(run: Run, source: Path, tmp_path: Path) -> None:
    result = run("build", "--source", source, "--out", tmp_path / "s.sqlite", "--json")
    built = document(result)
    assert (result.exit_code, built["state"], built["faults"]) == (0, "built", [])
    assert built["corpora"]["acme"]["clauses"] == 1
    assert document(run("stats", "--store", built["out"], "--json"))["digest"] == built["digest"]


def test_build_writes_to_the_settings_store_by_default(
    run: Run, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDA_STORE", str(tmp_path / "deep" / "mine.sqlite"))
    assert run("build", "--source", source).exit_code == 0
    assert document(run("stats", "--json"))["clauses"] == 1


@pytest.mark.parametrize(("command", "code"), [("check", 1), ("build", 2)])
def test_faults_are_listed_with_their_place_and_decide_the_exit_code(
    command: str, code: int, run: Run, source: Path, tmp_path: Path
) -> None:
    text = POLICY.replace("made_up_count, op", "another_count, op").replace("2024-01-01", "2024-1-1")
    (source / "policy.yaml").write_text(text.replace("Sound", "Sound\n  colour: red"), encoding="utf-8")
    arguments = [command, "--source", source, *(["--out", tmp_path / "s.sqlite"] if command == "build" else [])]
    result = run(*arguments, "--json")
    listed = document(result)
    assert (result.exit_code, listed["state"]) == (code, "faulty")
    assert [fault["line"] for fault in listed["faults"]] == [9, 15]
    assert all(fault["file"].endswith("policy.yaml") and fault["id"] for fault in listed["faults"])
    spoken = run(*arguments)
    assert spoken.exit_code == code
    assert "2 fault(s)" in spoken.stderr
    assert not (tmp_path / "s.sqlite").exists()


@pytest.mark.parametrize(
    ("written", "meant", "words"),
    [
        ("made_up_count, op", "another_count, op", "another_count"),
        ('op: "<="', 'op: "=<"', "=<"),
        ("beyond: not_covered", "beyond: perhaps", "beyond"),
        ("type: count", "type: number", "type"),
    ],
)
def test_check_judges_criteria_and_fact_definitions(
    written: str, meant: str, words: str, run: Run, source: Path
) -> None:
    (source / "policy.yaml").write_text(POLICY.replace(written, meant), encoding="utf-8")
    result = run("check", "--source", source, "--json")
    assert result.exit_code == 1
    assert any(words in fault["message"] for fault in document(result)["faults"])


def test_check_of_a_sound_corpus_says_so(run: Run, source: Path) -> None:
    result = run("check", "--source", source, "--json")
    assert (result.exit_code, document(result)["state"]) == (0, "sound")
    assert "no fault in 1 clauses" in run("check", "--source", source).output


@pytest.mark.parametrize(
    ("definition", "fault"),
    [
        ("derive: [{when: {fact: nothing_such, op: '=', value: true}, value: 1}]", "nothing_such"),
        ("derive: [{when: {fact: made_up_count, op: '>', value: 1}, value: many}]", "derive.0.value"),
    ],
)
def test_check_judges_what_definitions_derive(definition: str, fault: str, run: Run, source: Path) -> None:
    (source / "more.yaml").write_text(
        f"facts:\n  other_count:\n    type: count\n    label: other count\n    unit: unit\n    {definition}\n",
        encoding="utf-8",
    )
    result = run("check", "--source", source, "--json")
    assert result.exit_code == 1
    assert [(found["id"], found["line"]) for found in document(result)["faults"]] == [("other_count", 3)]
    assert fault in document(result)["faults"][0]["message"]


def test_a_source_that_is_not_there_is_wrong_usage(run: Run, tmp_path: Path) -> None:
    for command in ("check", "build"):
        error = run(command, "--source", tmp_path / "nowhere").exception
        assert isinstance(error, UsageError)
        assert exit_code(error) == 2


def test_a_store_that_is_not_there_names_the_command_that_makes_it(run: Run, tmp_path: Path) -> None:
    for command in ("stats", "facts"):
        error = run(command, "--store", tmp_path / "nowhere.sqlite").exception
        assert isinstance(error, StoreMissing)
        assert "cda corpus build" in str(error)
        assert exit_code(error) == 3


def test_facts_lists_names_types_and_presumptions(run: Run, store: Path) -> None:
    facts = document(run("facts", "--store", store, "--json"))["facts"]
    assert facts["made_up_count"] == {
        "type": "count",
        "label": "made-up count",
        "unit": "unit",
        "values": None,
        "presume": None,
        "remark": None,
    }
    assert "made_up_count  (count: unit)  made-up count" in run("facts", "--store", store).output


def test_diff_compares_a_store_with_the_folder_it_came_from(run: Run, store: Path, source: Path) -> None:
    assert "no difference" in run("diff", store, source).output
    text = POLICY.replace("No more than 3", "No more than 4").replace("value: 3", "value: 4")
    (source / "policy.yaml").write_text(text, encoding="utf-8")
    (change,) = document(run("diff", store, source, "--json"))["clauses"]["changed"]
    assert change["id"] == "ACM-MP-1.v1.C1"
    assert set(change["fields"]) == {"criterion", "text"}
    assert "~ clauses ACM-MP-1.v1.C1" in run("diff", store, source).output


def test_diff_of_what_is_no_corpus_is_wrong_usage(run: Run, store: Path, tmp_path: Path) -> None:
    error = run("diff", store, tmp_path / "nowhere.sqlite").exception
    assert isinstance(error, UsageError)


def test_stats_show_a_person_every_corpus(run: Run, store: Path) -> None:
    assert "acme" in run("stats", "--store", store).output


def test_synth_writes_a_store_that_stats_can_read(run: Run, tmp_path: Path) -> None:
    made = document(run("synth", "--clauses", 50, "--seed", 3, "--out", tmp_path / "s.sqlite", "--json"))
    read = document(run("stats", "--store", tmp_path / "s.sqlite", "--json"))
    assert made["digest"] == read["digest"]
    assert read["corpora"]["synth"]["clauses"] == 50


def test_a_folder_that_cannot_be_written_is_wrong_usage(run: Run, source: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    error = run("build", "--source", source, "--out", tmp_path / "file" / "s.sqlite").exception
    assert isinstance(error, UsageError)
    assert exit_code(error) == 2


def test_loading_the_commands_loads_no_engine() -> None:
    code = (
        "import sys; import cda.systems.coverage.corpus_commands\n"
        "print([m for m in ('numpy','onnxruntime','tantivy','rich','yaml','pypdf','sqlite3') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
