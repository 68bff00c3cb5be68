"""The scorecard of coverage cases: two layers apart, retrieval and answer, each figure with its interval.

Definitions, each with the loophole that it closes:
- gold_clause_recall: gold clauses in hand / gold clauses, pooled. stale_retrieval_rate: clauses in hand that are not in
  effect on the case's day / clauses in hand, so that recall is not bought by taking everything.
- gold_cited_rate: cases whose gold clauses are all cited / cases with gold. governing_citation_rate: citations of
  clauses that exist, are in effect and govern the request / citations, so that gold is not bought by citing everything.
- auto_determine_rate: DETERMINE / cases; auto_determine_of_determinable: DETERMINE with the right outcome / cases that
  expect it. Never determining has no false auto-determination, and scores 0 here.
- with repeats every figure is over samples, and its interval over cases drawn again whole; `repeats` adds what one
  sample cannot show (`evals.repeats`).
- both_correct: outcome and gate as expected, and every reason the case asks for. Without a determination the outcome
  is INSUFFICIENT_EVIDENCE.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from evals.abstention import area_under, calibration, risk_coverage
from evals.case_files import CoverageSet, case_digest
from evals.record import Record
from evals.repeats import over_cases, repeat_figures
from evals.statistics import cluster_ratio, cluster_statistic, smallest_visible_flips, upper_bound_of_zero, wilson

Figures = dict[str, Any]
Counted = tuple[Callable[[Record], float], Callable[[Record], float]]
VOLATILE = frozenset({"p50_latency_s", "p95_latency_s", "latency_s", "run_id", "traces"})
"""Times and ids: all that differs between two runs of the same code over the same cases."""

# Each rate over cases: what counts as a hit, and among which cases.
RATES: Mapping[str, tuple[Callable[[Record], bool], Callable[[Record], bool]]] = {
    "gold_cited_rate": (lambda r: bool(r.gold_cited), lambda r: r.gold_cited is not None),
    "determination_accuracy": (lambda r: r.outcome_right, lambda _: True),
    "gate_correctness": (lambda r: r.gate_right, lambda _: True),
    "both_correct": (lambda r: r.correct, lambda _: True),
    "auto_determine_rate": (lambda r: r.gate == "DETERMINE", lambda _: True),
    "auto_determine_of_determinable": (
        lambda r: r.gate == "DETERMINE" and r.outcome_right,
        lambda r: r.expected_gate == "DETERMINE",
    ),
    "appropriate_refusal_rate": (lambda r: r.gate in ("REFUSE", "HALT"), lambda r: r.expected_gate == "REFUSE"),
}
# Each pooled share, over what the cases hold: numerator and denominator of one case.
POOLED: Mapping[str, Counted] = {
    "gold_clause_recall": (lambda r: r.gold_retrieved, lambda r: r.gold),
    "stale_retrieval_rate": (lambda r: r.stale_retrieved, lambda r: r.retrieved),
    "wrong_payer_rate": (lambda r: r.wrong_payer, lambda r: r.retrieved),
    "wrong_plan_rate": (lambda r: r.wrong_plan, lambda r: r.retrieved),
    "citation_faithfulness": (lambda r: r.faithful, lambda r: r.citations),
    "governing_citation_rate": (lambda r: r.governing, lambda r: r.citations),
}
COUNTS: Mapping[str, Callable[[Record], int]] = {
    "false_auto_determine": lambda r: r.false_auto,
    "unwarranted_auto_determine": lambda r: r.unwarranted_auto,
    "hallucinated_clauses": lambda r: r.hallucinated,
    "stale_citations": lambda r: r.stale_cited,
    "input_tokens": lambda r: r.input_tokens,
    "output_tokens": lambda r: r.output_tokens,
}


def coverage_scorecard(
    sets: Sequence[CoverageSet], records: Sequence[Record], provenance: Mapping[str, Any]
) -> Figures:
    """All figures of a run. A rate without observations is null, never 0 or 1."""
    rates, intervals = _rates(records)
    asked = {record.case_id for record in records}
    latency = sorted(record.latency_s for record in records)
    return {
        "suite": "coverage",
        "case_set": _case_set(sets),
        **rates,
        **{name: sum(map(count, records)) for name, count in COUNTS.items()},
        "usd": str(sum((Decimal(record.usd) for record in records), Decimal(0))),
        "p50_latency_s": _rank(latency, 0.50),
        "p95_latency_s": _rank(latency, 0.95),
        "intervals": intervals,
        "false_auto_upper_bound_95": round(upper_bound_of_zero(len(asked)), 4),
        "smallest_visible_difference": round(smallest_visible_flips() / max(len(asked), 1), 4),
        **({"repeats": repeat_figures(records)} if len(asked) < len(records) else {}),
        "per_set": _table(records, lambda record: [record.set]),
        "per_trap": _table(records, lambda record: [record.trap or "none"]),
        "per_stress": _table(records, lambda record: record.stress),
        "without_disputed": _row([record for record in records if not record.disputed]),
        "laws": _laws(sets, records),
        "abstention": _abstention(records),
        "calibration": calibration(records),
        "cases": [case_row(record) for record in records],
        "provenance": dict(provenance),
    }


def latency_intervals(records: Sequence[Record]) -> dict[str, list[float]]:
    """Cluster bootstrap of the latency quantiles. Apart from the scorecard's intervals, since times are no result."""
    values: dict[str, list[float]] = {}
    for record in records:
        values.setdefault(record.family, []).append(record.latency_s)
    ends = {
        "p50_latency_s": cluster_statistic(values, lambda found: float(np.quantile(found, 0.50))),
        "p95_latency_s": cluster_statistic(values, lambda found: float(np.quantile(found, 0.95))),
    }
    return {name: [round(low, 6), round(high, 6)] for name, (low, high) in ends.items()}


def stable(value: Any) -> Any:
    """The same without times and ids."""
    if isinstance(value, dict):
        return {key: stable(held) for key, held in value.items() if key not in VOLATILE}
    return [stable(held) for held in value] if isinstance(value, list) else value


def case_row(record: Record) -> Figures:
    """One case as the scorecard lists it."""
    return {
        "case_id": record.case_id,
        **({"repeat": record.repeat} if record.repeat > 1 else {}),
        "set": record.set,
        "trap": record.trap,
        "outcome": record.outcome,
        "gate": record.gate,
        "expected_outcome": record.expected_outcome,
        "expected_gate": record.expected_gate,
        "correct": record.correct,
        "false_auto": record.false_auto,
        "gold_cited": record.gold_cited,
        "confidence": record.confidence,
        "reasons": list(record.reasons),
        "unmet": list(record.unmet),
        "latency_s": record.latency_s,
        "run_id": record.run_id,
    }


def _case_set(sets: Sequence[CoverageSet]) -> Figures:
    every = [case for held in sets for case in held.cases]
    return {
        "count": len(every),
        "digest": case_digest(every),
        "sets": {held.name: {"count": len(held.cases), "digest": case_digest(held.cases)} for held in sets},
    }


def _rates(records: Sequence[Record]) -> tuple[Figures, dict[str, list[float]]]:
    figures: Figures = {}
    intervals: dict[str, list[float]] = {}
    for name, (top, bottom) in POOLED.items():
        clusters: dict[str, tuple[float, float]] = {}
        for record in records:
            over, under = clusters.get(record.family, (0.0, 0.0))
            clusters[record.family] = over + top(record), under + bottom(record)
        over = sum(pair[0] for pair in clusters.values())
        under = sum(pair[1] for pair in clusters.values())
        figures[name] = round(over / under, 4) if under else None
        # Drawing again from equal values has no width; the cases that hold any then stand for the observations.
        held = sum(bottom(record) > 0 for record in records)
        flat = over in (0, under)
        ends = wilson(held if over else 0, held) if flat else cluster_ratio(clusters)
        intervals[name] = [round(end, 4) for end in ends]
    for name, (hit, among) in RATES.items():
        chosen = [record for record in records if among(record)]
        hits = sum(map(hit, chosen))
        figures[name] = round(hits / len(chosen), 4) if chosen else None
        intervals[name] = [round(end, 4) for end in over_cases(chosen, hit)]
    return figures, intervals


def _row(records: Sequence[Record]) -> Figures:
    hits = sum(record.correct for record in records)
    return {
        "count": len(records),
        "both_correct": round(hits / len(records), 4) if records else None,
        "interval": [round(end, 4) for end in over_cases(records, lambda record: record.correct)],
        "outcome_correct": sum(record.outcome_right for record in records),
        "gate_correct": sum(record.gate_right for record in records),
        "false_auto_determine": sum(record.false_auto for record in records),
        "misses": sorted({record.case_id for record in records if not record.correct}),
    }


def _table(records: Sequence[Record], keys: Callable[[Record], Sequence[str]]) -> dict[str, Figures]:
    groups: dict[str, list[Record]] = {}
    for record in records:
        for key in keys(record):
            groups.setdefault(key, []).append(record)
    return {key: _row(groups[key]) for key in sorted(groups)}


def _laws(sets: Sequence[CoverageSet], records: Sequence[Record]) -> dict[str, Figures]:
    """Of each law: how many pairs, how many held, which broke."""
    answers = {record.sample: record for record in records}
    laws: dict[str, Figures] = {}
    pairs = [pair for held in sets for pair in held.pairs]
    for pair, repeat in ((pair, repeat) for pair in pairs for repeat in sorted({r.repeat for r in records})):
        base, twin = answers.get((pair.base.case_id, repeat)), answers.get((pair.twin.case_id, repeat))
        if base is None or twin is None:
            continue
        same = (base.outcome, base.gate) == (twin.outcome, twin.gate)
        holds = same if pair.unchanged else base.correct and twin.correct
        row = laws.setdefault(pair.law, {"pairs": 0, "held": 0, "broken": []})
        row["pairs"] += 1
        row["held"] += holds
        if not holds:
            row["broken"].append(pair.pair_id)
    return dict(sorted(laws.items()))


def _abstention(records: Sequence[Record]) -> Figures:
    points = risk_coverage(records)
    return {"curve": points, "area_under_risk_coverage": area_under(points)}


def _rank(ordered: Sequence[float], share: float) -> float | None:
    """The value at the rounded index, as the original has it."""
    return round(ordered[round(share * (len(ordered) - 1))], 6) if ordered else None
