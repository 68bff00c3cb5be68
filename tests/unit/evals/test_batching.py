"""Waiting for batches over the real library, against the double."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pytest
from doubles.messages_actor import Said
from doubles.messages_server import Fault, ModelDouble
from pydantic import BaseModel

from cda.contracts.model_client import ModelFailure, ModelRequest, UnlimitedMeter, Usage, UserTurn
from cda.llm.batches import BatchClient
from cda.llm.opening import open_model_client
from cda.llm.prices import read_prices
from cda.settings import Settings
from evals.batching import WaitingClient
from evals.paid import PaidAnswers, PaidClient, sampling


class Words(BaseModel):
    words: str


REQUEST = ModelRequest(role="extractor", static="Read.", turns=(UserTurn("{}"),), answer=Words)


@pytest.fixture
def double() -> Iterator[ModelDouble]:
    with ModelDouble(lambda _: Said(answer={"words": "said"})) as running:
        yield running


def client(double: ModelDouble, folder: Path, said: list[str] | None = None) -> PaidClient:
    settings = Settings(  # type: ignore[call-arg]
        _env_file=None,
        CDA_HOME=folder,
        CDA_MODEL="anthropic:claude-sonnet-5",
        ANTHROPIC_API_KEY=double.key,
        ANTHROPIC_BASE_URL=double.url,
        CDA_MODEL_TRIES=1,
    )
    batches = BatchClient(open_model_client(settings), folder / "batches.jsonl")
    say = said.append if said is not None else (lambda _: None)
    waiting = WaitingClient(batches, say=say, quiet_s=1.0, poll_s=0.1)
    return PaidClient(waiting, PaidAnswers(folder / "paid.jsonl"))


def asked(held: PaidClient, samples: range) -> list[str]:
    def one(number: int) -> str:
        try:
            with sampling((f"A-{number}", 1)):
                answer = held.ask(REQUEST, UnlimitedMeter()).answer
        except ModelFailure as failure:
            return failure.kind.value
        assert isinstance(answer, Words)
        return answer.words

    with ThreadPoolExecutor(len(samples)) as pool:
        return list(pool.map(one, samples))


def eventually(true: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not true():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.promise("batches.gathered")
def test_what_many_samples_ask_is_one_batch_at_half_the_price(double: ModelDouble, tmp_path: Path) -> None:
    held = client(double, tmp_path)
    assert asked(held, range(30)) == ["said"] * 30
    held.close()
    # A busy machine may start its threads so slowly that the first are sent before the last has asked.
    assert sum(len(batch.requests) for batch in double.batches.made) == 30
    assert len(double.batches.made) <= 3
    assert double.questions == []
    spent = PaidAnswers(tmp_path / "paid.jsonl").spent().as_json()
    assert (spent["calls"], spent["failed_calls"]) == (30, 0)
    used = Usage(spent["input_tokens"], spent["cache_read_tokens"], spent["cache_write_tokens"], spent["output_tokens"])
    plain = read_prices().cost("anthropic:claude-sonnet-5", used)
    assert plain is not None
    assert Decimal(spent["usd"]) * 2 == plain


@pytest.mark.promise("batches.resume")
def test_a_run_that_died_while_it_waited_collects_what_it_had_sent(double: ModelDouble, tmp_path: Path) -> None:
    double.batches.polls = 1_000_000
    held = client(double, tmp_path)
    thread = threading.Thread(target=asked, args=(held, range(8)))
    thread.start()
    eventually(lambda: b'"made"' in (tmp_path / "batches.jsonl").read_bytes() if double.batches.made else False)
    held.close()
    thread.join()
    assert len(PaidAnswers(tmp_path / "paid.jsonl")) == 0
    double.batches.made[0].polls = 0
    held = client(double, tmp_path)
    assert asked(held, range(8)) == ["said"] * 8
    held.close()
    assert len(double.batches.made) == 1


@pytest.mark.promise("batches.resume")
def test_a_batch_that_ended_just_before_the_kill_is_read_again(double: ModelDouble, tmp_path: Path) -> None:
    held = client(double, tmp_path)
    assert asked(held, range(5)) == ["said"] * 5
    held.close()
    (tmp_path / "paid.jsonl").unlink()
    said: list[str] = []
    held = client(double, tmp_path, said)
    assert asked(held, range(5)) == ["said"] * 5
    held.close()
    assert len(double.batches.made) == 1
    assert said[0] == "5 answers of batches of a stopped run are there"


@pytest.mark.promise("batches.failed")
def test_an_expired_question_fails_its_sample_alone_and_is_sent_anew_by_the_next_run(
    double: ModelDouble, tmp_path: Path
) -> None:
    double.batches.polls = 1_000_000
    held = client(double, tmp_path)
    heard: list[list[str]] = []
    thread = threading.Thread(target=lambda: heard.append(asked(held, range(4))))
    thread.start()
    eventually(lambda: bool(double.batches.made))
    bad = double.batches.made[0].requests[0]["custom_id"]
    double.batches.expiring = {bad}
    double.batches.polls = double.batches.made[0].polls = 0
    thread.join()
    held.close()
    assert sorted(heard[0]) == ["model_timed_out", "said", "said", "said"]
    double.batches.expiring = set()
    held = client(double, tmp_path)
    assert asked(held, range(4)) == ["said"] * 4
    held.close()
    assert [one["custom_id"] for one in double.batches.made[1].requests] == [bad]


@pytest.mark.promise("batches.failed")
def test_a_batch_that_is_not_taken_is_told_to_everyone_who_waits(double: ModelDouble, tmp_path: Path) -> None:
    held = client(double, tmp_path)
    double.faults = [Fault("status", times=50, path="batches", status=400)]
    assert asked(held, range(3)) == ["model_unreachable"] * 3
    held.close()
    with sampling(("A-1", 1)), pytest.raises(ModelFailure, match="the client was closed"):
        held.ask(REQUEST, UnlimitedMeter())
