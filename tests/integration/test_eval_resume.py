"""A run that is killed, and the same run that is not."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from coverage_world import open_system

from evals.scorecard import stable

CDA = str(Path(sys.executable).parent / "cda")
CHOICE = ("--set", "adversarial", "--limit", "40")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("resume")
    open_system(place)
    return place


def started(home: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "CDA_HOME": str(home), "CDA_EMBEDDER": "tfidf"}
    return subprocess.Popen(
        [CDA, "eval", *CHOICE, "--json", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
        # A suite that was itself started in the background hands down that ^C is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,  # noqa: PLW1509 - one call, no thread
    )


def answered(home: Path) -> int:
    files = list((home / "evals" / "runs").glob("*/records.jsonl"))
    return files[0].read_bytes().count(b"\n") if files else 0


def stopped(home: Path, how: signal.Signals, *arguments: str) -> tuple[int, str]:
    """Stop a run once it has answered some cases; its exit code and what it said."""
    process = started(home, *arguments)
    until = time.monotonic() + 120
    while not answered(home) and process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    # SIGINT goes to the process as a user's ^C would; SIGKILL takes its workers along.
    os.killpg(process.pid, how) if how is signal.SIGKILL else process.send_signal(how)
    _, said = process.communicate(timeout=120)
    return process.returncode, said


def finished(home: Path, *arguments: str) -> tuple[dict[str, Any], str]:
    process = started(home, *arguments)
    out, said = process.communicate(timeout=300)
    card: dict[str, Any] = json.loads(out)
    return card, said


@pytest.mark.promise("evals.resume", "evals.deterministic")
def test_killed_and_gone_on_gives_the_scorecard_of_a_run_that_was_not_killed(home: Path) -> None:
    code, _ = stopped(home, signal.SIGKILL, "--concurrency", "2")
    assert code == -signal.SIGKILL
    before = answered(home)
    assert 0 < before < 40
    resumed, said = finished(home, "--concurrency", "2")
    assert f"going on after a stopped run: {before} of 40" in said
    whole, said = finished(home, "--concurrency", "1")
    assert "going on" not in said
    assert json.dumps(stable(resumed)) == json.dumps(stable(whole))


@pytest.mark.promise("evals.resume", "evals.command")
def test_an_interrupt_is_exit_four_and_says_how_to_go_on(home: Path) -> None:
    code, said = stopped(home, signal.SIGINT, "--concurrency", "1")
    assert code == 4
    assert "the same command goes on" in said
