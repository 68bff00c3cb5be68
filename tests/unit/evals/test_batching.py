"""Batches of a provider that ends them when it is told to, and dies when it is told to."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import BaseModel

from cda.contracts.model_client import (
    FailureKind,
    ModelCall,
    ModelFailure,
    ModelReply,
    ModelRequest,
    ModelTurn,
    UnlimitedMeter,
    Usage,
    UserTurn,
)
from evals.batching import BatchClient
from evals.paid import PaidAnswers, PaidClient, sampling


class Said(BaseModel):
    words: str


REQUEST = ModelRequest(role="facts", static="Read.", turns=(UserTurn("{}"),), answer=Said)


@dataclass
class Result:
    key: str
    kind: FailureKind | None = None

    def reply_to(self, request: ModelRequest) -> tuple[ModelReply | ModelFailure, ModelCall]:
        assert request.key == self.key
        call = ModelCall("facts", "m", Usage(10), Decimal("0.005"), 1.0, "ok")
        if self.kind:
            return ModelFailure(self.kind, "facts"), replace(call, outcome=self.kind.value, usd=Decimal(0))
        return ModelReply(ModelTurn(""), Said(words=self.key), call), call


@dataclass
class Provider:
    """Everything handed in, by batch; what outlives a kill of the client."""

    batches: dict[str, list[str]] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    failing: dict[str, FailureKind] = field(default_factory=dict)
    die_after_submit: bool = False
    holding: bool = False

    def submit(self, requests: list[tuple[str, ModelRequest]]) -> str:
        batch_id = f"b{len(self.batches) + 1}"
        self.batches[batch_id] = [key for key, _ in requests]
        if self.holding:
            self.open.add(batch_id)
        if self.die_after_submit:
            raise ModelFailure(FailureKind.UNREACHABLE, "facts")
        return batch_id

    def ended(self, batch_id: str) -> bool:
        return batch_id not in self.open

    def collect(self, batch_id: str) -> Iterator[tuple[str, Result]]:
        return iter([(key, Result(key, self.failing.get(key))) for key in reversed(self.batches[batch_id])])

    def recent(self) -> Iterator[tuple[str, int]]:
        return iter([(name, len(keys)) for name, keys in reversed(self.batches.items())])

    def describe(self, role: str) -> str:
        return "m"

    def close(self) -> None:
        pass


def client(provider: Provider, folder: Path) -> PaidClient:
    inner = BatchClient(provider, folder / "batches.jsonl", say=lambda _: None, quiet_s=0.05, poll_s=0.02)
    return PaidClient(inner, PaidAnswers(folder / "paid.jsonl"))


def asked(held: PaidClient, samples: range) -> list[str]:
    def one(number: int) -> str:
        try:
            with sampling((f"A-{number}", 1)):
                answer = held.ask(REQUEST, UnlimitedMeter()).answer
        except ModelFailure as failure:
            return failure.kind.value
        assert isinstance(answer, Said)
        return "ok"

    with ThreadPoolExecutor(len(samples)) as pool:
        return list(pool.map(one, samples))


def eventually(true: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not true():
        assert time.monotonic() < until
        time.sleep(0.01)


def killed(held: PaidClient, samples: range, when: Callable[[], bool]) -> None:
    """Ask, and stop as a kill would once `when` holds: what waits is not answered."""
    thread = threading.Thread(target=asked, args=(held, samples))
    thread.start()
    eventually(when)
    held.close()
    thread.join()


@pytest.mark.promise("batches.gathered")
def test_what_many_samples_ask_is_one_batch_and_each_hears_its_own_result(tmp_path: Path) -> None:
    provider = Provider()
    held = client(provider, tmp_path)
    assert asked(held, range(30)) == ["ok"] * 30
    held.close()
    assert [len(keys) for keys in provider.batches.values()] == [30]
    assert PaidAnswers(tmp_path / "paid.jsonl").spent().as_json()["usd"] == "0.150"


@pytest.mark.promise("batches.resume")
def test_a_run_that_was_killed_collects_the_batch_it_handed_in(tmp_path: Path) -> None:
    provider = Provider(holding=True)
    killed(client(provider, tmp_path), range(8), lambda: bool(provider.batches) and _heard(tmp_path))
    provider.open.clear()
    held = client(provider, tmp_path)
    assert asked(held, range(8)) == ["ok"] * 8
    held.close()
    assert len(provider.batches) == 1


def _heard(folder: Path) -> bool:
    return b'"batch"' in (folder / "batches.jsonl").read_bytes()


@pytest.mark.promise("batches.resume")
def test_a_batch_whose_id_was_never_heard_is_found_by_its_requests(tmp_path: Path) -> None:
    provider = Provider(die_after_submit=True)
    held = client(provider, tmp_path)
    assert asked(held, range(8)) == ["model_unreachable"] * 8
    held.close()
    provider.die_after_submit = False
    provider.batches = {"of another run": [f"x{n}" for n in range(8)], **provider.batches}
    held = client(provider, tmp_path)
    assert asked(held, range(8)) == ["ok"] * 8
    held.close()
    assert len(provider.batches) == 2


@pytest.mark.promise("batches.resume")
def test_requests_that_never_arrived_are_handed_in_again(tmp_path: Path) -> None:
    provider = Provider(die_after_submit=True)
    held = client(provider, tmp_path)
    asked(held, range(3))
    held.close()
    provider.batches.clear()
    provider.die_after_submit = False
    held = client(provider, tmp_path)
    assert asked(held, range(3)) == ["ok"] * 3
    held.close()


@pytest.mark.promise("batches.failed")
def test_an_expired_request_fails_its_sample_alone_and_goes_into_a_new_batch_when_asked_again(tmp_path: Path) -> None:
    provider = Provider(holding=True)
    held = client(provider, tmp_path)
    thread = threading.Thread(target=asked, args=(held, range(4)))
    thread.start()
    eventually(lambda: bool(provider.batches))
    bad = provider.batches["b1"][0]
    provider.failing[bad] = FailureKind.OVERLOADED
    provider.holding = False
    provider.open.clear()
    thread.join()
    held.close()
    provider.failing.clear()
    held = client(provider, tmp_path)
    assert asked(held, range(4)) == ["ok"] * 4
    held.close()
    assert provider.batches["b2"] == [bad]


@pytest.mark.promise("batches.failed")
def test_what_breaks_in_the_background_is_told_to_everyone_who_waits(tmp_path: Path) -> None:
    class Broken(Provider):
        def submit(self, requests: list[tuple[str, ModelRequest]]) -> str:
            raise OSError("no network")

    held = client(Broken(), tmp_path)
    assert asked(held, range(3)) == ["model_unreachable"] * 3
    held.close()
    with sampling(("A-1", 1)), pytest.raises(ModelFailure, match="the client was closed"):
        held.ask(REQUEST, UnlimitedMeter())
