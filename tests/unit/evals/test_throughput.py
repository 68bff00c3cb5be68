"""152 samples of one call each, with a limit of 8 in flight: the run keeps the limit busy from end to end."""

import time
from pathlib import Path

import pytest
from eval_world import case, record
from pydantic import BaseModel
from scripted_model import ScriptedModel

from cda.contracts.model_client import ModelReply, ModelRequest, RunMeter, UnlimitedMeter, UserTurn
from cda.llm.pacing import Pacing
from cda.settings import Settings
from evals.asking import Asked
from evals.journal import Journal
from evals.paid import PaidAnswers, PaidClient, sampling
from evals.record import Record
from evals.runner import IN_THREADS, run_cases

SECONDS, IN_FLIGHT, SAMPLES = 0.25, 8, 152


class Said(BaseModel):
    words: str = ""


class Slow(ScriptedModel):
    """Takes its time for each answer, in the turns of the shared limit."""

    def __init__(self) -> None:
        super().__init__(lambda _: Said())
        self.pacing = Pacing(IN_FLIGHT)

    def ask(self, request: ModelRequest, meter: RunMeter) -> ModelReply:
        with self.pacing.turn(time.monotonic() + 600):
            time.sleep(SECONDS)
            return super().ask(request, meter)


class OneCall:
    """Asks the model once a sample."""

    def __init__(self, client: PaidClient) -> None:
        self._client = client

    def answer(self, asked: Asked) -> Record:
        with sampling(asked.sample):
            self._client.ask(
                ModelRequest("extractor", "Read.", (UserTurn("{}"),), answer=Said), UnlimitedMeter(remaining_s=600.0)
            )
        return record(asked.case.case_id, repeat=asked.repeat)


@pytest.mark.promise("repeats.throughput")
def test_the_run_takes_little_more_than_its_calls_over_the_limit_in_flight(tmp_path: Path) -> None:
    journal = Journal(Settings(_env_file=None, CDA_HOME=tmp_path), "d", {"": "c"})  # type: ignore[call-arg]
    journal.resume([])
    asker = OneCall(PaidClient(Slow(), PaidAnswers(journal.paid)))
    asked = [Asked("floor", case(f"A-{number}")) for number in range(SAMPLES)]
    started = time.monotonic()
    records = run_cases(
        asked,
        asker=asker,  # type: ignore[arg-type]
        worlds={},
        journal=journal,
        concurrency=IN_THREADS,
        say=lambda _: None,
        threads=True,
    )
    assert len(records) == SAMPLES
    assert time.monotonic() - started < 1.3 * SAMPLES * SECONDS / IN_FLIGHT
