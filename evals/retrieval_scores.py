"""The scorecard of retrieval: recall, what must never be found, polarity, each for every leg.

recall_at_8: gold clauses among the first eight of the fused order / gold clauses, pooled. polarity_accuracy: pairs of a
gold clause and its rival of opposite polarity that the order puts right / pairs; both unfound is wrong.
filter_parity_differences: clauses on which a leg's filter and the slow oracle disagree, summed over queries.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any

from cda.contracts.policy_tools import ClauseView
from evals.case_model import RetrievalCase
from evals.legs import LEGS, K, Ranked
from evals.statistics import cluster_ratio, wilson

Pair = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Found:
    """One query and what it brought; `clauses` are those of the fused order."""

    case: RetrievalCase
    ranked: Ranked
    clauses: Sequence[ClauseView]

    @property
    def right(self) -> bool:
        """Every gold clause is among the first eight, nothing forbidden is, and no rival stands above its gold."""
        fused = set(self.ranked.legs["fused"][:K])
        ordered, pairs = polarity(self, "fused")
        return (
            set(self.case.gold_clause_ids) <= fused
            and fused.isdisjoint(self.case.never_clause_ids)
            and ordered == pairs
        )


def recall(found: Found, leg: str) -> Pair:
    """Gold clauses found within eight, and gold clauses."""
    gold = found.case.gold_clause_ids
    return float(sum(clause in found.ranked.legs[leg][:K] for clause in gold)), float(len(gold))


def polarity(found: Found, leg: str) -> Pair:
    """Pairs in the right order, and pairs."""
    place = {clause: rank for rank, clause in enumerate(found.ranked.legs[leg])}
    last = len(place)
    pairs = [(gold, rival) for gold in found.case.gold_clause_ids for rival in found.case.rival_clause_ids]
    right = sum(gold in place and place[gold] < place.get(rival, last) for gold, rival in pairs)
    return float(right), float(len(pairs))


def retrieval_scorecard(
    found: Sequence[Found], case_set: Mapping[str, Any], provenance: Mapping[str, Any]
) -> dict[str, Any]:
    """All figures. A share without observations is null."""
    figures: dict[str, Any] = {}
    intervals: dict[str, list[float]] = {}
    kinds = sorted({row.case.kind for row in found})
    measures: dict[str, Callable[[Found], Pair]] = {
        "recall_at_8": lambda row: recall(row, "fused"),
        "stale_rate": lambda row: (_count(row, _stale), _dated(row)),
        "wrong_payer_rate": lambda row: (_count(row, _wrong_payer), float(len(row.clauses))),
        "wrong_plan_rate": lambda row: (_count(row, _wrong_plan), float(len(row.clauses))),
    }
    for name, measure in measures.items():
        figures[name], intervals[name] = _share(found, measure)
    legs: dict[str, dict[str, Any]] = {}
    for leg in LEGS:
        row = legs.setdefault(leg, {})
        row["polarity_accuracy"], row["polarity_interval"] = _share(found, partial(polarity, leg=leg))
        row["empty"] = sum(not item.ranked.legs[leg] for item in found)
        for kind in kinds:
            chosen = [item for item in found if item.case.kind == kind]
            row[f"recall_at_8_{kind}"], row[f"{kind}_interval"] = _share(chosen, partial(recall, leg=leg))
    return {
        "suite": "retrieval",
        "case_set": dict(case_set),
        **figures,
        "polarity_accuracy": legs["fused"]["polarity_accuracy"],
        "paraphrase_recall_at_8": legs["fused"].get("recall_at_8_paraphrase"),
        "forbidden_hits": sum(len(set(item.ranked.legs["fused"]) & set(item.case.never_clause_ids)) for item in found),
        "filter_parity_differences": sum(item.ranked.filter_differences for item in found),
        "intervals": intervals,
        "legs": legs,
        "per_kind": {
            kind: {
                "count": sum(item.case.kind == kind for item in found),
                "missed": sorted(item.case.case_id for item in found if item.case.kind == kind and not item.right),
            }
            for kind in kinds
        },
        "cases": [
            {
                "case_id": item.case.case_id,
                "kind": item.case.kind,
                "right": item.right,
                "gold_ranks": {
                    leg: [_rank(item.ranked.legs[leg], gold) for gold in item.case.gold_clause_ids] for leg in LEGS
                },
            }
            for item in found
        ],
        "provenance": dict(provenance),
    }


def _share(found: Sequence[Found], measure: Callable[[Found], Pair]) -> tuple[float | None, list[float]]:
    """A pooled share and its interval: bootstrap over policies, Wilson over queries where the share is 0 or 1."""
    clusters: dict[str, Pair] = {}
    for row in found:
        over, under = measure(row)
        before = clusters.get(_family(row.case), (0.0, 0.0))
        clusters[_family(row.case)] = before[0] + over, before[1] + under
    over, under = (sum(pair[place] for pair in clusters.values()) for place in (0, 1))
    held = sum(measure(row)[1] > 0 for row in found)
    ends = wilson(held if over else 0, held) if over in (0, under) else cluster_ratio(clusters)
    return (round(over / under, 4) if under else None), [round(end, 4) for end in ends]


def _family(case: RetrievalCase) -> str:
    """The policy of the first gold clause, whatever its version."""
    return case.gold_clause_ids[0].split(".", 1)[0] if case.gold_clause_ids else case.case_id


def _count(row: Found, fault: Callable[[ClauseView, RetrievalCase], bool]) -> float:
    return float(sum(fault(clause, row.case) for clause in row.clauses))


def _dated(row: Found) -> float:
    return float(len(row.clauses)) if row.case.as_of_date else 0.0


def _stale(clause: ClauseView, case: RetrievalCase) -> bool:
    return case.as_of_date is not None and not clause.in_effect(date.fromisoformat(case.as_of_date))


def _wrong_payer(clause: ClauseView, case: RetrievalCase) -> bool:
    return case.payer_id is not None and clause.payer_id != case.payer_id


def _wrong_plan(clause: ClauseView, case: RetrievalCase) -> bool:
    return clause.plan_id is not None and clause.plan_id != case.plan_id


def _rank(ids: Sequence[str], clause_id: str) -> int | None:
    return ids.index(clause_id) + 1 if clause_id in ids else None
