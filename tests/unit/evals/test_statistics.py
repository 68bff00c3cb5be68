import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.statistics import (
    cluster_ratio,
    cluster_statistic,
    mcnemar,
    smallest_visible_flips,
    upper_bound_of_zero,
    wilson,
)


@pytest.mark.promise("evals.intervals")
@pytest.mark.parametrize(
    ("hits", "total", "low", "high"),
    [(22, 22, 0.851, 1.0), (152, 152, 0.975, 1.0), (0, 0, 0.0, 1.0), (5, 10, 0.237, 0.763)],
)
def test_wilson_gives_the_published_ends(hits: int, total: int, low: float, high: float) -> None:
    assert tuple(round(end, 3) for end in wilson(hits, total)) == (low, high)


@pytest.mark.promise("evals.intervals")
def test_no_bad_event_in_n_still_allows_about_three_in_n() -> None:
    assert round(upper_bound_of_zero(152), 3) == 0.02
    assert upper_bound_of_zero(0) == 1.0


@pytest.mark.promise("evals.mcnemar")
@pytest.mark.parametrize(
    ("first", "second", "p"), [(0, 0, 1.0), (6, 0, 0.03125), (5, 0, 0.0625), (1, 9, 0.021484), (4, 4, 1.0)]
)
def test_mcnemars_exact_p_is_the_binomial_tail(first: int, second: int, p: float) -> None:
    assert round(mcnemar(first, second), 6) == p


@pytest.mark.promise("evals.mcnemar")
@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_does_not_care_which_system_comes_first(first: int, second: int) -> None:
    assert mcnemar(first, second) == mcnemar(second, first)
    assert 0 < mcnemar(first, second) <= 1


@pytest.mark.promise("evals.mcnemar")
def test_five_flips_one_way_are_not_seen_and_six_are() -> None:
    assert smallest_visible_flips() == 6


@pytest.mark.promise("evals.intervals")
def test_a_cluster_bootstrap_is_the_same_whatever_the_order_of_clusters() -> None:
    clusters = {"a": (9.0, 10.0), "b": (5.0, 10.0), "c": (10.0, 10.0)}
    low, high = cluster_ratio(clusters)
    assert (low, high) == cluster_ratio(dict(reversed(clusters.items())))
    assert 0.5 <= low < 0.8 < high <= 1.0


@pytest.mark.promise("evals.intervals")
def test_one_cluster_says_nothing() -> None:
    assert cluster_ratio({"a": (9.0, 10.0)}) == (0.0, 1.0)


@pytest.mark.promise("evals.intervals")
def test_cases_of_one_family_widen_the_interval_against_independent_ones() -> None:
    together = {"a": (50.0, 50.0), "b": (0.0, 50.0)}
    apart = {str(place): (float(place < 50), 1.0) for place in range(100)}
    assert np.diff(cluster_ratio(together))[0] > np.diff(cluster_ratio(apart))[0]


@pytest.mark.promise("evals.intervals")
def test_a_quantile_is_drawn_over_families_too() -> None:
    low, high = cluster_statistic({"a": [1.0] * 9, "b": [3.0] * 9}, lambda found: float(np.median(found)))
    assert (low, high) == (1.0, 3.0)
    assert cluster_statistic({}, lambda found: float(found.mean())) == (0.0, 0.0)
