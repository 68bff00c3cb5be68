"""Whether the facts that an author read out of a chart bear on the clauses that are to decide. No rule is evaluated:
only the names that a criterion asks for are compared with the names that have a value."""

from collections.abc import Iterator, Mapping
from typing import Any

from evals.case_model import CoverageCase
from evals.corpus_view import CorpusView
from evals.validation.finding import Broken


def bearing_faults(case: CoverageCase, view: CorpusView) -> Iterator[Broken]:
    """A settled answer rests on a fact that its gold clause asks for, and a refusal leaves one of them open."""
    if case.labelled_facts is None or case.expected_gate == "HALT":
        return
    stated = {**case.labelled_facts, **(case.facts or {})}
    known = {name for name, value in stated.items() if value is not None}
    for clause_id in case.gold_clause_ids:
        criterion = view.clauses[clause_id].criterion if clause_id in view.clauses else None
        asked = frozenset(_asked(criterion or {}))
        if not asked:
            continue
        if case.expected_outcome != "INSUFFICIENT_EVIDENCE" and not asked & known:
            yield "facts_bear", f"{clause_id} asks for {_listed(asked)}, and the labelled facts give none of it"
        # Beyond a limit and outside a population a refusal rests on what is known; with several codes on another one.
        decided_by_known = {"limit", "population", "patch"} & set(criterion or {}) or len(case.procedure_codes) > 1
        if case.expected_gate == "REFUSE" and not decided_by_known and not _open(asked, stated):
            yield "facts_open", f"{clause_id} asks for {_listed(asked)}, and nothing of it is open; what is missing?"


def _open(asked: frozenset[str], stated: Mapping[str, Any]) -> bool:
    return any(stated.get(name) in (None, "suspected") for name in asked)


def _asked(criterion: Any) -> Iterator[str]:
    """The fact names in a criterion, wherever they stand."""
    if isinstance(criterion, Mapping):
        for key, value in criterion.items():
            if key in ("fact", "elapsed_since", "replace_limit") and isinstance(value, str):
                yield value
            else:
                yield from _asked(value)
    elif isinstance(criterion, list | tuple):
        for value in criterion:
            yield from _asked(value)


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))
