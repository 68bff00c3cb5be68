from collections.abc import Callable
from pathlib import Path

import pytest
from eval_world import case, record

from cda.errors import InterruptedRun
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
        return record(asked.case.case_id, detail='{"narrative": "Größe ≥ 5 “quoted”"}')


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


def test_a_record_survives_its_line() -> None:
    one = record(stress=("ocr",), reasons=("confidence: low",), detail='{"narrative": "ü"}')
    assert Record.from_json(one.to_json()) == one
