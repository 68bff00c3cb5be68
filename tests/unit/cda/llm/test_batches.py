"""Batches are sent once, found again after a crash, and answered at half the price; the journal holds names alone."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest
from conformance.model_client import NOTE, Facts, asked
from doubles.messages_server import Fault, ModelDouble
from model_world import ANTHROPIC, settings_for

from cda.contracts.model_client import FailureKind, ModelFailure, UnlimitedMeter
from cda.errors import UnavailableError, UsageError
from cda.llm.batches import BatchClient, Pending
from cda.llm.opening import open_model_client

KEYS = tuple(f"case-{number}#1" for number in range(5))
BATCHES = "/v1/messages/batches"


@pytest.fixture
def start(double: ModelDouble, tmp_path: Path) -> Iterator[Callable[[], BatchClient]]:
    """A process anew: a client over the same journal."""
    made: list[BatchClient] = []

    def started() -> BatchClient:
        settings = settings_for(double, ANTHROPIC)
        made.append(BatchClient(open_model_client(settings, look=False), tmp_path / "batches.jsonl"))
        return made[-1]

    yield started
    for client in made:
        client.close()


def want(client: BatchClient, *keys: str) -> None:
    for key in keys:
        with pytest.raises(Pending):
            client.ask(asked(key=key), UnlimitedMeter())


def made(double: ModelDouble) -> list[int]:
    """How many questions each batch of the service holds."""
    return [len(batch.requests) for batch in double.batches.made]


@pytest.mark.promise("clients.batch")
def test_a_batch_answers_every_question_at_half_the_price(
    double: ModelDouble, start: Callable[[], BatchClient]
) -> None:
    client, meter = start(), UnlimitedMeter()
    want(client, *KEYS)
    assert client.send() == len(KEYS)
    assert not client.poll() or client.poll()
    assert client.poll()
    replies = [client.ask(asked(key=key), meter) for key in KEYS]
    assert all(isinstance(reply.answer, Facts) for reply in replies)
    assert made(double) == [5]
    plain = client._client.prices.cost("anthropic:claude-sonnet-5", replies[0].call.usage)
    assert replies[0].call.usd == plain / 2 > Decimal(0)
    assert len(meter.calls) == len(KEYS)


@pytest.mark.promise("clients.batch_resumed")
def test_a_killed_process_finds_its_batch_and_sends_nothing_twice(
    double: ModelDouble, start: Callable[[], BatchClient]
) -> None:
    double.batches.polls = 3
    first = start()
    want(first, *KEYS)
    first.send()
    first.close()
    second = start()
    want(second, *KEYS)
    assert second.send() == 0
    while not second.poll():
        pass
    third = start()
    want(third, *KEYS)
    assert third.send() == 0
    for client in (second, third):
        assert isinstance(client.ask(asked(key=KEYS[0]), UnlimitedMeter()).answer, Facts)
    assert made(double) == [5]


@pytest.mark.promise("clients.batch_resumed")
@pytest.mark.parametrize("kind", ["cut", "and_the_look_for_it_fails"])
def test_a_batch_whose_answer_was_lost_is_found_again_and_not_sent_twice(
    double: ModelDouble, start: Callable[[], BatchClient], kind: str
) -> None:
    client = start()
    want(client, *KEYS)
    double.faults = [Fault("cut", path=BATCHES)]
    if kind == "and_the_look_for_it_fails":  # and the first look for it fails too
        double.faults.append(Fault("status", path=BATCHES, status=500))
        with pytest.raises(UnavailableError, match="run the same again"):
            client.send()
        client = start()
        want(client, *KEYS)
    client.send()
    while not client.poll():
        pass
    assert isinstance(client.ask(asked(key=KEYS[2]), UnlimitedMeter()).answer, Facts)
    assert made(double) == [5]


@pytest.mark.promise("clients.batch_resumed")
def test_a_strangers_batch_of_the_same_size_is_not_taken_for_ours(
    double: ModelDouble, start: Callable[[], BatchClient], tmp_path: Path
) -> None:
    other = BatchClient(start()._client, tmp_path / "other.jsonl")
    want(other, "other-1", "other-2")
    other.send()
    (tmp_path / "batches.jsonl").write_text(json.dumps({"event": "intent", "items": ["a" * 48, "b" * 48]}) + "\n")
    client = start()
    while not client.poll():
        pass
    want(client, KEYS[0])
    assert client.send() == 1
    while not client.poll():
        pass
    assert isinstance(client.ask(asked(key=KEYS[0]), UnlimitedMeter()).answer, Facts)
    assert made(double) == [2, 1]


@pytest.mark.promise("clients.batch_failed")
def test_what_expired_or_failed_is_a_typed_failure_without_cost_and_can_be_asked_again(
    double: ModelDouble, start: Callable[[], BatchClient]
) -> None:
    client = start()
    want(client, *KEYS)
    items = sorted(client._wanted)
    double.batches.expiring = {items[0]}
    double.batches.failing = {items[1]: "invalid_request_error", items[2]: "overloaded_error"}
    client.send()
    while not client.poll():
        pass
    found, meter = [], UnlimitedMeter()
    for key in KEYS:
        try:
            client.ask(asked(key=key), meter)
        except ModelFailure as failure:
            found.append(failure.kind)
    assert sorted(found) == sorted([FailureKind.TIMED_OUT, FailureKind.REJECTED, FailureKind.UNREACHABLE])
    assert sorted(call.outcome for call in meter.calls) == sorted(["ok", "ok", *map(str, found)])
    assert all(call.usd == 0 for call in meter.calls if call.outcome != "ok")
    double.batches.expiring, double.batches.failing = set(), {}
    for key in KEYS:
        with suppress(Pending):
            client.ask(asked(key=key), meter)
    assert client.send() == 3
    while not client.poll():
        pass
    assert all(isinstance(client.ask(asked(key=key), meter).answer, Facts) for key in KEYS)
    assert made(double) == [5, 3]


@pytest.mark.promise("clients.batch_journal")
def test_the_journal_of_batches_holds_no_word_of_a_question_an_answer_or_a_key(
    double: ModelDouble, start: Callable[[], BatchClient], tmp_path: Path
) -> None:
    client = start()
    want(client, *KEYS)
    client.send()
    while not client.poll():
        pass
    client.ask(asked(key=KEYS[0]), UnlimitedMeter())
    written = (tmp_path / "batches.jsonl").read_bytes()
    sent = double.batches.made[0].requests[0]
    assert json.loads(sent["params"]["messages"][0]["content"][0]["text"]) == json.loads(NOTE)
    for word in (b"canary-7291", b"insulin", double.key.encode(), b"case-0"):
        assert word not in written


@pytest.mark.promise("clients.batch_journal")
def test_a_journal_with_a_cut_last_line_goes_on_and_a_broken_one_is_refused(
    double: ModelDouble, start: Callable[[], BatchClient], tmp_path: Path
) -> None:
    journal = tmp_path / "batches.jsonl"
    journal.write_text('{"event": "intent", "items": ["a"]}\n{"event": "given_up", "items": ["a"]}\n{"even', "utf-8")
    client = start()
    want(client, KEYS[0])
    assert client.send() == 1
    assert all(json.loads(line) for line in journal.read_text("utf-8").splitlines())
    journal.write_text("no journal\n", "utf-8")
    with pytest.raises(UsageError, match=r"batches.jsonl: is no journal"):
        start()
