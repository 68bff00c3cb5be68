"""Pairs of charts and the law between their answers: the `metamorphic` set, generated from authored seeds.

Every statement of a seed stands by itself, so that any order says the same. Labels are the seeds' own.
"""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path

import yaml
from pydantic import model_validator

from evals.case_model import CaseModel, CoverageCase, GateState, Law, MetamorphicPair, Outcome
from evals.expand import authored, yaml_entries

LAWS = Path(__file__).parent / "law_seeds"


class Label(CaseModel):
    """What is expected of a chart."""

    outcome: Outcome
    gate: GateState
    gold: tuple[str, ...]
    reasons: tuple[str, ...] = ()


class Rewording(CaseModel):
    """A statement of the seed, and another that says the same."""

    of: str
    says: str


class Boundary(CaseModel):
    """A last day with its label, and the label of the day after it."""

    as_of: date
    answer: Label
    next: Label


class Missing(CaseModel):
    """The label while a statement is missing."""

    statement: str
    answer: Label


class Seed(CaseModel):
    """A chart in statements, its label, and what may be done to it. beside: sentences about somebody else, or about
    what the payer asks, which are no finding of the patient's."""

    seed: str
    payer_id: str
    plan_id: str
    code: str
    dx: tuple[str, ...]
    as_of: date
    statements: tuple[str, ...]
    answer: Label
    synonyms: tuple[Rewording, ...] = ()
    units: tuple[Rewording, ...] = ()
    beside: tuple[str, ...] = ()
    boundary: tuple[Boundary, ...] = ()
    without: tuple[Missing, ...] = ()

    @model_validator(mode="after")
    def _speaks_of_its_own_statements(self) -> "Seed":
        named = [*(word.of for word in (*self.synonyms, *self.units)), *(gap.statement for gap in self.without)]
        for sentence in named:
            if sentence not in self.statements:
                raise ValueError(f"{sentence!r} is none of the seed's statements")
        return self


def read_seeds(folder: Path = LAWS) -> tuple[Seed, ...]:
    """Every seed, in its file's order. Raises UsageError naming file, seed and field."""
    file = folder / "seeds.yaml"
    return tuple(authored(Seed, entry, file, str(entry.get("seed", n))) for n, entry in enumerate(yaml_entries(file)))


def read_history(folder: Path = LAWS) -> tuple[str, ...]:
    """Sentences that bear on no criterion."""
    return tuple(yaml.safe_load((folder / "history.yaml").read_text(encoding="utf-8")))


def metamorphic_pairs(seeds: Sequence[Seed], history: Sequence[str]) -> tuple[MetamorphicPair, ...]:
    """The pairs of the seeds, in their order."""
    return tuple(pair for place, seed in enumerate(seeds) for pair in _pairs(seed, place, history))


def _pairs(seed: Seed, place: int, history: Sequence[str]) -> Iterator[MetamorphicPair]:
    whole, told = seed.answer, seed.statements
    for turn, order in enumerate(_orders(told), 1):
        yield _pair(seed, "reorder_sentences", turn, (told, whole, seed.as_of), (order, whole, seed.as_of))
    others = ((told[0], sentence, *told[1:]) for sentence in seed.beside)
    for turn, more in enumerate((*_histories(told, place, history), *others), 1):
        yield _pair(seed, "irrelevant_history", turn, (told, whole, seed.as_of), (more, whole, seed.as_of))
    rewordings: tuple[tuple[Law, tuple[Rewording, ...]], ...] = (
        ("synonyms", seed.synonyms),
        ("change_units", seed.units),
    )
    for law, words in rewordings:
        for turn, word in enumerate(words, 1):
            other = tuple(word.says if sentence == word.of else sentence for sentence in told)
            yield _pair(seed, law, turn, (told, whole, seed.as_of), (other, whole, seed.as_of))
    for turn, edge in enumerate(seed.boundary, 1):
        after = edge.as_of + timedelta(days=1)
        yield _pair(seed, "cross_boundary", turn, (told, edge.answer, edge.as_of), (told, edge.next, after))
    for turn, gap in enumerate(seed.without, 1):
        less = tuple(sentence for sentence in told if sentence != gap.statement)
        yield _pair(seed, "add_deciding_fact", turn, (less, gap.answer, seed.as_of), (told, whole, seed.as_of))


def _orders(told: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield tuple(reversed(told))
    if len(told) > 2:
        yield (*told[1:], told[0])


def _histories(told: tuple[str, ...], place: int, history: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Around the chart, and inside it; each seed takes other sentences."""
    first, second, third = (history[(3 * place + step) % len(history)] for step in range(3))
    yield (first, *told, second)
    yield (told[0], third, *told[1:])


def _pair(
    seed: Seed,
    law: Law,
    turn: int,
    base: tuple[tuple[str, ...], Label, date],
    twin: tuple[tuple[str, ...], Label, date],
) -> MetamorphicPair:
    pair_id = f"M-{seed.seed}-{law}-{turn}"
    return MetamorphicPair(
        pair_id=pair_id, law=law, base=_case(seed, f"{pair_id}/base", *base), twin=_case(seed, f"{pair_id}/twin", *twin)
    )


def _case(seed: Seed, case_id: str, told: tuple[str, ...], label: Label, as_of: date) -> CoverageCase:
    return CoverageCase(
        case_id=case_id,
        trap="metamorphic",
        payer_id=seed.payer_id,
        plan_id=seed.plan_id,
        procedure_codes=(seed.code,),
        diagnosis_codes=seed.dx,
        as_of_date=as_of.isoformat(),
        narrative=" ".join(told),
        question=f"Is {seed.code} covered?",
        expected_outcome=label.outcome,
        expected_gate=label.gate,
        gold_clause_ids=label.gold,
        expected_reasons=label.reasons,
        origin=seed.seed,
    )
