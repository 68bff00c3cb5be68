from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import BaseModel
from scripted_model import ScriptedModel

from cda.contracts.model_client import FailureKind, ModelFailure, ModelRequest, RunMeter, UnlimitedMeter, UserTurn
from cda.errors import InterruptedRun
from evals.paid import PaidAnswers, PaidClient, sampling


class Said(BaseModel):
    words: str


REQUEST = ModelRequest(role="facts", static="Read.", turns=(UserTurn('{"chart": "x"}'),), answer=Said)


def counting() -> tuple[ScriptedModel, Callable[[ModelRequest], BaseModel | ModelFailure]]:
    """A model that never says the same twice."""
    said: list[int] = []

    def answer(_: ModelRequest) -> BaseModel:
        said.append(1)
        return Said(words=f"answer {len(said)}")

    return ScriptedModel(answer), answer


def words(client: PaidClient, meter: RunMeter | None = None) -> str:
    answer = client.ask(REQUEST, meter or UnlimitedMeter()).answer
    assert isinstance(answer, Said)
    return answer.words


@pytest.mark.promise("paid.kept")
def test_an_answer_that_was_paid_for_comes_back_after_a_kill_with_its_cost(tmp_path: Path) -> None:
    model, _ = counting()
    with sampling(("A-1", 1)):
        assert words(PaidClient(model, PaidAnswers(tmp_path / "paid.jsonl"))) == "answer 1"
    again, meter = PaidAnswers(tmp_path / "paid.jsonl"), UnlimitedMeter()
    with sampling(("A-1", 1)):
        assert words(PaidClient(model, again), meter) == "answer 1"
    assert len(model.requests) == 1
    assert [call.usage.input for call in meter.calls] == [100]
    assert again.spent().as_json()["calls"] == 1


@pytest.mark.promise("paid.repeats")
def test_neither_another_repeat_nor_another_case_nor_a_second_asking_takes_a_kept_answer(tmp_path: Path) -> None:
    model, _ = counting()
    client = PaidClient(model, PaidAnswers(tmp_path / "paid.jsonl"))
    heard = []
    for sample in (("A-1", 1), ("A-1", 2), ("A-2", 1)):
        with sampling(sample):
            heard += [words(client), words(client)]
    assert heard == [f"answer {number}" for number in range(1, 7)]


@pytest.mark.promise("paid.repeats")
def test_a_call_outside_a_sample_is_never_answered_from_what_is_kept(tmp_path: Path) -> None:
    model, _ = counting()
    client = PaidClient(model, PaidAnswers(tmp_path / "paid.jsonl"))
    assert [words(client), words(client)] == ["answer 1", "answer 2"]


@pytest.mark.promise("paid.kept")
def test_a_torn_last_line_is_asked_again_and_what_follows_is_whole(tmp_path: Path) -> None:
    model, _ = counting()
    file = tmp_path / "paid.jsonl"
    client = PaidClient(model, PaidAnswers(file))
    with sampling(("A-1", 1)):
        assert [words(client), words(client)] == ["answer 1", "answer 2"]
    file.write_bytes(file.read_bytes()[:-9])
    with sampling(("A-1", 1)):
        again = PaidClient(model, PaidAnswers(file))
        assert [words(again), words(again)] == ["answer 1", "answer 3"]
    assert len(PaidAnswers(file)) == 2


@pytest.mark.promise("paid.spent")
def test_a_failure_is_counted_for_its_cost_and_asked_anew_under_the_same_key(tmp_path: Path) -> None:
    outcomes: list[BaseModel | ModelFailure] = [
        ModelFailure(FailureKind.OVERLOADED, "facts"),
        Said(words="late"),
    ]
    model = ScriptedModel(lambda _: outcomes.pop(0))
    file = tmp_path / "paid.jsonl"
    client = PaidClient(model, PaidAnswers(file))
    with sampling(("A-1", 1)):
        with pytest.raises(ModelFailure):
            words(client)
        assert words(client) == "late"
    again = PaidAnswers(file)
    with sampling(("A-1", 1)):
        assert words(PaidClient(model, again)) == "late"
    spent = again.spent().as_json()
    assert (spent["calls"], spent["failed_calls"], spent["usd"]) == (2, 1, "0.02")
    assert spent["roles"][0]["input_tokens"] == 200


class Capped(UnlimitedMeter):
    """A budget that the first call passes."""

    def record(self, call: object) -> None:
        raise InterruptedRun("the budget is spent")


@pytest.mark.promise("paid.kept")
def test_an_answer_that_passes_a_cap_is_kept_before_the_cap_is_told(tmp_path: Path) -> None:
    model, _ = counting()
    file = tmp_path / "paid.jsonl"
    with sampling(("A-1", 1)), pytest.raises(InterruptedRun):
        words(PaidClient(model, PaidAnswers(file)), Capped())
    with sampling(("A-1", 1)):
        assert words(PaidClient(model, PaidAnswers(file))) == "answer 1"
    assert PaidAnswers(file).spent().rows[("facts", "scripted:one")][6] == Decimal("0.01")


@pytest.mark.promise("paid.repeats")
def test_whatever_is_sent_moves_the_key(tmp_path: Path) -> None:
    from dataclasses import replace

    from cda.contracts.model_client import ToolSpec
    from evals.paid import digest_of

    changed = [
        REQUEST,
        replace(REQUEST, static="Read well."),
        replace(REQUEST, role="grader"),
        replace(REQUEST, turns=(UserTurn('{"chart": "y"}'),)),
        replace(REQUEST, answer=None),
        replace(REQUEST, tools=(ToolSpec("t", "d", {}),)),
    ]
    assert len({digest_of(request, "m") for request in changed} | {digest_of(REQUEST, "n")}) == 7
