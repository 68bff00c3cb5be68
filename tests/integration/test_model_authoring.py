"""Drafting criteria and proposing cases with the installed command, over the real libraries, against the double."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from doubles.messages_actor import Body, Said, data_of, static_of
from doubles.messages_server import Fault, ModelDouble

CDA = str(Path(sys.executable).parent / "cda")
RULE = "A widget is covered for a member who uses it 4 or more times per day, unless the member has a widget allergy."
POLICY = f"""---
policy_id: ACME-MP-7
title: Widgets
payer_id: ACME
version: v1
effective_start: 2024-01-01
codes: [A9276]
---

## Coverage

{RULE}
"""
CRITERION = {
    "covers_if": {"fact": "widget_uses_per_day", "op": ">=", "value": 4},
    "unless": {
        "meaning": "waives",
        "when": {"fact": "widget_allergy", "op": "=", "value": True},
        "waived": ["widget_uses_per_day"],
    },
}


def drafting(body: Body) -> Said:
    """Drafts from the request alone: the text of its first block, and facts of its own."""
    (block,) = data_of(body)["blocks"]
    quote = block["text"]
    clause = {
        "block": block["id"],
        "quote": quote,
        "section": block["section"],
        "codes": data_of(body)["policy"]["codes"],
        "criterion": json.dumps(CRITERION),
        "exceptions": [{"words": quote[quote.index("unless") :], "node": "unless"}],
    }
    uses = {"name": "widget_uses_per_day", "type": "rate", "label": "uses per day", "unit": "per_day", "values": []}
    allergy = {"name": "widget_allergy", "type": "bool", "label": "widget allergy", "unit": "", "values": []}
    return Said(answer={"clauses": [clause], "facts": [uses, allergy]})


def writing(body: Body) -> Said:
    """Writes charts from the facts of the request alone."""
    shown = data_of(body)
    told = []
    for fact in shown["stated"]:
        value = fact["value"]
        said = {True: "yes, seen", False: "no, never seen"}[value] if isinstance(value, bool) else str(value)
        told.append({"fact": fact["name"], "words": f"{fact['label']}: {said.replace('_', ' ')}"})
    note = ". ".join(["Seen today", *(one["words"] for one in told), shown["difficulty"][:30]])
    return Said(answer={"narrative": f"{note}.", "question": "Is it in order?", "told": told})


def acting(body: Body) -> Said:
    return drafting(body) if "Drafting criteria" in static_of(body) else writing(body)


@pytest.fixture
def double() -> Iterator[ModelDouble]:
    with ModelDouble(acting) as running:
        yield running


def cda(folder: Path, double: ModelDouble, *words: str, **changes: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "CDA_HOME": str(folder / "home"),
        "CDA_MODEL": "anthropic:claude-sonnet-5",
        "CDA_MODEL_PRICES": "gpt-double=1/2,claude-nobody=1/2",
        "ANTHROPIC_API_KEY": double.key,
        "ANTHROPIC_BASE_URL": double.url,
        "OPENAI_API_KEY": double.key,
        "OPENAI_BASE_URL": double.openai_url,
        **changes,
    }
    return subprocess.run(
        [CDA, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path, double: ModelDouble) -> Path:
    (tmp_path / "policy.md").write_text(POLICY, encoding="utf-8")
    payer = {"payer": {"payer_id": "ACME", "name": "Acme", "plans": [{"plan_id": "ACME-PPO"}]}}
    (tmp_path / "payer.yaml").write_text(yaml.safe_dump(payer), encoding="utf-8")
    done = cda(tmp_path, double, "corpus", "import", "policy.md", "--format", "markdown", "--out", "imported")
    assert done.returncode == 0, done.stderr
    return tmp_path


@pytest.mark.promise("draft.journey")
@pytest.mark.parametrize("model", ["anthropic:claude-sonnet-5", "openai:gpt-double"])
def test_from_an_import_to_a_policy_that_builds_over_either_library(
    folder: Path, double: ModelDouble, model: str
) -> None:
    drafted = cda(folder, double, "corpus", "draft-criteria", "imported", "--out", "drafts", "--json", CDA_MODEL=model)
    assert drafted.returncode == 0, drafted.stderr
    report: dict[str, Any] = json.loads(drafted.stdout)
    assert (report["clauses"], report["faulty"], report["failed"]) == (1, 0, [])
    assert report["input_tokens"] > 1_000
    assert f"sending the texts of 1 versions to {model}" in drafted.stderr
    (review,) = (folder / "drafts").iterdir()
    held = yaml.safe_load(review.read_text(encoding="utf-8"))
    held["review"]["reviewed_by"] = "R. Viewer"
    for part in (*held["review"]["clauses"], *held["review"]["facts"]):
        part["decision"] = "accept"
    review.write_text(yaml.safe_dump(held, sort_keys=False), encoding="utf-8")
    questions = len(double.questions)
    beside = ("--beside", "builtin", "--beside", "payer.yaml")
    accept = ("corpus", "draft-criteria", "imported", "--accept", str(review), "--out", "reviewed", *beside, "--json")
    accepted = cda(folder, double, *accept, CDA_MODEL="")
    assert accepted.returncode == 0, accepted.stderr
    assert json.loads(accepted.stdout)["deciding"] == 1
    assert len(double.questions) == questions
    sources = ("--source", "builtin", "--source", "payer.yaml", "--source", "reviewed")
    built = cda(folder, double, "corpus", "build", *sources, "--out", "store.sqlite")
    assert built.returncode == 0, built.stderr
    again = cda(folder, double, *accept)
    assert again.returncode == 2
    assert "is there already" in again.stderr


@pytest.mark.promise("draft.journey")
def test_the_text_of_the_policy_is_data_in_a_user_message_and_never_in_the_system_text(
    folder: Path, double: ModelDouble
) -> None:
    cda(folder, double, "corpus", "draft-criteria", "imported")
    body = json.loads(double.questions[0].body)
    assert RULE not in json.dumps(body["system"])
    assert RULE in json.loads(body["messages"][0]["content"][0]["text"])["blocks"][0]["text"]
    assert not body.get("tools")


@pytest.mark.promise("draft.journey")
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"CDA_MODEL": ""}, "no model is chosen"),
        ({"ANTHROPIC_API_KEY": ""}, "ANTHROPIC_API_KEY is not set"),
        ({"ANTHROPIC_API_KEY": "another"}, "correct ANTHROPIC_API_KEY"),
        ({"CDA_MODEL": "anthropic:claude-nobody"}, "claude-nobody"),
        ({"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}, "cannot be reached"),
    ],
)
@pytest.mark.parametrize("command", [("corpus", "draft-criteria", "imported"), ("evals", "generate", "--count", "2")])
def test_without_a_model_that_answers_there_is_one_line_and_exit_three(
    folder: Path, double: ModelDouble, changes: dict[str, str], words: str, command: tuple[str, ...]
) -> None:
    done = cda(folder, double, *command, **changes)
    assert (done.returncode, done.stderr.count("\n")) == (3, 1), done.stderr
    assert words in done.stderr
    assert double.questions == []
    assert not (folder / "drafts").exists()


@pytest.mark.promise("draft.journey")
def test_a_refusal_fails_its_version_and_exits_one(folder: Path, double: ModelDouble) -> None:
    double.faults = [Fault("refusal")]
    done = cda(folder, double, "corpus", "draft-criteria", "imported", "--out", "drafts", "--json")
    assert done.returncode == 1
    assert "model_refused" in json.loads(done.stdout)["failed"][0]
    assert list((folder / "drafts").iterdir()) == []


@pytest.mark.promise("generate.journey")
def test_proposed_cases_are_a_file_that_validation_passes(folder: Path, double: ModelDouble) -> None:
    done = cda(folder, double, "evals", "generate", "--count", "12", "--seed", "3", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["asked"] == len(double.questions) == 12
    assert 0 < report["passed"] <= 12
    judged = cda(folder, double, "evals", "validate", "generated.json")
    assert judged.returncode == 0, judged.stdout
    beside = json.loads((folder / "generated.rejected.json").read_text(encoding="utf-8"))
    assert beside == report["rejected"]
