"""Whether a pair differs in what its law speaks of and in nothing else."""

from collections.abc import Iterator
from datetime import timedelta

from evals.case_model import SAME_LAWS, CoverageCase, MetamorphicPair
from evals.validation.finding import Broken
from evals.validation.requests import day_of

_ASKED = ("payer_id", "plan_id", "procedure_codes", "diagnosis_codes", "question", "facts", "field_confidence")


def pair_faults(pair: MetamorphicPair) -> Iterator[Broken]:
    """Every rule that the pair breaks as a pair; its two cases are judged as cases besides."""
    base, twin = pair.base, pair.twin
    if base.case_id != f"{pair.pair_id}/base" or twin.case_id != f"{pair.pair_id}/twin":
        yield "pair_ids", f"its cases are {pair.pair_id}/base and {pair.pair_id}/twin"
    for name in _ASKED:
        if getattr(base, name) != getattr(twin, name):
            yield "pair_differs", f"{name} differs, which is no matter of the law {pair.law}; make them equal"
    if pair.law == "cross_boundary":
        yield from _boundary(base, twin)
        return
    if base.as_of_date != twin.as_of_date:
        yield "pair_differs", f"the days differ, which is no matter of the law {pair.law}; make them equal"
    if base.narrative == twin.narrative:
        yield "pair_equal", "the two charts are the same, so nothing is tested"
    if pair.law in SAME_LAWS and set(base.gold_clause_ids) != set(twin.gold_clause_ids):
        yield "pair_gold", "the gold clauses differ although the answer may not"
    yield from _narratives(pair)


def _boundary(base: CoverageCase, twin: CoverageCase) -> Iterator[Broken]:
    first, second = day_of(base.as_of_date), day_of(twin.as_of_date)
    if first is None or second is None or second - first != timedelta(days=1):
        yield "pair_days", "the days of a crossed boundary follow one another"
    if base.narrative != twin.narrative:
        yield "pair_differs", "across a boundary the chart stays the same"


def _narratives(pair: MetamorphicPair) -> Iterator[Broken]:
    base, twin = _sentences(pair.base.narrative), _sentences(pair.twin.narrative)
    if pair.law == "reorder_sentences" and sorted(base) != sorted(twin):
        yield "pair_order", "the twin has other sentences, not another order"
    if pair.law in ("irrelevant_history", "add_deciding_fact") and not set(base) < set(twin):
        yield "pair_adds", "the twin is the base with sentences added, and keeps every one of the base"


def _sentences(text: str) -> list[str]:
    return [sentence.rstrip(".") for sentence in text.split(". ")]
