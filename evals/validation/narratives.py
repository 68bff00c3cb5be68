"""A chart may not give its answer away: no gold ids, no labels, no names of facts, no wording of a clause."""

import re
from collections.abc import Iterator

from evals.case_model import CoverageCase
from evals.corpus_view import CorpusView
from evals.validation.finding import Broken
from evals.validation.requests import day_of

LONGEST = 6000
# So many words in a row that a clause has too are copied, not written: the longest name of a condition has nine.
COPIED_WORDS = 12
_LABEL = re.compile(r"\b(?:NOT_COVERED|INSUFFICIENT_EVIDENCE|DETERMINE|REFUSE|COVERED)\b")
_WORD = re.compile(r"[a-z0-9.]+")


def narrative_faults(case: CoverageCase, view: CorpusView) -> Iterator[Broken]:
    """What the narrative and the question give away, and whether there is a narrative at all."""
    told = f"{case.narrative}\n{case.question}"
    if not case.narrative.strip():
        yield "narrative_empty", "there is no chart; write one"
    if not case.question.strip():
        yield "question_empty", "there is no question; write one"
    if len(case.narrative) > LONGEST:
        yield "narrative_long", f"the chart has {len(case.narrative)} characters; keep to {LONGEST}"
    for clause_id in case.gold_clause_ids:
        if clause_id in told:
            yield "leak_gold", f"the text names the gold clause {clause_id}; take it out"
    # Words to the reader may name an outcome: they are what is tested.
    addressed = "injection" in case.stress or "T7" in case.trap or "inject" in case.trap
    if not addressed and (label := _LABEL.search(told)):
        yield "leak_label", f"the text holds the label word {label.group()}; say it as a person would"
    for name in view.facts:
        if "_" in name and name in told:
            yield "leak_fact", f"the text holds the fact's name {name}; say it as a person would"
    yield from _copied(case, view)


def _copied(case: CoverageCase, view: CorpusView) -> Iterator[Broken]:
    day = day_of(case.as_of_date)
    words = _WORD.findall(case.narrative.lower())
    runs = {tuple(words[i : i + COPIED_WORDS]) for i in range(len(words) - COPIED_WORDS + 1)}
    if not runs or day is None:
        return
    for code in case.procedure_codes:
        for clause_id in sorted(view.governing(case.payer_id, case.plan_id, code, day)):
            clause = _WORD.findall(view.clauses[clause_id].text.lower())
            if any(tuple(clause[i : i + COPIED_WORDS]) in runs for i in range(len(clause) - COPIED_WORDS + 1)):
                yield "leak_wording", f"{COPIED_WORDS} words in a row are those of {clause_id}; tell it in other words"
