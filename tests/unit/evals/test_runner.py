import time
from collections.abc import Callable
from pathlib import Path

import pytest
from eval_world import case, record

from cda.errors import InterruptedRun, UnavailableError, UsageError
from cda.settings import Settings
from evals.asking import Asked
from evals.journal import Journal
from evals.record import Record
from evals.runner import run_cases

pytestmark = pytest.mark.promise("evals.resume")
CASES = [Asked("floor", case(f"A-{n}")) for n in range(10)]


class Answering:
    """Answers rightly and counts; `before` may stop it."""

    def __init__(self, before: Callable[[str], None] = lambda _: None) -> None:
        self.asked: list[str] = []
        self._before = before

    def answer(self, asked: Asked) -> Record:
        self._before(asked.case.case_id)
        self.asked.append(asked.case.case_id)
        return record(asked.case.case_id, repeat=asked.repeat, detail='{"narrative": "Größe ≥ 5 “quoted”"}')


def journal(home: Path, digest: str = "d") -> Journal:
    return Journal(Settings(_env_file=None, CDA_HOME=home), digest, {"": "c"})  # type: ignore[call-arg]


def answered(asker: Answering, held: Journal) -> list[Record]:
    return run_cases(CASES, asker=asker, worlds={}, journal=held, concurrency=1, say=lambda _: None)  # type: ignore[arg-type]


def stop_at(name: str) -> Callable[[str], None]:
    def stop(case_id: str) -> None:
        if case_id == name:
            raise KeyboardInterrupt

    return stop


def test_records_come_in_the_order_of_the_cases(tmp_path: Path) -> None:
    assert [found.case_id for found in answered(Answering(), journal(tmp_path))] == [f"A-{n}" for n in range(10)]


def test_a_stopped_run_goes_on_where_it_was_and_gives_the_same(tmp_path: Path) -> None:
    with pytest.raises(InterruptedRun, match="stopped after 4 of 10 cases; the same command goes on"):
        answered(Answering(stop_at("A-6")), journal(tmp_path))
    second = Answering()
    whole = answered(second, journal(tmp_path))
    assert second.asked == [f"A-{n}" for n in range(4, 10)]
    assert whole == answered(Answering(), journal(tmp_path / "other"))


def test_a_torn_last_line_is_answered_again(tmp_path: Path) -> None:
    with pytest.raises(InterruptedRun):
        answered(Answering(stop_at("A-6")), journal(tmp_path))
    file = journal(tmp_path).folder / "records.jsonl"
    file.write_bytes(file.read_bytes()[:-7])
    second = Answering()
    assert len(answered(second, journal(tmp_path))) == 10
    assert second.asked == [f"A-{n}" for n in range(3, 10)]


def test_a_finished_run_answers_nothing_for_the_next(tmp_path: Path) -> None:
    answered(Answering(), journal(tmp_path))
    second = Answering()
    answered(second, journal(tmp_path))
    assert len(second.asked) == 10


def test_other_cases_or_another_corpus_are_another_journal(tmp_path: Path) -> None:
    other = Journal(Settings(_env_file=None, CDA_HOME=tmp_path), "d", {"": "c2"})  # type: ignore[call-arg]
    assert len({journal(tmp_path).folder, journal(tmp_path, "d2").folder, other.folder}) == 3


@pytest.mark.promise("repeats.resume")
def test_each_repeat_is_asked_and_a_stopped_run_goes_on_with_those_that_are_missing(tmp_path: Path) -> None:
    asked = [Asked("floor", case("A-1"), repeat) for repeat in (1, 2, 3)]

    def run(asker: Answering, samples: list[Asked]) -> list[Record]:
        return run_cases(
            samples,
            asker=asker,  # type: ignore[arg-type]
            worlds={},
            journal=journal(tmp_path),
            concurrency=2,
            say=lambda _: None,
            threads=True,
        )

    calls: list[str] = []

    def stop_at_third(case_id: str) -> None:
        calls.append(case_id)
        if len(calls) == 3:
            records, until = journal(tmp_path).folder / "records.jsonl", time.monotonic() + 30
            while not records.exists() or records.read_bytes().count(b"\n") < 2:
                assert time.monotonic() < until
                time.sleep(0.01)
            raise KeyboardInterrupt

    with pytest.raises(InterruptedRun):
        run(Answering(stop_at_third), asked)
    second = Answering()
    assert [one.sample for one in run(second, asked)] == [("A-1", 1), ("A-1", 2), ("A-1", 3)]
    assert len(second.asked) == 1


class Failing(Answering):
    """The service fails the named cases."""

    def __init__(self, names: tuple[str, ...], reason: str = "model_overloaded: 529 (facts)") -> None:
        super().__init__()
        self._names, self._reason = names, reason

    def answer(self, asked: Asked) -> Record:
        one = super().answer(asked)
        return record(one.case_id, gate="REVIEW", reasons=(self._reason,)) if one.case_id in self._names else one


@pytest.mark.promise("repeats.retry")
def test_only_samples_that_the_service_failed_are_asked_again(tmp_path: Path) -> None:
    first = answered(Failing(("A-2", "A-7")), journal(tmp_path))
    assert sum(one.service_failed for one in first) == 2
    held = journal(tmp_path)
    held.reopen()
    second = Answering()
    whole = answered(second, held)
    assert second.asked == ["A-2", "A-7"]
    assert len(whole) == 10
    assert not any(one.service_failed for one in whole)


@pytest.mark.promise("repeats.retry")
def test_what_the_model_did_stands_and_without_a_finished_run_there_is_nothing_to_retry(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run of these cases"):
        journal(tmp_path).reopen()
    answered(Failing(("A-2",), "model_refused: bio (facts)"), journal(tmp_path))
    held = journal(tmp_path)
    held.reopen()
    second = Answering()
    answered(second, held)
    assert second.asked == []


@pytest.mark.promise("repeats.closed")
def test_a_service_that_lets_nobody_in_ends_the_run_and_scores_nothing(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="model_unauthorised"):
        answered(Failing(("A-0",), "model_unauthorised: the key is refused (facts)"), journal(tmp_path))
    assert not (journal(tmp_path).folder / "records.jsonl").exists()


@pytest.mark.promise("paid.kept")
def test_paid_answers_without_a_record_are_no_new_run_and_go_aside_with_a_finished_one(tmp_path: Path) -> None:
    held = journal(tmp_path)
    held.resume([])
    held.paid.write_text("paid\n", encoding="utf-8")
    journal(tmp_path).resume([])
    assert held.paid.exists()
    answered(Answering(), journal(tmp_path))
    assert not held.paid.exists()
    journal(tmp_path).resume([])
    assert not (held.folder / "paid.finished.jsonl").exists()


def test_a_record_survives_its_line() -> None:
    one = record(repeat=3, stress=("ocr",), reasons=("confidence: low",), detail='{"narrative": "ü"}')
    assert Record.from_json(one.to_json()) == one
