"""Intervals, exact tests and the differences that a number of cases can show."""

from collections.abc import Callable, Mapping, Sequence
from math import comb, sqrt

import numpy as np
from numpy.typing import NDArray

Z95 = 1.959963984540054
RESAMPLES = 2_000
SEED = 20_240_315
ALPHA = 0.05


def wilson(hits: int, total: int, z: float = Z95) -> tuple[float, float]:
    """The Wilson score interval of a proportion (Wilson 1927), 95 % by default; (0, 1) without observations."""
    if total == 0:
        return 0.0, 1.0
    rate = hits / total
    centre = rate + z * z / (2 * total)
    spread = z * sqrt(rate * (1 - rate) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def upper_bound_of_zero(total: int, confidence: float = 0.95) -> float:
    """The largest rate under which no event in `total` trials still has probability 1 - confidence (one-sided exact;
    about 3/total for 95 %)."""
    return 1.0 if total == 0 else 1 - (1 - confidence) ** (1 / total)


def mcnemar(only_first: int, only_second: int) -> float:
    """The exact two-sided p of McNemar's test: `only_first` cases are right under the first system alone,
    `only_second` under the second alone. 1.0 when the two agree on every case."""
    discordant = only_first + only_second
    if discordant == 0:
        return 1.0
    tail = sum(comb(discordant, k) for k in range(min(only_first, only_second) + 1))
    return min(1.0, tail / 2.0 ** (discordant - 1))


def smallest_visible_flips(alpha: float = ALPHA) -> int:
    """How many cases must flip, all one way, before McNemar's exact test tells it from chance (6 at 5 %)."""
    flips = 1
    while mcnemar(flips, 0) >= alpha:
        flips += 1
    return flips


def cluster_ratio(
    clusters: Mapping[str, tuple[float, float]], resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[float, float]:
    """The 95 % percentile interval of a pooled ratio when whole clusters are drawn again with replacement.

    clusters: name to (sum of numerators, sum of denominators). Draws with an empty denominator are left out. With fewer
    than two clusters nothing can be said: (0, 1).
    """
    pairs = np.array([clusters[name] for name in sorted(clusters)], dtype=float)
    if len(pairs) < 2 or pairs[:, 1].sum() == 0:
        return 0.0, 1.0
    draws = np.random.default_rng(seed).multinomial(len(pairs), np.full(len(pairs), 1 / len(pairs)), size=resamples)
    sums = draws @ pairs
    ratios = sums[sums[:, 1] > 0, 0] / sums[sums[:, 1] > 0, 1]
    return _middle(ratios)


def cluster_statistic(
    clusters: Mapping[str, Sequence[float]],
    statistic: Callable[[NDArray[np.float64]], float],
    resamples: int = 400,
    seed: int = SEED,
) -> tuple[float, float]:
    """The same for any statistic of the pooled values (a quantile)."""
    groups = [np.asarray(clusters[name], dtype=float) for name in sorted(clusters) if len(clusters[name])]
    if len(groups) < 2:
        return (0.0, 0.0) if not groups else (float(groups[0].min()), float(groups[0].max()))
    chosen = np.random.default_rng(seed).integers(len(groups), size=(resamples, len(groups)))
    return _middle(np.array([statistic(np.concatenate([groups[i] for i in row])) for row in chosen]))


def _middle(values: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)
