"""Fusion rules, on legs written by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.base import Hit
from cda.retrieval.fusion import (
    DENSE_WHEN_HIGH,
    DENSE_WHEN_LOW,
    PREFERENCE_SPAN,
    PREFERENCES,
    Rule,
    Signals,
    dense_weight,
    fuse,
)
from cda.retrieval.legs import DEPTH, Leg, Legs

RULES: list[Rule] = ["rrf", "weighted", "date_aware", "adaptive"]


def leg(*names: str, scores: list[float] | None = None) -> Leg:
    given_scores = scores or [1 - i / 100 for i in range(len(names))]
    return Leg(hits=tuple(Hit(n, s, rank, "h") for rank, (n, s) in enumerate(zip(names, given_scores, strict=True), 1)))


def order(rule: Rule, legs: Legs, signals: Signals | None = None) -> list[str]:
    return [item.id for item in fuse(rule, legs, signals or Signals())]


@pytest.mark.promise("retrieval.fusion_order")
def test_rrf_adds_reciprocal_ranks_from_one() -> None:
    fused = {item.id: item for item in fuse("rrf", Legs(leg("a", "b"), leg("b"), Leg()), Signals())}
    assert fused["a"].score == pytest.approx(1 / 61)
    assert fused["b"].score == pytest.approx(1 / 62 + 1 / 61)
    assert fused["b"][2:] == (2, 1, None)


@pytest.mark.promise("retrieval.fusion_order")
@pytest.mark.parametrize("rule", RULES)
def test_equal_scores_go_by_best_rank_and_then_by_id(rule: Rule) -> None:
    legs = Legs(leg("b", "a", scores=[0.5, 0.5]), leg("a", "b", scores=[2.0, 2.0]), Leg())
    assert order(rule, legs) == ["a", "b"]


@pytest.mark.promise("retrieval.fusion_order")
@pytest.mark.parametrize("rule", RULES)
def test_one_leg_alone_keeps_its_order(rule: Rule) -> None:
    names = [f"id-{i}" for i in range(DEPTH)]
    for legs in (Legs(dense=leg(*names)), Legs(lexical=leg(*names)), Legs(codes=leg(*names))):
        assert order(rule, legs) == names
    assert order(rule, Legs(Leg("unavailable"), Leg("empty_query"), Leg())) == []


@pytest.mark.promise("retrieval.bounded")
@given(st.integers(1, DEPTH - 1))
def test_all_preferences_together_do_not_outweigh_one_step_of_rank(rank: int) -> None:
    names = [f"id-{i:02}" for i in range(DEPTH)]
    worse = names[rank]
    signals = Signals(preferences={worse: frozenset(PREFERENCES)})
    assert order("date_aware", Legs(leg(*names)), signals) == names


@pytest.mark.promise("retrieval.bounded")
def test_preferences_decide_between_equals() -> None:
    legs = Legs(leg("a"), leg("b"), Leg())
    assert order("date_aware", legs, Signals(preferences={"b": frozenset({"rider"})})) == ["b", "a"]
    assert sum(PREFERENCES.values()) == pytest.approx(1.0)
    assert PREFERENCE_SPAN < 1 / 109 - 1 / 110


@pytest.mark.promise("retrieval.adaptive")
def test_the_dense_weight_falls_with_coverage() -> None:
    weights = [dense_weight(i / 20) for i in range(21)]
    assert weights[0] == weights[7] == DENSE_WHEN_LOW
    assert weights[12] == weights[20] == DENSE_WHEN_HIGH
    assert weights == sorted(weights, reverse=True)


@pytest.mark.promise("retrieval.adaptive")
def test_coverage_decides_which_leg_leads() -> None:
    legs = Legs(leg("meaning", "x", "words"), leg("words", "y", "meaning"), Leg())
    assert order("adaptive", legs, Signals(coverage=0.1))[0] == "meaning"
    assert order("adaptive", legs, Signals(coverage=0.9))[0] == "words"


@pytest.mark.promise("retrieval.adaptive")
def test_a_title_near_the_query_lifts_its_clause() -> None:
    legs = Legs(leg("a", "b", "c", scores=[0.50, 0.45, 0.1]), Leg(), Leg())
    assert order("adaptive", legs, Signals(titles={"b": 0.9, "a": 0.1})) == ["b", "a", "c"]


@pytest.mark.promise("retrieval.code_leg")
@pytest.mark.parametrize("rule", RULES)
def test_among_equals_the_clause_that_holds_the_code_comes_first(rule: Rule) -> None:
    legs = Legs(leg("a", "b", scores=[0.5, 0.5]), leg("b", "a", scores=[2.0, 2.0]), leg("b"))
    assert order(rule, legs)[0] == "b"
