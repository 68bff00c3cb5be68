"""What several askings of one case show that one cannot: how often it is right, and whether it always is.

Repeats of a case are not independent, so intervals draw whole cases again. pass^k counts the cases that are right every
time: a case that fails one time in three hides in a mean and not there.
"""

from collections.abc import Callable, Sequence
from typing import Any

from evals.record import Record
from evals.statistics import cluster_ratio, wilson

Hit = Callable[[Record], bool]


def over_cases(records: Sequence[Record], hit: Hit) -> tuple[float, float]:
    """The 95 % interval of the share of records that are hits: Wilson's where each case was asked once, else the
    bootstrap over cases; where every draw would be equal, Wilson's over the cases."""
    clusters = _clusters(records, hit)
    hits = sum(map(hit, records))
    if len(clusters) == len(records):
        return wilson(hits, len(records))
    if hits in (0, len(records)):
        return wilson(len(clusters) if hits else 0, len(clusters))
    return cluster_ratio(clusters)


def repeat_figures(records: Sequence[Record]) -> dict[str, Any]:
    """Of repeated cases: k, the mean with its interval, pass^k and pass@k, the cases that were answered in more than
    one way, and false auto-determinations by case. Cases without all k repeats count for the mean alone."""
    by_case: dict[str, list[Record]] = {}
    for record in records:
        by_case.setdefault(record.case_id, []).append(record)
    k = max(map(len, by_case.values()))
    whole = [group for group in by_case.values() if len(group) == k]
    always = sum(all(record.correct for record in group) for group in whole)
    once = sum(any(record.correct for record in group) for group in whole)
    return {
        "k": k,
        "cases": len(by_case),
        "samples": len(records),
        "mean": round(sum(record.correct for record in records) / len(records), 4),
        "mean_interval": _rounded(over_cases(records, lambda record: record.correct)),
        "pass_hat_k": round(always / len(whole), 4),
        "pass_hat_k_interval": _rounded(wilson(always, len(whole))),
        "pass_at_k": round(once / len(whole), 4),
        "unstable": sorted(
            name for name, group in by_case.items() if len({(record.outcome, record.gate) for record in group}) > 1
        ),
        "false_auto_cases": sorted(name for name, group in by_case.items() if any(one.false_auto for one in group)),
        "failed_samples": sum(record.service_failed for record in records),
    }


def _clusters(records: Sequence[Record], hit: Hit) -> dict[str, tuple[float, float]]:
    clusters: dict[str, tuple[float, float]] = {}
    for record in records:
        over, under = clusters.get(record.case_id, (0.0, 0.0))
        clusters[record.case_id] = over + hit(record), under + 1
    return clusters


def _rounded(ends: tuple[float, float]) -> list[float]:
    return [round(end, 4) for end in ends]
