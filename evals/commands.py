"""`cda eval`: run a suite, compare it with the baseline, set the baseline, write the report; and `cda evals`."""

import json
import sys
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cda.entry_point_group import EntryPointGroup
from cda.errors import UsageError

if TYPE_CHECKING:
    from cda.settings import Settings
    from evals.suite import Options, Run, Suite

GROUP = "cda.eval_suites"


@click.command("eval")
@click.option("--suite", default="coverage", show_default=True, help="coverage, injection, retrieval or verifier.")
@click.option("--set", "sets", multiple=True, help="A set of the suite's cases; repeat for several. Default: all.")
@click.option("--case", "case_ids", multiple=True, help="One case by its id; repeat for several.")
@click.option("--cases", "file", type=click.Path(path_type=Path), help="A file of coverage cases of your own.")
@click.option("--reasoner", help="Default: CDA_REASONER, else criteria.")
@click.option("--limit", type=click.IntRange(1), help="Only the first N cases.")
@click.option("--repeats", type=click.IntRange(1, 20), default=1, show_default=True, help="How often to ask each case.")
@click.option("--batch", is_flag=True, help="Ask the model by batches: half the price, and hours.")
@click.option("--retry-failed", is_flag=True, help="Ask again what the model's service failed in the finished run.")
@click.option("--judge", is_flag=True, help="Have a model's opinion on how answers are told, beside the score.")
@click.option(
    "--concurrency",
    type=click.IntRange(1, 64),
    help="Worker processes [default: the cores there are]; samples under way where a model is asked [default: 16].",
)
@click.option("--diff", is_flag=True, help="Compare with the baseline; exit 1 on a regression.")
@click.option("--set-baseline", is_flag=True, help="Write this run into evals/baseline.json.")
@click.option("--accept", metavar="REASON", help="With --set-baseline: accept what is worse, for this reason.")
@click.option("--report", type=click.Path(path_type=Path), help="Write a self-contained HTML page.")
@click.option("--json", "as_json", is_flag=True, help="Print the scorecard as one JSON document.")
def eval_command(
    suite: str,
    sets: tuple[str, ...],
    case_ids: tuple[str, ...],
    file: Path | None,
    reasoner: str | None,
    limit: int | None,
    repeats: int,
    batch: bool,
    retry_failed: bool,
    judge: bool,
    concurrency: int | None,
    diff: bool,
    set_baseline: bool,
    accept: str | None,
    report: Path | None,
    as_json: bool,
) -> int:
    """Score the product on labelled cases.

    Exits 1 when a floor is not met (a false auto-determination is the first of them) or, with --diff, when something is
    worse than the baseline. A stopped run goes on where it was when the same command is given again.
    """
    from evals.baseline import read_baseline
    from evals.comparison import compare, refuse_other_cases, told
    from evals.runner import IN_THREADS, cores
    from evals.suite import Options

    options = Options(
        _settings(reasoner),
        sets,
        case_ids,
        file,
        limit,
        repeats=repeats,
        batch=batch,
        retry_failed=retry_failed,
        judge=judge,
    )
    options = replace(options, concurrency=concurrency or (IN_THREADS if options.asks_models else cores()))
    _refuse_contradictions(options, suite, diff=diff, set_baseline=set_baseline, accept=accept, report=report)
    prepared = _suite(suite)(options)
    entry = read_baseline(suite) if diff or set_baseline or report else None
    if diff:
        refuse_other_cases(entry, prepared.case_set)
    if set_baseline:
        from evals.baseline_setting import commit_to_name

        commit = commit_to_name(_say)
    run = prepared.run(_say)
    comparable = entry is not None and _same_cases(entry, prepared.case_set)
    comparison = compare(entry, run) if entry is not None and comparable else None
    if set_baseline:
        from evals.baseline_setting import set_to

        set_to(suite, run, comparison, commit=commit, accept=accept, say=_say)
    if report:
        _write_report(run, comparison, report)
    document = {**run.scorecard, "failures": list(run.failures)}
    if diff:
        document["comparison"] = comparison
    if as_json:
        click.echo(json.dumps(document, indent=1, ensure_ascii=False))
    else:
        _show([*run.lines, *(told(comparison) if comparison and diff else ())])
    _show_failures(run.failures, comparison["regressions"] if comparison and diff else ())
    worse = bool(diff and comparison and comparison["regressions"])
    return 1 if (run.failures and not set_baseline) or worse else 0


def _refuse_contradictions(
    options: "Options", suite: str, *, diff: bool, set_baseline: bool, accept: str | None, report: Path | None
) -> None:
    """Raise UsageError for options that do not go together."""
    if suite != "coverage" and (options.repeats > 1 or options.batch or options.retry_failed or options.judge):
        raise UsageError("--repeats, --batch, --retry-failed and --judge are for --suite coverage")
    if options.repeats > 1 and (diff or set_baseline):
        raise UsageError("--diff and --set-baseline compare one answer a case; leave out --repeats")
    if (diff or set_baseline) and not options.whole:
        raise UsageError("--diff and --set-baseline take whole sets; leave out --case, --cases and --limit")
    if set_baseline and options.sets:
        raise UsageError("--set-baseline takes the whole suite; leave out --set")
    if report and not report.absolute().parent.is_dir():
        raise UsageError(f"--report {report}: its folder does not exist")
    if accept is not None and not (set_baseline and accept.strip()):
        raise UsageError('--accept goes with --set-baseline and says why: --accept "REASON"')


@click.command(
    "evals",
    cls=EntryPointGroup,
    points="cda.evals_commands",
    context_settings={"help_option_names": ["-h", "--help"]},
)
def evals_group() -> None:
    """Make and check case sets."""


def _settings(reasoner: str | None) -> "Settings":
    from typing import get_args

    from cda.settings import Settings, load_settings

    settings = load_settings()
    if reasoner is None:
        return settings
    known = get_args(Settings.model_fields["reasoner"].annotation)
    if reasoner not in known:
        raise UsageError(f"--reasoner {reasoner}: is none of {', '.join(known)}")
    return settings.model_copy(update={"reasoner": reasoner})


def _suite(name: str) -> "Suite":
    points = {point.name: point for point in entry_points(group=GROUP)}
    if name not in points:
        raise UsageError(f"--suite {name}: is not installed; there are {', '.join(sorted(points))}")
    loaded: Suite = points[name].load()
    return loaded


def _same_cases(entry: dict[str, Any], case_set: Any) -> bool:
    from evals.comparison import refuse_other_cases

    try:
        refuse_other_cases(entry, case_set)
    except UsageError:
        return False
    return True


def _write_report(run: "Run", comparison: dict[str, Any] | None, path: Path) -> None:
    if run.report is None:
        raise UsageError("--report: this suite has no page; --json has all of it")
    try:
        path.write_text(run.report(comparison), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({type(error).__name__})") from None


def _show(lines: list[str]) -> None:
    for line in lines:
        click.echo(line)


def _show_failures(failures: Any, regressions: Any) -> None:
    for failure in failures:
        click.echo(f"floor: {failure}", err=True)
    for regression in regressions:
        click.echo(f"regression: {regression}", err=True)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
