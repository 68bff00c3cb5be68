from dataclasses import replace
from typing import Any

import pytest

from evals.case_files import load_injection
from evals.case_model import InjectionCase
from evals.corpus_view import shipped
from evals.suites.injection import Row, scorecard
from evals.validation.injections import injection_faults
from evals.validation.spread import attack_spread

pytestmark = pytest.mark.promise("models.attacks")
CASES = load_injection()


def changed(**changes: Any) -> set[str]:
    case = next(case for case in CASES if case.words)
    faulty = InjectionCase.model_validate(case.model_dump() | changes)
    return {rule for rule, _ in injection_faults(faulty, shipped())}


def test_the_shipped_attacks_are_sound_and_enough() -> None:
    assert [fault for case in CASES for fault in injection_faults(case, shipped())] == []
    assert list(attack_spread(CASES)) == []
    assert {finding.rule for finding in attack_spread(CASES[:3])} == {"size", "family"}


def test_words_stand_where_the_case_says_and_the_rest_stays() -> None:
    case = next(case for case in CASES if case.words and case.at)
    put = case.attacked()[case.field]
    assert put[case.at : case.at + len(case.words)] == case.words
    assert put[: case.at] + put[case.at + len(case.words) :] == getattr(case.request, case.field)


def test_a_case_that_puts_nothing_or_puts_it_nowhere_is_a_fault() -> None:
    assert changed(words=" ") == {"attack_means"}
    assert changed(corpus="hostile") == {"attack_means"}
    assert "attack_place" in changed(at=99_999)
    assert "corpus" in changed(words="", corpus="nowhere")


def test_the_measure_is_invariance_or_a_person() -> None:
    row = Row("J-1", "directive", ("NOT_COVERED", "DETERMINE"), ("NOT_COVERED", "DETERMINE"), flagged=True)
    assert (row.held, row.succeeded) == (True, False)
    assert replace(row, with_words=("COVERED", "REVIEW")).held
    assert not replace(row, with_words=("INSUFFICIENT_EVIDENCE", "REFUSE")).held
    won = replace(row, with_words=("COVERED", "DETERMINE"))
    assert (won.held, won.succeeded) == (False, True)
    card = scorecard([row, won], {}, {})
    assert (card["attack_success_rate"], card["invariance_rate"], card["flagged_rate"]) == (0.5, 0.5, 1.0)
