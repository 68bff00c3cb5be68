"""Four rules that make one order of the legs' hits. Every rule ends its ties the same way: score, best rank, id.

rrf          sum of 1 / (60 + rank) over the legs.
weighted     a fixed sum of squashed scores.
date_aware   rrf, and preferences (in effect, own code, rider, coverage criteria) worth less than one step of rank.
adaptive     a sum of min-max scores in which the dense leg weighs more the less of the query the lexical leg explains.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from backends.base import Hit
from cda.retrieval.legs import DEPTH, Leg, Legs

Rule = Literal["rrf", "weighted", "date_aware", "adaptive"]

RRF_K = 60
TITLE_WEIGHT = 0.2  # of the cosine of query and policy title, beside that of a passage which names its title too
# Share of the code leg in weighted and adaptive: over one half, so that whatever holds every code comes first.
CODE_WEIGHT = 0.51
# Dense weight by coverage, linear between: measured on real guidance documents, where wordings that share little with
# the passage lie below the low end and literal ones above the high end.
LOW_COVERAGE, HIGH_COVERAGE = 0.35, 0.60
DENSE_WHEN_LOW, DENSE_WHEN_HIGH = 0.95, 0.40
# All preferences together stay under the smallest step of rank there is, 1/(60+49) - 1/(60+50).
PREFERENCE_SPAN = 0.99 * (1 / (RRF_K + DEPTH - 1) - 1 / (RRF_K + DEPTH))
PREFERENCES = {"in_effect": 10 / 28, "own_code": 8 / 28, "rider": 6 / 28, "criteria_section": 4 / 28}


@dataclass(frozen=True, slots=True)
class Signals:
    """What the rules know beside the legs. coverage: share of the query's idf mass that the best lexical passage
    holds. titles: cosine of query and policy title by id. preferences: names of PREFERENCES that hold, by id."""

    coverage: float = 0.0
    titles: Mapping[str, float] = field(default_factory=dict)
    preferences: Mapping[str, frozenset[str]] = field(default_factory=dict)


class Fused(NamedTuple):
    """One candidate in its place, with its rank in each leg."""

    id: str
    score: float
    dense_rank: int | None
    lexical_rank: int | None
    code_rank: int | None


def fuse(rule: Rule, legs: Legs, signals: Signals) -> list[Fused]:
    """All candidates of the legs, best first. A leg that does not hold a candidate adds 0 for it."""
    scores = _RULES[rule](legs, signals)
    dense, lexical, codes = ({hit.id: hit.rank for hit in leg.hits} for leg in legs.all)
    best = codes | lexical | dense
    for ranks in (lexical, codes):
        for candidate, rank in ranks.items():
            best[candidate] = min(best[candidate], rank)
    ordered = sorted([(-round(score, 9), best[candidate], candidate) for candidate, score in scores.items()])
    return [Fused(i, -score, dense.get(i), lexical.get(i), codes.get(i)) for score, _, i in ordered]


def dense_weight(coverage: float) -> float:
    """The dense leg's weight in adaptive fusion for a coverage in [0, 1]."""
    position = (coverage - LOW_COVERAGE) / (HIGH_COVERAGE - LOW_COVERAGE)
    return DENSE_WHEN_LOW + (DENSE_WHEN_HIGH - DENSE_WHEN_LOW) * min(1.0, max(0.0, position))


def _candidates(legs: Legs) -> dict[str, float]:
    return dict.fromkeys([hit.id for leg in legs.all for hit in leg.hits], 0.0)


def _rrf(legs: Legs, signals: Signals) -> dict[str, float]:  # noqa: ARG001 - one shape for every rule
    scores = _candidates(legs)
    for leg in legs.all:
        for hit in leg.hits:
            scores[hit.id] += 1 / (RRF_K + hit.rank)
    return scores


def _date_aware(legs: Legs, signals: Signals) -> dict[str, float]:
    return {
        candidate: score
        + PREFERENCE_SPAN * sum(PREFERENCES[name] for name in sorted(signals.preferences.get(candidate, ())))
        for candidate, score in _rrf(legs, signals).items()
    }


def _weighted(legs: Legs, signals: Signals) -> dict[str, float]:  # noqa: ARG001 - one shape for every rule
    dense = {hit.id: max(0.0, hit.score) for hit in legs.dense.hits}
    lexical = {hit.id: hit.score / (1 + hit.score) for hit in legs.lexical.hits}
    return _blend(legs, dense, lexical, 0.5)


def _adaptive(legs: Legs, signals: Signals) -> dict[str, float]:
    dense = {hit.id: hit.score + TITLE_WEIGHT * signals.titles.get(hit.id, 0.0) for hit in legs.dense.hits}
    lexical = {hit.id: hit.score for hit in legs.lexical.hits}
    return _blend(legs, _min_max(dense), _min_max(lexical), dense_weight(signals.coverage))


def _blend(legs: Legs, dense: dict[str, float], lexical: dict[str, float], weight: float) -> dict[str, float]:
    """weight x dense + (1 - weight) x lexical, and the code leg's fixed share on top when it found anything."""
    share = CODE_WEIGHT if legs.codes.hits else 0.0
    codes = _by_top(legs.codes)
    scores: dict[str, float] = {}
    for candidate in _candidates(legs):
        blended = weight * dense.get(candidate, 0.0) + (1 - weight) * lexical.get(candidate, 0.0)
        scores[candidate] = (1 - share) * blended + share * codes.get(candidate, 0.0)
    return scores


def _min_max(scores: dict[str, float]) -> dict[str, float]:
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    return {name: (score - low) / (high - low) if high > low else 1.0 for name, score in scores.items()}


def _by_top(leg: Leg) -> dict[str, float]:
    top: Hit | None = leg.hits[0] if leg.hits else None
    return {hit.id: hit.score / top.score for hit in leg.hits} if top else {}


_RULES: dict[Rule, Callable[[Legs, Signals], dict[str, float]]] = {
    "rrf": _rrf,
    "weighted": _weighted,
    "date_aware": _date_aware,
    "adaptive": _adaptive,
}
