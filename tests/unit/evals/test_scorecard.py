import pytest
from eval_world import PROVENANCE, case, perfect, record

from evals.abstention import area_under, calibration, risk_coverage
from evals.case_files import CoverageSet, load_coverage
from evals.case_model import MetamorphicPair
from evals.floors import failures, read_floors
from evals.record import Record
from evals.references import REFERENCES, reference_records
from evals.scorecard import coverage_scorecard, latency_intervals, stable


def scored(*records: Record) -> dict[str, object]:
    return coverage_scorecard([CoverageSet("floor", ())], records, PROVENANCE)


@pytest.mark.promise("evals.scorecard")
def test_figures_are_what_their_definitions_say() -> None:
    no_gold = {"gold": 0, "gold_retrieved": 0, "gold_cited": None}
    card = scored(
        record("A-1", retrieved=4, stale_retrieved=1),
        record("A-2", gate="REVIEW", gold=2, gold_retrieved=1, gold_cited=False, family="P-2"),
        record("A-3", expected_gate="REFUSE", expected_outcome="INSUFFICIENT_EVIDENCE", **no_gold),
        record(
            "A-4",
            expected_gate="REFUSE",
            expected_outcome="INSUFFICIENT_EVIDENCE",
            outcome="INSUFFICIENT_EVIDENCE",
            gate="HALT",
            confidence=None,
        ),
    )
    assert card["gold_clause_recall"] == 0.75
    assert card["stale_retrieval_rate"] == round(1 / 16, 4)
    assert card["gold_cited_rate"] == round(2 / 3, 4)
    assert card["determination_accuracy"] == 0.75
    assert card["gate_correctness"] == 0.25
    assert card["both_correct"] == 0.25
    assert card["auto_determine_rate"] == 0.5
    assert card["auto_determine_of_determinable"] == 0.5
    assert card["appropriate_refusal_rate"] == 0.5
    assert (card["false_auto_determine"], card["unwarranted_auto_determine"]) == (1, 1)


@pytest.mark.promise("evals.scorecard")
def test_a_reason_that_was_asked_for_and_not_given_makes_a_case_wrong() -> None:
    assert scored(record(unmet=("source_conflict",)))["both_correct"] == 0.0


@pytest.mark.promise("evals.scorecard")
def test_a_figure_without_observations_is_null_and_fails_no_floor() -> None:
    card = scored(record(gold=0, gold_cited=None, citations=0, faithful=0, governing=0))
    assert card["gold_clause_recall"] is None
    assert card["citation_faithfulness"] is None
    assert card["appropriate_refusal_rate"] is None
    assert failures(card) == []


@pytest.mark.promise("evals.loopholes")
def test_recall_bought_by_taking_everything_shows_as_stale_clauses() -> None:
    card = scored(record(retrieved=40, stale_retrieved=20))
    assert card["gold_clause_recall"] == 1.0
    assert any(failure.startswith("stale_retrieval_rate") for failure in failures(card))


@pytest.mark.promise("evals.loopholes")
def test_gold_bought_by_citing_everything_shows_as_citations_that_do_not_govern() -> None:
    card = scored(record(citations=20, faithful=20, governing=2))
    assert card["gold_cited_rate"] == 1.0
    assert any(failure.startswith("governing_citation_rate") for failure in failures(card))


@pytest.mark.promise("evals.loopholes")
def test_no_false_auto_determination_by_never_determining_fails_a_floor() -> None:
    card = scored(*[record(f"A-{n}", gate="REVIEW") for n in range(20)])
    assert card["false_auto_determine"] == 0
    assert any(failure.startswith("auto_determine_of_determinable is 0.0") for failure in failures(card))


@pytest.mark.promise("evals.floors")
def test_one_false_auto_determination_fails_whole_sets_and_parts_alike() -> None:
    card = scored(*[record(f"A-{n}") for n in range(99)], record("A-99", expected_outcome="NOT_COVERED"))
    for whole in (True, False):
        assert any(failure.startswith("false_auto_determine is 1") for failure in failures(card, whole=whole))


@pytest.mark.promise("evals.floors")
def test_a_part_of_a_set_is_not_held_to_rates() -> None:
    assert failures(scored(record(gate="REVIEW")), whole=False) == []


@pytest.mark.promise("evals.floors")
def test_sets_that_are_held_together_are_judged_together() -> None:
    right = [record(f"X-{n}", set="expanded") for n in range(96)]
    wrong = [record(f"W-{n}", set="floor", gate="REVIEW", outcome="COVERED") for n in range(4)]
    assert not any("floor + expanded" in failure for failure in failures(scored(*right, *wrong)))
    more = [record(f"V-{n}", set="floor", gate="REVIEW") for n in range(4)]
    assert any(
        "floor + expanded is 0.9231 (96 of 104)" in failure for failure in failures(scored(*right, *wrong, *more))
    )


@pytest.mark.promise("evals.floors")
def test_a_broken_law_is_named_with_its_pair() -> None:
    pair = MetamorphicPair(pair_id="M-1", law="synonyms", base=case("M-1/base"), twin=case("M-1/twin"))
    sets = [CoverageSet("metamorphic", (pair.base, pair.twin), (pair,))]
    card = coverage_scorecard(sets, [record("M-1/base"), record("M-1/twin", gate="REVIEW")], PROVENANCE)
    assert card["laws"] == {"synonyms": {"pairs": 1, "held": 0, "broken": ["M-1"]}}
    assert any("broken: M-1" in failure for failure in failures(card))
    both = coverage_scorecard(sets, [record("M-1/base", gate="REVIEW"), record("M-1/twin", gate="REVIEW")], PROVENANCE)
    assert both["laws"]["synonyms"]["held"] == 1


@pytest.mark.promise("evals.floors")
def test_the_floors_of_the_promise_are_the_floors_of_the_file() -> None:
    floors = read_floors()
    assert floors["max"]["false_auto_determine"] == 0
    assert floors["both_correct"]["floor + expanded"] == 0.95
    assert floors["both_correct"]["adversarial"] == 0.9
    assert floors["laws"] == 1.0


@pytest.mark.promise("evals.references")
@pytest.mark.parametrize("name", REFERENCES)
def test_no_answerer_that_knows_nothing_passes_the_gate(name: str) -> None:
    sets = load_coverage()
    records = perfect(sets)
    assert failures(coverage_scorecard(sets, records, PROVENANCE)) == []
    assert failures(coverage_scorecard(sets, reference_records(name, records), PROVENANCE)) != []


@pytest.mark.promise("evals.references")
@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("chosen", ["floor", "expanded", "adversarial", "medicare", "rounds"])
def test_none_passes_on_any_single_set_either(name: str, chosen: str) -> None:
    sets = load_coverage([chosen])
    assert failures(coverage_scorecard(sets, reference_records(name, perfect(sets)), PROVENANCE)) != []


@pytest.mark.promise("evals.abstention")
def test_answers_of_equal_confidence_are_one_point_of_the_curve() -> None:
    rows = [
        record("A", confidence=0.9),
        record("B", confidence=0.9, outcome="NOT_COVERED"),
        record("C", confidence=0.5),
    ]
    points = risk_coverage([*rows, record("D", confidence=None)])
    assert [(p["coverage"], p["risk"]) for p in points] == [(0.5, 0.5), (0.75, 0.3333)]
    assert area_under(points) == 0.3333


@pytest.mark.promise("evals.abstention")
def test_calibration_weighs_the_bins_by_cases() -> None:
    rows = [record(str(n), confidence=0.95) for n in range(3)] + [record("w", confidence=0.95, outcome="NOT_COVERED")]
    found = calibration(rows)
    assert found["expected_calibration_error"] == 0.2
    assert [row["count"] for row in found["bins"]] == [4]


@pytest.mark.promise("evals.deterministic")
def test_times_and_ids_are_all_that_is_left_out_of_the_stable_form() -> None:
    one, two = scored(record(latency_s=0.5, run_id="x")), scored(record())
    assert one != two
    assert stable(one) == stable(two)
    assert stable(scored(record(outcome="NOT_COVERED"))) != stable(two)


@pytest.mark.promise("evals.intervals")
def test_a_share_of_one_has_an_interval_that_is_not_a_point() -> None:
    card = scored(*[record(f"A-{n}", family=f"P-{n % 3}") for n in range(22)])
    low, high = card["intervals"]["citation_faithfulness"]  # type: ignore[index]
    assert (low, high) == (0.8513, 1.0)
    assert set(latency_intervals([record()])) == {"p50_latency_s", "p95_latency_s"}
