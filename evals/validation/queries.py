"""The rules of a labelled query."""

from collections.abc import Iterator

from evals.case_model import RetrievalCase
from evals.corpus_view import CorpusView
from evals.validation.finding import Broken
from evals.validation.requests import day_of


def query_faults(case: RetrievalCase, view: CorpusView) -> Iterator[Broken]:
    """Every rule that the query breaks."""
    day = day_of(case.as_of_date or "")
    if not case.query.strip():
        yield "query_empty", "there is no query; write one"
    if case.payer_id not in view.payers or day is None:
        yield "filter", "a query names a payer of the corpus and a day"
        return
    plan = view.plans.get(case.plan_id or "")
    if case.plan_id is not None and (plan is None or plan.payer_id != case.payer_id):
        yield "filter", f"{case.plan_id} is no plan of {case.payer_id}"
    named = (*case.gold_clause_ids, *case.also_clause_ids, *case.never_clause_ids, *case.rival_clause_ids)
    for clause_id in named:
        if clause_id not in view.clauses:
            yield "clause_exists", f"{clause_id} is no clause of the corpus; correct the id"
    for clause_id in (*case.gold_clause_ids, *case.also_clause_ids, *case.rival_clause_ids):
        if clause_id in view.clauses and not _eligible(clause_id, case, view):
            yield "eligible", f"{clause_id} is not this payer's, this plan's or that day's; a search may not return it"
    for clause_id in case.never_clause_ids:
        if clause_id in view.clauses and _eligible(clause_id, case, view):
            yield "never", f"{clause_id} is in effect for this payer and plan, so a search may return it"
    for clause_id in case.gold_clause_ids:
        if clause_id in case.query:
            yield "leak_gold", f"the query names the gold clause {clause_id}"
        if clause_id in case.rival_clause_ids:
            yield "rival", f"{clause_id} is gold and its own rival"
    yield from _kind(case)


def _kind(case: RetrievalCase) -> Iterator[Broken]:
    if case.kind == "polarity" and not case.rival_clause_ids:
        yield "kind", "a polarity query names the clause of the opposite polarity in rival_clause_ids"
    if case.kind == "superseded_twin" and not case.never_clause_ids:
        yield "kind", "a superseded twin names the other version's clause in never_clause_ids"
    if not case.gold_clause_ids and not case.never_clause_ids:
        yield "kind", "a query with nothing to find and nothing to leave out tests nothing"


def _eligible(clause_id: str, case: RetrievalCase, view: CorpusView) -> bool:
    clause, day = view.clauses[clause_id], day_of(case.as_of_date or "")
    return (
        day is not None
        and clause.payer_id == case.payer_id
        and clause.plan_id in (None, case.plan_id)
        and clause.in_effect(day)
    )
