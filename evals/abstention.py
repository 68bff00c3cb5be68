"""How well confidence tells right answers from wrong ones: the risk-coverage curve and calibration.

Answers of equal confidence are taken together, since no order among them is the system's own. An answer without a
determination was not given: it is outside the curve, as if its confidence were below every other.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from evals.record import Record

BINS = 10


def risk_coverage(records: Sequence[Record]) -> list[dict[str, float]]:
    """Points (threshold, coverage, risk), from the surest answers to all of them. Risk is the share of wrong outcomes
    among the answers at or above the threshold; coverage is their share of all cases."""
    ranked = _ranked(records)
    points: list[dict[str, float]] = []
    taken = wrong = 0
    for confidence, group in groupby(ranked, key=lambda pair: pair[0]):
        rights = [right for _, right in group]
        taken += len(rights)
        wrong += rights.count(False)
        points.append(
            {
                "threshold": round(confidence, 4),
                "coverage": round(taken / len(records), 4),
                "risk": round(wrong / taken, 4),
            }
        )
    return points


def area_under(points: Sequence[dict[str, float]]) -> float:
    """The area under the risk-coverage curve, as steps; 0 is best."""
    area = before = 0.0
    for point in points:
        area += (point["coverage"] - before) * point["risk"]
        before = point["coverage"]
    return round(area, 4)


def calibration(records: Sequence[Record]) -> dict[str, Any]:
    """Bins of confidence with the share of right outcomes in each, and their mean distance (expected calibration
    error), weighted by cases."""
    ranked = _ranked(records)
    bins: dict[int, list[tuple[float, bool]]] = {}
    for confidence, right in ranked:
        bins.setdefault(min(int(confidence * BINS), BINS - 1), []).append((confidence, right))
    rows = []
    distance = 0.0
    for place in sorted(bins):
        held = bins[place]
        mean = sum(confidence for confidence, _ in held) / len(held)
        share = sum(right for _, right in held) / len(held)
        distance += len(held) / len(ranked) * abs(mean - share)
        rows.append(
            {
                "from": place / BINS,
                "to": (place + 1) / BINS,
                "count": len(held),
                "confidence": round(mean, 4),
                "accuracy": round(share, 4),
            }
        )
    return {"bins": rows, "expected_calibration_error": round(distance, 4)}


def _ranked(records: Sequence[Record]) -> list[tuple[float, bool]]:
    held = [(record.confidence, record.outcome_right) for record in records if record.confidence is not None]
    return sorted(held, key=lambda pair: (-pair[0], pair[1]))
