"""Intervals and exact bounds for the figures the evals print."""

from math import sqrt

Z95 = 1.959963984540054


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
