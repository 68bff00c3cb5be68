import pytest
from eval_world import PROVENANCE, case, record

from evals.case_files import CoverageSet
from evals.case_model import MetamorphicPair
from evals.record import Record
from evals.repeats import over_cases, repeat_figures
from evals.scorecard import coverage_scorecard
from evals.statistics import wilson

WRONG = {"outcome": "NOT_COVERED", "gate": "REVIEW"}


def samples(rights: dict[str, str]) -> list[Record]:
    """A case for each entry, a repeat for each letter: r right, w wrong."""
    return [
        record(name, repeat=place, **({} if letter == "r" else WRONG))
        for name, letters in rights.items()
        for place, letter in enumerate(letters, 1)
    ]


@pytest.mark.promise("repeats.figures")
def test_a_case_that_fails_one_time_in_three_hides_in_the_mean_and_not_in_pass_hat_k() -> None:
    figures = repeat_figures(samples({"A": "rrr", "B": "rrw", "C": "www", "D": "rrr"}))
    assert figures["k"] == 3
    assert figures["mean"] == round(8 / 12, 4)
    assert figures["pass_hat_k"] == 0.5
    assert figures["pass_at_k"] == 0.75
    assert figures["unstable"] == ["B"]
    low, high = figures["mean_interval"]
    assert low <= figures["mean"] <= high


@pytest.mark.promise("repeats.interval")
def test_repeats_of_a_case_do_not_narrow_the_interval_as_new_cases_would() -> None:
    once = {f"A-{n}": "r" if n % 2 else "w" for n in range(40)}
    repeated = samples({name: letter * 5 for name, letter in once.items()})
    low, high = over_cases(repeated, lambda one: one.correct)
    plain_low, plain_high = over_cases(samples(once), lambda one: one.correct)
    naive_low, naive_high = wilson(100, 200)
    assert high - low > 1.5 * (naive_high - naive_low)
    assert high - low == pytest.approx(plain_high - plain_low, abs=0.04)


@pytest.mark.promise("repeats.interval")
def test_all_right_every_time_is_as_certain_as_the_number_of_cases_allows() -> None:
    assert over_cases(samples({"A": "rrr", "B": "rrr"}), lambda one: one.correct) == wilson(2, 2)


@pytest.mark.promise("repeats.figures")
def test_the_scorecard_has_repeats_only_where_there_are_any_and_bounds_by_cases() -> None:
    held = [CoverageSet("floor", (case("A"), case("B")))]
    plain = coverage_scorecard(held, samples({"A": "r", "B": "r"}), PROVENANCE)
    assert "repeats" not in plain
    repeated = coverage_scorecard(held, samples({"A": "rr", "B": "rw"}), PROVENANCE)
    assert repeated["repeats"]["k"] == 2
    assert repeated["both_correct"] == 0.75
    assert repeated["false_auto_upper_bound_95"] == plain["false_auto_upper_bound_95"]
    assert [row.get("repeat", 1) for row in repeated["cases"]] == [1, 2, 1, 2]


@pytest.mark.promise("repeats.figures")
def test_a_failed_call_is_an_outcome_and_stays_in_the_denominator() -> None:
    failed = record("B", repeat=1, gate="REVIEW", outcome="INSUFFICIENT_EVIDENCE", reasons=("model_timed_out: 9 s",))
    refused = record("B", repeat=2, gate="REVIEW", outcome="INSUFFICIENT_EVIDENCE", reasons=("model_refused: bio",))
    figures = repeat_figures([*samples({"A": "rr"}), failed, refused])
    assert figures["mean"] == 0.5
    assert (figures["samples"], figures["failed_samples"]) == (4, 1)


@pytest.mark.promise("repeats.figures")
def test_a_law_is_held_to_each_repeat_of_its_pair() -> None:
    base, twin = case("P/base"), case("P/twin")
    pair = MetamorphicPair(pair_id="P", law="synonyms", base=base, twin=twin)
    held = [CoverageSet("metamorphic", (base, twin), (pair,))]
    records = [record("P/base"), record("P/twin"), record("P/base", repeat=2), record("P/twin", repeat=2, **WRONG)]
    law = coverage_scorecard(held, records, PROVENANCE)["laws"]["synonyms"]
    assert (law["pairs"], law["held"], law["broken"]) == (2, 1, ["P"])
