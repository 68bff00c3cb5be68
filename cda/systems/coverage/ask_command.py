"""`cda ask`: one coverage question, or a file of them."""

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from cda.errors import UsageError
from cda.systems.coverage.day_option import as_day

if TYPE_CHECKING:
    from cda.contracts.decision import RunResult
    from cda.settings import Settings
    from cda.systems.coverage.system import CoverageSystem


def _read_json(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read ({type(error).__name__})") from None
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}: not a JSON document (line {error.lineno}, column {error.colno})") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{path}: not a JSON document (nested too deep, or a number too long)") from None


def _read_object(path: Path, what: str) -> dict[str, Any]:
    value = _read_json(path)
    if not isinstance(value, dict):
        raise UsageError(f"{path}: {what} is a JSON object")
    return value


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError("--narrative -: standard input is not UTF-8 text") from None


_OPTION = {
    "payer_id": "payer",
    "plan_id": "plan",
    "procedure_codes": "code",
    "diagnosis_codes": "dx",
    "as_of_date": "as-of",
    "narrative": "narrative",
    "question": "question",
}


def _request(request: Path | None, facts: Path | None, options: dict[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in options.items() if value not in (None, ())}
    if request and given:
        raise UsageError(f"--request holds the whole request; leave out --{_OPTION[next(iter(given))]}")
    raw = _read_object(request, "a request") if request else given
    if raw.get("narrative") == "-" and not request:
        raw["narrative"] = _standard_input()
    if facts:
        added, held = _read_object(facts, "a file of facts"), raw.get("facts") or {}
        # What is no object stays as it is, for pre-flight to halt on.
        raw["facts"] = {**held, **added} if isinstance(held, dict) else held
    return raw


def _open_batch(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({type(error).__name__})") from None


def _batch(system: "CoverageSystem", source: BinaryIO, concurrency: int) -> "Iterator[RunResult]":
    """One result a line that is not blank, in order."""

    from concurrent.futures import ThreadPoolExecutor

    def answer(numbered: tuple[int, bytes]) -> "RunResult":
        number, raw = numbered
        return system.ask_line(raw, number)

    # Submitting a bounded window keeps order and memory whatever the file's size.
    with ThreadPoolExecutor(concurrency) as pool:
        lines = ((number, raw) for number, raw in enumerate(source, 1) if raw.strip())
        window = []
        for numbered in lines:
            window.append(pool.submit(answer, numbered))
            if len(window) > 4 * concurrency:
                yield window.pop(0).result()
        for future in window:
            yield future.result()


def _open(settings: "Settings") -> "CoverageSystem":
    from cda.patterns import keep_in

    keep_in(settings.home)  # before the modules below compile their patterns
    if settings.embedder == "minilm-int8" and settings.policy_tools == "inprocess":
        # The model's session is made on another core while this one imports the rest.
        from cda.retrieval.embedders import models_folder, start_loading

        start_loading(settings.embedder, models_folder(settings.index_path))
    from cda.systems.coverage.system import CoverageSystem

    return CoverageSystem.open(settings)


@click.command()
@click.option("--payer", "payer_id", help="Payer id, e.g. MHP.")
@click.option("--plan", "plan_id", help="Plan id, e.g. MHP-HMO-BASE.")
@click.option("--code", "procedure_codes", multiple=True, help="Procedure code; repeat for several.")
@click.option("--dx", "diagnosis_codes", multiple=True, help="ICD-10-CM code; repeat for several.")
@click.option("--as-of", "as_of_date", help="Date of service, YYYY-MM-DD.")
@click.option("--narrative", help="Chart language; - reads standard input.")
@click.option("--question", help="The question in words.")
@click.option("--request", type=click.Path(path_type=Path), help="The whole request as a JSON file.")
@click.option("--facts", type=click.Path(path_type=Path), help="Structured facts as a JSON file {name: value}.")
@click.option("--versus", callback=as_day, help="Explain what differs on this other date, YYYY-MM-DD.")
@click.option("--batch", type=click.Path(path_type=Path), help="One request a line (JSONL); one result a line.")
@click.option("--concurrency", type=click.IntRange(1, 64), default=2, show_default=True, help="Workers of --batch.")
@click.option(
    "--reasoner", type=click.Choice(["criteria", "hybrid", "agentic"]), help="Default: CDA_REASONER, else criteria."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def ask(
    request: Path | None,
    facts: Path | None,
    versus: date | None,
    batch: Path | None,
    concurrency: int,
    reasoner: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Answer a coverage question, with the clauses that say so, or refuse and name what is missing.

    Exits 0 whenever it prints a result: a bad date or an unknown payer is a HALT in the result.
    """
    from cda.settings import load_settings

    settings = load_settings()
    if reasoner:
        settings = settings.model_copy(update={"reasoner": reasoner})
    if batch:
        if request or facts or versus or any(value not in (None, ()) for value in options.values()):
            raise UsageError("--batch holds whole requests; give no other part of one")
        with _open_batch(batch) as source, closing(_open(settings)) as system:
            for result in _batch(system, source, concurrency):
                click.echo(result.model_dump_json(by_alias=True))
        return
    raw = _request(request, facts, options)
    if not raw and request is None:
        raise UsageError("nothing asked; give --payer, --plan, --code, --as-of and --narrative, or --request FILE")
    with closing(_open(settings)) as system:
        answer = system.ask(raw, versus=versus)
        if as_json:
            click.echo(answer.model_dump_json(by_alias=True, indent=2))
            return
        from rich.console import Console

        from cda.systems.coverage.render import show

        show(answer, Console(file=sys.stdout, soft_wrap=False), system.tools.get_clause_by_id)
