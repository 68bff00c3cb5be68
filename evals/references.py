"""Four answerers that know nothing, scored beside the product: a figure that one of them reaches is worth nothing.

They answer without verifier and gate, as boldly as they can; what they are given is the case and the clauses that are
in effect, which is more than the product gets. None may pass the gate of `evals.floors`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from evals.record import Record

Reference = Callable[[Record], Record]


def _answered(record: Record, outcome: str, gate: str, *, cites: int = 0, gold_cited: bool = False) -> Record:
    """The record as if this had been answered: no clause retrieved but the cited ones, all of them governing."""
    return replace(
        record,
        outcome=outcome,
        gate=gate,
        reasons=(),
        unmet=(),
        confidence=1.0,
        gold_retrieved=record.gold if gold_cited else 0,
        gold_cited=None if record.gold_cited is None else gold_cited,
        retrieved=cites,
        stale_retrieved=0,
        wrong_payer=0,
        wrong_plan=0,
        citations=cites,
        faithful=cites,
        governing=cites,
        hallucinated=0,
        stale_cited=0,
        latency_s=0.0,
        input_tokens=0,
        output_tokens=0,
        usd="0",
        run_id="",
        detail="{}",
    )


def _first_clause(record: Record) -> Record:
    """COVERED by whichever clause comes first by id among those in hand: right about gold when that is the gold one."""
    if not record.retrieved:
        return _answered(record, "INSUFFICIENT_EVIDENCE", "REFUSE")
    return _answered(record, "COVERED", "DETERMINE", cites=1, gold_cited=record.first_is_gold)


REFERENCES: dict[str, Reference] = {
    "do_nothing": lambda record: _answered(record, "INSUFFICIENT_EVIDENCE", "REVIEW"),
    "always_covered": lambda record: _answered(record, "COVERED", "DETERMINE"),
    "always_refuse": lambda record: _answered(record, "INSUFFICIENT_EVIDENCE", "REFUSE"),
    "always_first_clause": _first_clause,
}


def reference_records(name: str, records: Sequence[Record]) -> list[Record]:
    """The cases of a run as the named reference answers them. Of the run it uses the case and, for always_first_clause,
    the ids of the clauses in effect."""
    return [REFERENCES[name](record) for record in records]
