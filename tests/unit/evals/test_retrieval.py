from pathlib import Path

import pytest
from coverage_world import settings

from evals.case_model import RetrievalCase
from evals.legs import LEGS, Ranked
from evals.retrieval_scores import Found, polarity, recall, retrieval_scorecard
from evals.suite import Options
from evals.suites.retrieval import NEVER, prepare

pytestmark = pytest.mark.promise("evals.retrieval-suite")


def found(fused: tuple[str, ...], *, differences: int = 0, **changes: object) -> Found:
    case = RetrievalCase.model_validate(
        {"case_id": "R-1", "kind": "polarity", "query": "q", "gold_clause_ids": ["G"], "rival_clause_ids": ["N"]}
        | changes
    )
    return Found(case, Ranked(dict.fromkeys(LEGS, fused), differences), ())


@pytest.mark.parametrize(
    ("fused", "right"), [(("G", "N"), 1.0), (("G",), 1.0), (("N", "G"), 0.0), (("N",), 0.0), ((), 0.0)]
)
def test_a_pair_is_right_when_gold_stands_above_its_rival(fused: tuple[str, ...], right: float) -> None:
    assert polarity(found(fused), "fused") == (right, 1.0)


def test_recall_counts_the_first_eight_alone() -> None:
    others = tuple(f"X{n}" for n in range(8))
    assert recall(found(("G", *others)), "dense") == (1.0, 1.0)
    assert recall(found((*others, "G")), "dense") == (0.0, 1.0)


def test_a_forbidden_hit_and_a_filter_difference_are_counted() -> None:
    card = retrieval_scorecard([found(("G", "OLD"), differences=2, never_clause_ids=["OLD"])], {}, {})
    assert (card["forbidden_hits"], card["filter_parity_differences"]) == (1, 2)
    assert card["cases"][0]["right"] is False


def test_the_shipped_queries_find_nothing_that_must_never_be_found(built_home: Path) -> None:
    run = prepare(Options(settings(built_home))).run(lambda _: None)
    assert {name: run.scorecard[name] for name in NEVER} == dict.fromkeys(NEVER, 0)
    assert set(run.scorecard["legs"]) == set(LEGS)
    assert list(run.failures) == []
