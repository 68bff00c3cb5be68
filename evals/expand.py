"""Authored patterns crossed with versions, boundary days, plans and styles: the `expanded` set.

A label is what the pattern's author wrote for a window of days and a plan; this module only finds the days. Nothing is
evaluated, so a fault of the criteria engine cannot hide in a label. See docs/reference/eval-cases.md.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any, TypeVar

import click
import yaml
from pydantic import ValidationError

from cda.errors import UsageError
from evals.case_files import CASES
from evals.case_model import CaseModel, CoverageCase, GateState, Outcome
from evals.corpus_view import CorpusView, shipped

ModelT = TypeVar("ModelT", bound=CaseModel)
PATTERNS = Path(__file__).parent / "patterns"
# An open version has no last day: this one stands for it, so that the set does not move with the calendar.
OPEN_DAY = date(2025, 11, 15)


class Answer(CaseModel):
    """The label of a pattern in one window. `under`: versions and riders that are all in effect; `before`: one that is
    not yet (alone: the day before it). plans: those of the pattern it holds for, by default all. days: chosen by
    hand, where the chart's words fit no boundary day. reasons: kinds that the gate must give."""

    outcome: Outcome
    gate: GateState
    gold: tuple[str, ...]
    plans: tuple[str, ...] = ()
    under: tuple[str, ...] = ()
    before: str = ""
    days: tuple[date, ...] = ()
    reasons: tuple[str, ...] = ()


class Told(CaseModel):
    """One rendering of a pattern in chart language."""

    narrative: str
    question: str


class Pattern(CaseModel):
    """One clinical fact pattern: what a careful reader takes from each of its renderings, and its answers. disputed:
    why the labels may be quarrelled with."""

    pattern: str
    trap: str
    payer_id: str
    plans: tuple[str, ...]
    codes: tuple[str, ...]
    dx: tuple[str, ...]
    facts: dict[str, Any]
    why: str
    disputed: str = ""
    answers: tuple[Answer, ...]
    told: dict[str, Told]


def read_patterns(folder: Path = PATTERNS) -> tuple[Pattern, ...]:
    """Every pattern, by file and place. Raises UsageError naming file, pattern and field."""
    return tuple(
        authored(Pattern, entry, file, str(entry.get("pattern", place)))
        for file in sorted(folder.glob("*.yaml"))
        for place, entry in enumerate(yaml_entries(file))
    )


def expanded_cases(patterns: Sequence[Pattern], view: CorpusView) -> tuple[CoverageCase, ...]:
    """The cases of the patterns, in their order. Raises UsageError for a version that the corpus does not have."""
    return tuple(case for pattern in patterns for case in _cases(pattern, view))


def days_of(answer: Answer, view: CorpusView, *, named: str) -> tuple[date, ...]:
    """The days that an answer is asked on: the first and the last of its window, or the day before a first day."""
    if answer.days:
        return answer.days
    if not answer.under:
        return (_start(answer.before, view, named) - timedelta(days=1),)
    first = max(_start(name, view, named) for name in answer.under)
    ends = [end for name in answer.under if (end := view.versions[name].effective_end) is not None]
    if answer.before:
        ends.append(_start(answer.before, view, named) - timedelta(days=1))
    last = min(ends, default=OPEN_DAY)
    if last < first:
        raise UsageError(f"pattern {named}: {', '.join(answer.under)} are never in effect together")
    return (first, last) if first != last else (first,)


def _cases(pattern: Pattern, view: CorpusView) -> Iterator[CoverageCase]:
    styles = tuple(pattern.told)
    for place, answer in enumerate(pattern.answers):
        days = days_of(answer, view, named=pattern.pattern)
        for plan_id in answer.plans or pattern.plans:
            # Every day and every style of the window occurs; their product would ask nothing that these do not.
            for turn in range(max(len(days), len(styles))):
                day, style = days[turn % len(days)], styles[(turn + place) % len(styles)]
                yield CoverageCase(
                    case_id="-".join(["X", pattern.pattern, *_shown(pattern, plan_id), day.isoformat(), style]),
                    trap=pattern.trap,
                    payer_id=pattern.payer_id,
                    plan_id=plan_id,
                    procedure_codes=pattern.codes,
                    diagnosis_codes=pattern.dx,
                    as_of_date=day.isoformat(),
                    narrative=pattern.told[style].narrative,
                    question=pattern.told[style].question,
                    expected_outcome=answer.outcome,
                    expected_gate=answer.gate,
                    gold_clause_ids=answer.gold,
                    rationale=pattern.why,
                    stress=() if answer.days else ("boundary_day",),
                    style=style,
                    origin=pattern.pattern,
                    disputed=pattern.disputed,
                    labelled_facts=pattern.facts,
                    expected_reasons=answer.reasons,
                )


def _shown(pattern: Pattern, plan_id: str) -> tuple[str, ...]:
    return (plan_id,) if len(pattern.plans) > 1 else ()


def _start(name: str, view: CorpusView, pattern: str) -> date:
    version = view.versions.get(name)
    if version is None or version.effective_start is None:
        raise UsageError(f"pattern {pattern}: {name} is no version of the corpus with a first day")
    return version.effective_start


def yaml_entries(file: Path) -> list[dict[str, Any]]:
    """The mappings of an authored list. Raises UsageError when the file is none."""
    entries = yaml.safe_load(file.read_text(encoding="utf-8"))
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UsageError(f"{file}: an authored file is a list of mappings")
    return entries


def authored(form: type[ModelT], entry: dict[str, Any], file: Path, named: str) -> ModelT:
    """An authored mapping in its form. Raises UsageError naming the file, the entry and the field."""
    try:
        return form.model_validate(entry)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        raise UsageError(f"{file}: {named}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}") from None


def as_file(cases: Sequence[CaseModel]) -> str:
    """The text of a file of cases: what is a default is left out, so that a case reads as its author meant it."""
    held = [case.model_dump(mode="json", exclude_defaults=True) for case in cases]
    return json.dumps({"cases": held}, indent=1, ensure_ascii=False) + "\n"


def generated_files() -> dict[str, str]:
    """The text of every generated set by its file name. Raises UsageError for a fault of what was authored."""
    from evals.laws import metamorphic_pairs, read_history, read_seeds

    return {
        "expanded.json": as_file(expanded_cases(read_patterns(), shipped())),
        "metamorphic.json": as_file(metamorphic_pairs(read_seeds(), read_history())),
    }


@click.command("expand")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=CASES,
    help="Folder to write to [default: the shipped cases].",
)
@click.option("--check", is_flag=True, help="Write nothing; exit 1 when a file differs from what would be written.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def expand_command(ctx: click.Context, out: Path, check: bool, as_json: bool) -> None:
    """Write the generated case sets from the authored patterns and seeds; the same bytes every time."""
    moved = {}
    for name, text in generated_files().items():
        target = out / name
        moved[name] = not target.exists() or target.read_text(encoding="utf-8") != text
        if moved[name] and not check:
            out.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", newline="\n")
    if as_json:
        click.echo(json.dumps({"out": str(out), "written": not check, "changed": moved}, indent=2))
    else:
        for name, changed in moved.items():
            click.echo(f"{out / name}: {('differs' if check else 'written') if changed else 'unchanged'}")
    if check and any(moved.values()):
        ctx.exit(1)
