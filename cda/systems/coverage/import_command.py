"""`cda corpus import`: other people's policy files become authored files, with a report of what landed and what not."""

import json
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import click

from cda.errors import UsageError
from corpus.importers.result import ImportRefused, ImportResult

FORMATS = ("ncd-jsonl", "mcd-csv", "markdown", "pdf")
BULK = 1_000  # documents from which progress is worth a line
LISTED = 20  # faults and warnings shown to a person; the report has all


@click.command("import", short_help="Import NCD, LCD, Markdown or PDF policies as authored files.")
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--format", "source_format", type=click.Choice(FORMATS), required=True, help="What SOURCE is.")
@click.option("--payer", "payer_id", help="Payer of the policies; default CMS for ncd-jsonl and mcd-csv.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder to write; default imported/FORMAT-SOURCE.")
@click.option("--policy-id", help="pdf: the policy's id; default the file's name.")
@click.option("--title", help="pdf: the policy's title; default the file's name.")
@click.option("--policy-version", help="pdf: the version; default v1.")
@click.option("--effective-start", help="pdf: first day in effect, YYYY-MM-DD; without it the policy is UNDATED.")
@click.option("--effective-end", help="pdf: last day in effect, YYYY-MM-DD; default open-ended.")
@click.option("--code", "codes", multiple=True, help="pdf: a procedure code the policy governs; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON document.")
@click.pass_context
def import_policies(
    context: click.Context,
    /,
    *,
    source: Path,
    source_format: str,
    payer_id: str | None,
    out: Path | None,
    as_json: bool,
    **pdf: Any,
) -> None:
    """Import policies from SOURCE as authored files that `cda corpus build --source` takes.

    Records that cannot land are listed with their place and reason; the others land. A policy without an authored
    criterion can be searched and cited and never decides. Exit code 2 when nothing landed: then nothing is written.
    """
    # imported here: `cda --help` does not pay for the importers
    from corpus.importers.write import report, write_import

    given = sorted(f"--{name.replace('_', '-').replace('codes', 'code')}" for name, value in pdf.items() if value)
    if given and source_format != "pdf":
        raise UsageError(f"{', '.join(given)}: only for --format pdf; other formats say this themselves")
    target = out or Path("imported") / f"{source_format}-{source.stem}"
    try:
        result = _read(source_format, source, payer_id, pdf)
        landed = bool(result.documents)
        done = (
            write_import(result, target, source_format, source, _progress)
            if landed
            else report(result, source_format, source)
        )
    except ImportRefused as error:
        raise UsageError(str(error)) from error
    if as_json:
        click.echo(json.dumps({**done, "out": str(target) if landed else None}, ensure_ascii=False))
    _show(done, target if landed else None)
    context.exit(0 if landed else 2)


def _read(source_format: str, source: Path, payer_id: str | None, pdf: dict[str, Any]) -> ImportResult:
    """Run the importer of the format; each is imported only when it is used."""
    if payer_id is not None:
        _check_id(payer_id, "--payer")
    if source_format == "ncd-jsonl":
        from corpus.importers.ncd import import_ncd_jsonl

        return import_ncd_jsonl(source, payer_id or "CMS")
    if source_format == "mcd-csv":
        from corpus.importers.mcd import import_mcd_csv

        return import_mcd_csv(source, payer_id or "CMS")
    if source_format == "markdown":
        from corpus.importers.markdown import import_markdown

        return import_markdown(source, payer_id)
    return _read_pdf(source, payer_id, pdf)


def _read_pdf(source: Path, payer_id: str | None, pdf: dict[str, Any]) -> ImportResult:
    from corpus.importers.pdf import PdfOptions, import_pdf

    if payer_id is None:
        raise UsageError("--payer is missing: a PDF does not say its payer in a form to trust")
    version = pdf["policy_version"] or "v1"
    _check_id(version, "--policy-version")
    options = PdfOptions(
        policy_id=pdf["policy_id"],
        title=pdf["title"],
        version=version,
        effective_start=_day(pdf["effective_start"], "--effective-start"),
        effective_end=_day(pdf["effective_end"], "--effective-end"),
        codes=tuple(dict.fromkeys(pdf["codes"])),
    )
    return import_pdf(source, payer_id, options)


def _day(text: str | None, option: str) -> date | None:
    from corpus.importers.text import iso_date

    if text is None:
        return None
    found = iso_date(text)
    if found is None:
        raise UsageError(f"{option}: not a date of the form YYYY-MM-DD")
    return found


def _check_id(value: str, option: str) -> None:
    from corpus.importers.text import POLICY_ID

    if POLICY_ID.fullmatch(value) is None:
        raise UsageError(f"{option}: must be letters, digits, dot, dash or underscore, at most 64")


def _progress(done: int, total: int) -> None:
    if total >= BULK:
        end = "\n" if done == total else ""
        click.echo(f"\rimport: {done:,} of {total:,} policies written", nl=False, err=True)
        click.echo(end, nl=False, err=True)


def _show(done: dict[str, Any], target: Path | None) -> None:
    """The report for people, on stderr: stdout belongs to --json."""
    say: Callable[[str], None] = lambda text: click.echo(text, file=sys.stderr)  # noqa: E731
    counts = done["counts"]
    say(
        f"{counts['landed']:,} of {counts['records']:,} records landed: {counts['policies']:,} policies, "
        f"{counts['versions']:,} versions, {counts['clauses']:,} clauses "
        f"({counts['DATED']:,} dated, {counts['UNDATED']:,} undated, {counts['AMBIGUOUS']:,} ambiguous)"
    )
    for name in ("skipped", "warnings"):
        for entry in done[name][:LISTED]:
            where = entry["file"] if entry["line"] is None else f"{entry['file']}:{entry['line']}"
            say(f"  {name.removesuffix('s')}: {where}: {entry['id']}: {entry['message']}")
        if len(done[name]) > LISTED:
            say(f"  and {len(done[name]) - LISTED:,} more {name}; see the report")
    if target is None:
        say("nothing landed, nothing was written")
    else:
        say(f"written to {target}; next: cda corpus build --source builtin --source {target}")
