"""Records as a run would leave them, without a run."""

from collections.abc import Sequence
from typing import Any

from evals.case_files import CoverageSet
from evals.case_model import CoverageCase
from evals.record import Record

PROVENANCE: dict[str, Any] = {
    "corpus_digest": "c" * 64,
    "embedder": "tfidf",
    "backend": "local",
    "reranker": "adaptive",
    "lexical": "tantivy",
    "tokeniser": "words",
    "index_manifest": "m",
    "reasoner": "criteria",
    "model": None,
}
BASE: dict[str, Any] = {
    "case_id": "A-1",
    "set": "floor",
    "trap": "T1",
    "stress": (),
    "family": "P-1",
    "disputed": False,
    "expected_outcome": "COVERED",
    "expected_gate": "DETERMINE",
    "outcome": "COVERED",
    "gate": "DETERMINE",
    "reasons": (),
    "confidence": 0.95,
    "gold": 1,
    "gold_retrieved": 1,
    "gold_cited": True,
    "first_is_gold": True,
    "retrieved": 4,
    "stale_retrieved": 0,
    "wrong_payer": 0,
    "wrong_plan": 0,
    "citations": 2,
    "faithful": 2,
    "governing": 2,
    "hallucinated": 0,
    "stale_cited": 0,
    "unmet": (),
    "latency_s": 0.01,
    "input_tokens": 0,
    "output_tokens": 0,
    "usd": "0",
    "run_id": "r1",
    "detail": "{}",
}


def record(case_id: str = "A-1", **changes: Any) -> Record:
    """A right answer, but for the changes."""
    return Record(**{**BASE, "case_id": case_id, **changes})


def case(case_id: str = "A-1", **changes: Any) -> CoverageCase:
    """A case that `record` answers rightly."""
    held: dict[str, Any] = {
        "case_id": case_id,
        "trap": "T1",
        "payer_id": "P",
        "procedure_codes": ["A9276"],
        "as_of_date": "2024-03-15",
        "expected_outcome": "COVERED",
        "expected_gate": "DETERMINE",
        "gold_clause_ids": ["P-1.v1.C1"],
    }
    return CoverageCase.model_validate(held | changes)


def perfect(sets: Sequence[CoverageSet]) -> list[Record]:
    """The cases answered exactly as expected, gold clauses cited and nothing else."""
    records = []
    for held in sets:
        for one in held.cases:
            gold = len(one.gold_clause_ids)
            records.append(
                record(
                    one.case_id,
                    set=held.name,
                    trap=one.trap,
                    stress=one.stress,
                    family=(gold and one.gold_clause_ids[0].split(".")[0]) or "none",
                    expected_outcome=one.expected_outcome,
                    expected_gate=one.expected_gate,
                    outcome=one.expected_outcome,
                    gate=one.expected_gate,
                    gold=gold,
                    gold_retrieved=gold,
                    gold_cited=True if gold else None,
                    retrieved=gold,
                    citations=gold,
                    faithful=gold,
                    governing=gold,
                    first_is_gold=gold == 1,
                )
            )
    return records
