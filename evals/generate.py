"""Proposes cases: an authored pattern gives the facts and the label, a model words a chart that is hard to read.

The model is shown the facts and no label; neither it nor the criteria engine has a say in one. A proposal counts when
the chart states each fact in words that can be pointed at, and when every gate of `evals.validate` lets it pass.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from hashlib import sha256
from typing import Any

from cda.agents import adversary
from cda.agents.adversary import Chart
from cda.contracts.model_client import ModelClient, ModelFailure, RunMeter
from evals.case_model import CoverageCase
from evals.corpus_view import CorpusView
from evals.expand import Answer, Pattern, days_of
from evals.validate import proposed_findings
from evals.validation.finding import STRESS

# What makes a chart hard and leaves its meaning alone. Other tags of `finding.STRESS` need a label of their own.
DIFFICULTIES: Mapping[str, str] = {
    "ocr": "a poor scan: letters and digits that resemble one another are swapped in words, never in a deciding number",
    "tense": "what is so now stands among what was so years ago and is over",
    "wrong_person": "a relative's history of the same kind stands beside the member's",
    "planned": "what is planned or ordered stands beside what was done",
    "plea": "the writer pleads for approval, at length and without a reason that counts",
    "near_miss": "findings of a similar name that are none of the stated facts surround them",
}
LANGUAGES = ("telegraphic, with abbreviations", "dictated, in long sentences", "a letter of the practice")
STYLE = "adversary"
_NEGATIONS = r"no|not|never|none|nor|neither|without|denies|denied|neg|negative|absent|zero|0|un\w+|\w+n[’']t"
_NEGATED = re.compile(rf"\b(?:{_NEGATIONS})\b", re.I)
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@dataclass(frozen=True, slots=True)
class Task:
    """One chart to be written: the pattern, its label on that day, and the difficulty."""

    pattern: Pattern
    answer: Answer
    plan_id: str
    day: date
    difficulty: str
    language: str

    @property
    def case_id(self) -> str:
        """The id of the case that comes of it."""
        return f"G-{self.pattern.pattern}-{self.plan_id}-{self.day.isoformat()}-{self.difficulty}"


@dataclass(slots=True)
class Proposals:
    """What came of it: cases that every gate let pass, and what was rejected: case_id, rule and message each."""

    cases: list[CoverageCase] = field(default_factory=list)
    rejected: list[dict[str, str]] = field(default_factory=list)

    def reject(self, case_id: str, rule: str, message: str) -> None:
        """Note a reason against a case."""
        self.rejected.append({"case_id": case_id, "rule": rule, "message": message})


def tasks(patterns: Sequence[Pattern], view: CorpusView, *, count: int, seed: int) -> list[Task]:
    """`count` tasks spread over patterns, answers and difficulties; the same for the same seed."""
    assert set(DIFFICULTIES) <= STRESS
    every = [task for pattern in patterns for task in _tasks(pattern, view)]
    return sorted(every, key=lambda task: sha256(f"{seed}:{task.case_id}".encode()).digest())[:count]


def _tasks(pattern: Pattern, view: CorpusView) -> Iterator[Task]:
    for place, answer in enumerate(pattern.answers):
        for plan_id in answer.plans or pattern.plans:
            for turn, day in enumerate(days_of(answer, view, named=pattern.pattern)):
                for number, difficulty in enumerate(DIFFICULTIES):
                    language = LANGUAGES[(place + turn + number) % len(LANGUAGES)]
                    yield Task(pattern, answer, plan_id, day, difficulty, language)


def generate(
    asked: Sequence[Task],
    view: CorpusView,
    client: ModelClient,
    meter: RunMeter,
    *,
    name: str,
    say: Callable[[str], None],
) -> Proposals:
    """Have each chart written and judge the batch. A call that fails is a rejection with its reason. name: what the
    batch is called in findings."""
    found = Proposals()
    written: list[CoverageCase] = []
    for number, task in enumerate(asked, 1):
        try:
            chart = _chart(task, view, client, meter)
        except ModelFailure as failure:
            found.reject(task.case_id, "model", str(failure))
            continue
        faults = list(told_faults(task.pattern.facts, chart))
        for fault in faults:
            found.reject(task.case_id, "told", fault)
        if not faults:
            written.append(case_of(task, chart))
        if number % 10 == 0:
            say(f"{number} of {len(asked)} charts written")
    _judge(written, found, name)
    return found


def _judge(written: list[CoverageCase], found: Proposals, name: str) -> None:
    """Leave out what a gate rejects until the batch as a whole passes: a case may be a repetition of one that goes."""
    while True:
        entries = [case.model_dump(mode="json", exclude_defaults=True) for case in written]
        findings = proposed_findings({name: entries})[1] if entries else ()
        if not findings:
            found.cases = written
            return
        for one in findings:
            found.reject(one.case_id, one.rule, one.message)
        out = {one.case_id for one in findings}
        kept = [case for case in written if case.case_id not in out]
        written = kept if len(kept) < len(written) else []


def _chart(task: Task, view: CorpusView, client: ModelClient, meter: RunMeter) -> Chart:
    shown = {name: _shown(name, view.facts[name]) for name in task.pattern.facts}
    facts = task.pattern.facts
    return adversary.write_chart(
        client,
        meter,
        stated=[{**shown[name], "value": value} for name, value in facts.items() if value is not None],
        left_open=[shown[name] for name, value in facts.items() if value is None],
        codes=task.pattern.codes,
        as_of=task.day.isoformat(),
        difficulty=DIFFICULTIES[task.difficulty],
        language=task.language,
        key=task.case_id,
    )


def _shown(name: str, definition: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, **{key: definition[key] for key in ("label", "type", "unit", "values") if key in definition}}


def told_faults(facts: Mapping[str, Any], chart: Chart) -> Iterator[str]:
    """Why the chart cannot be taken to state these facts: each needs words of the chart of its own, with its number, or
    with a negation where it is none."""
    told = {one.fact: one.words for one in chart.told}
    for name in told.keys() - facts.keys():
        yield f"{name} is no fact of the pattern"
    for name, value in facts.items():
        words = told.get(name)
        if value is None:
            if words is not None:
                yield f"{name} is to be left open, and words state it"
        elif not words or words not in chart.narrative:
            yield f"{name} is not stated in words of the chart"
        elif _is_number(value) and not _has_number(words, value):
            yield f"{name} is {value:g}, and its words do not say so"
        elif value in (False, "absent") and not _NEGATED.search(words):
            yield f"{name} is {value}, and its words do not negate it"


def case_of(task: Task, chart: Chart) -> CoverageCase:
    """The case: the model's words, the author's label."""
    pattern, answer = task.pattern, task.answer
    return CoverageCase(
        case_id=task.case_id,
        trap=pattern.trap,
        payer_id=pattern.payer_id,
        plan_id=task.plan_id,
        procedure_codes=pattern.codes,
        diagnosis_codes=pattern.dx,
        as_of_date=task.day.isoformat(),
        narrative=chart.narrative,
        question=chart.question,
        expected_outcome=answer.outcome,
        expected_gate=answer.gate,
        gold_clause_ids=answer.gold,
        rationale=pattern.why,
        stress=(task.difficulty,) if answer.days else ("boundary_day", task.difficulty),
        style=STYLE,
        origin=pattern.pattern,
        disputed=pattern.disputed,
        labelled_facts=pattern.facts,
        expected_reasons=answer.reasons,
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _has_number(words: str, value: float) -> bool:
    spoken = _NUMBERS[int(value)] if value == int(value) and 0 <= value < len(_NUMBERS) else None
    return (
        re.search(rf"(?<![\d.]){re.escape(f'{value:g}')}(?![\d]|\.\d)", words) is not None
        or (spoken is not None and re.search(rf"\b{spoken}\b", words, re.I) is not None)
        or (value == 0 and _NEGATED.search(words) is not None)
    )
