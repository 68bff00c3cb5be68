"""Cases that ask the same twice: equal ids, equal requests, and equal probes in other words."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from evals.case_model import CoverageCase
from evals.validation.finding import Finding

Placed = tuple[str, CoverageCase]
"""A case and the name of its file."""


def id_findings(placed: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """Ids that occur again; `placed` are (file, id) in order."""
    first: dict[str, str] = {}
    for file, case_id in placed:
        if case_id in first:
            yield Finding(file, case_id, "id_twice", f"the id is taken in {first[case_id]}; choose another")
        first.setdefault(case_id, file)


def request_findings(placed: Iterable[Placed]) -> Iterator[Finding]:
    """Requests that are asked again word for word."""
    first: dict[Any, str] = {}
    for file, case in placed:
        key = (case.corpus, case.model_dump_json(include=set(case.request())))
        if key in first:
            yield Finding(file, case.case_id, "request_twice", f"{first[key]} asks the same; change it or leave it out")
        first.setdefault(key, case.case_id)


def probe_findings(placed: Sequence[Placed], known: Iterable[Placed] = ()) -> Iterator[Finding]:
    """Cases that probe what another one probes, in other words. `known` are there already and are not judged."""
    first: dict[Any, str] = {}
    for _, case in known:
        first.setdefault(probe(case), case.case_id)
    for file, case in placed:
        key = probe(case)
        if key in first:
            words = f"{first[key]} probes the same (payer, plan, codes, gold, answer, difficulty and facts)"
            yield Finding(file, case.case_id, "probe_twice", f"{words}; probe something else")
        first.setdefault(key, case.case_id)


def probe(case: CoverageCase) -> tuple[Any, ...]:
    """What a case probes, whatever its words: where it is asked, what decides and how, what makes the chart hard.

    Of a quantity only its name counts, since another number on the same side of a threshold probes nothing new; a day
    counts only where it is a boundary.
    """
    return (
        case.corpus,
        case.payer_id,
        case.plan_id,
        tuple(sorted(case.procedure_codes)),
        tuple(sorted(case.gold_clause_ids)),
        case.expected_outcome,
        case.expected_gate,
        (case.expected_halt, _asked(case, case.expected_halt)),
        case.style if case.origin else "",
        tuple(sorted(case.stress)),
        case.as_of_date if "boundary_day" in case.stress else "",
        tuple(sorted((name, _shown(value)) for name, value in (case.labelled_facts or {}).items())),
        tuple(sorted((name, _shown(value)) for name, value in (case.facts or {}).items())),
    )


def _asked(case: CoverageCase, halting: str) -> str:
    """The value that halts: each wrong one is a probe of its own."""
    return str(getattr(case, halting, "")) if halting else ""


def _shown(value: Any) -> str:
    return str(value) if value is None or isinstance(value, bool | str) else "a quantity"
