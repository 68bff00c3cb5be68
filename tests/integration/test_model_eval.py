"""`cda eval` with a reasoner that asks a model: over the real library, against the double, killed and gone on."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from coverage_world import open_system
from doubles.actors import Oracle
from doubles.messages_actor import Body, Said, static_of
from doubles.messages_server import Fault, ModelDouble

from cda.systems.coverage.system import CoverageSystem

CDA = str(Path(sys.executable).parent / "cda")
CHOICE = ("--reasoner", "hybrid", "--set", "floor", "--limit", "6", "--json")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("model-eval")
    open_system(place)
    return place


@pytest.fixture(scope="module")
def oracle(home: Path) -> Oracle:
    system: CoverageSystem = open_system(home)
    return Oracle(system.definitions)


@pytest.fixture
def double(oracle: Oracle) -> Iterator[ModelDouble]:
    """Facts from an oracle that sees the request alone, opinions from a judge that likes everything."""

    def act(body: Body) -> Said:
        static = static_of(body)
        if static.startswith("# Judging"):
            return Said(answer={"reasoning": 5, "clarity": 4, "hedging": 5, "reason": "Plain."})
        return oracle(body)

    with ModelDouble(act) as running:
        yield running


def started(home: Path, double: ModelDouble, *words: str, **changes: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "CDA_HOME": str(home),
        "CDA_EMBEDDER": "tfidf",
        "CDA_MODEL": "anthropic:claude-sonnet-5",
        "ANTHROPIC_API_KEY": double.key,
        "ANTHROPIC_BASE_URL": double.url,
        **changes,
    }
    return subprocess.Popen(
        [CDA, "eval", *CHOICE, *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )


def card_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    card: dict[str, Any] = json.loads(out)
    return card


def wait_for(true: Any, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 200
    while not true():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.02)


def kept(home: Path, name: str) -> list[dict[str, Any]]:
    """The lines of the newest run under way."""
    files = sorted((home / "evals" / "runs").glob(f"*/{name}"), key=lambda file: file.stat().st_mtime_ns)
    return [json.loads(line) for line in files[-1].read_text(encoding="utf-8").splitlines()] if files else []


@pytest.mark.promise("repeats.journey")
def test_repeats_are_asked_each_and_the_card_has_tokens_money_and_pass_hat_k(home: Path, double: ModelDouble) -> None:
    card = card_of(started(home, double, "--repeats", "2", "--judge"))
    repeats, spent = card["repeats"], card["spent"]
    assert (repeats["k"], repeats["cases"], repeats["samples"]) == (2, 6, 12)
    assert (repeats["mean"], repeats["pass_hat_k"]) == (1.0, 1.0)
    roles = {role["role"]: role for role in spent["roles"]}
    assert roles["extractor"]["calls"] - roles["extractor"]["failed_calls"] == 12
    assert roles["judge"]["calls"] - roles["judge"]["failed_calls"] == 12
    assert spent["calls"] == len(double.questions)
    assert float(spent["usd"]) > 0
    assert card["opinions"]["scores"]["clarity"]["mean"] == 4.0
    assert card["failures"] == []
    assert card["provenance"]["model"] == "anthropic:claude-sonnet-5"


@pytest.mark.promise("paid.journey")
def test_killed_and_gone_on_asks_for_no_answer_again_that_was_paid_for(home: Path, double: ModelDouble) -> None:
    double.latency_s = 0.5
    process = started(home, double, "--repeats", "3", "--concurrency", "2")
    wait_for(lambda: len(kept(home, "paid.jsonl")) >= 4, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    paid = len([line for line in kept(home, "paid.jsonl") if "call" in line])
    before = len(double.questions)
    assert 4 <= paid < 18
    double.latency_s = 0.0
    card = card_of(started(home, double, "--repeats", "3", "--concurrency", "2"))
    failed = card["spent"]["failed_calls"]
    assert len(double.questions) - before - failed <= 18 - paid
    assert card["spent"]["calls"] - failed == 18
    assert card["repeats"]["samples"] == 18


@pytest.mark.promise("repeats.journey")
def test_a_service_that_is_overloaded_fails_its_samples_and_only_they_are_asked_again(
    home: Path, double: ModelDouble
) -> None:
    double.faults = [Fault("status", times=2, headers={"retry-after": "0"})]
    first = card_of(started(home, double, "--concurrency", "1", CDA_MODEL_TRIES="1"))
    assert sum("model_overloaded" in " ".join(case["reasons"]) for case in first["cases"]) == 2
    assert first["both_correct"] == round(4 / 6, 4)
    before = len(double.questions)
    second = card_of(started(home, double, "--concurrency", "1", "--retry-failed", CDA_MODEL_TRIES="1"))
    assert len(double.questions) - before == 2
    assert second["both_correct"] == 1.0
    assert second["spent"]["calls"] == 8
    assert second["spent"]["failed_calls"] == 2


@pytest.mark.promise("batches.journey")
def test_a_batch_that_outlives_its_run_is_collected_by_the_next_at_half_the_price(
    home: Path, double: ModelDouble
) -> None:
    plain = card_of(started(home, double))
    asked = len(double.questions)
    double.batches.polls = 1_000_000
    process = started(home, double, "--batch")
    wait_for(lambda: any(line["event"] == "made" for line in kept(home, "batches.jsonl")), process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    double.batches.polls = 0
    for batch in double.batches.made:
        batch.polls = 0
    card = card_of(started(home, double, "--batch"))
    assert len(double.questions) == asked
    assert sum(len(batch.requests) for batch in double.batches.made) == 6
    assert card["both_correct"] == plain["both_correct"] == 1.0
    assert card["spent"]["calls"] == 6


@pytest.mark.promise("repeats.journey")
@pytest.mark.parametrize(
    ("words", "changes", "code", "told"),
    [
        ((), {"ANTHROPIC_API_KEY": "another"}, 3, "correct ANTHROPIC_API_KEY"),
        ((), {"CDA_MODEL": ""}, 3, "no model is chosen"),
        (("--retry-failed", "--limit", "2"), {}, 2, "has finished"),
        (("--reasoner", "criteria", "--batch"), {}, 2, "--batch is for a reasoner that asks a model"),
        (("--repeats", "2", "--set-baseline"), {}, 2, "leave out --repeats"),
    ],
)
def test_what_cannot_be_run_is_one_line_and_asks_nothing(
    home: Path, double: ModelDouble, words: tuple[str, ...], changes: dict[str, str], code: int, told: str
) -> None:
    process = started(home, double, *words, **changes)
    _, said = process.communicate(timeout=120)
    assert process.returncode == code
    assert told in said.splitlines()[-1]
    assert double.questions == []
