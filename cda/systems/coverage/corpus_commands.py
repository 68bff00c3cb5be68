"""`cda corpus`: author, check, compile and compare policy corpora."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cda.errors import UsageError
from cda.systems.coverage.draft_command import draft_criteria
from cda.systems.coverage.import_command import import_policies
from cda.systems.coverage.index_command import build_index, collect_index, rollback_index, verify_index
from corpus import BUILTIN

if TYPE_CHECKING:
    from corpus.contents import Contents
    from corpus.errors import Fault
    from corpus.store import CorpusStore

_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_SOURCES = click.option(
    "--source",
    "sources",
    multiple=True,
    default=(BUILTIN,),
    show_default=True,
    help="Folder or file of authored policies, or the word builtin for all shipped ones; repeat for several.",
)
_STORE = click.option(
    "--store",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Store file [default: CDA_STORE, else corpus.sqlite under CDA_HOME].",
)


@click.group("corpus", no_args_is_help=True)
def corpus_group() -> None:
    """Author, check, compile and compare policy corpora."""


for command in (import_policies, draft_criteria, build_index, verify_index, rollback_index, collect_index):
    corpus_group.add_command(command)


@corpus_group.command()
@_SOURCES
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Store file to write [default: CDA_STORE, else corpus.sqlite under CDA_HOME].",
)
@_JSON
@click.pass_context
def build(ctx: click.Context, sources: tuple[str, ...], out: Path | None, as_json: bool) -> None:
    """Compile authored policies to a store. With any fault nothing is written (exit 2)."""
    from cda.settings import load_settings
    from cda.systems.coverage.authored_corpus import check_corpus

    _existing(sources)
    contents, faults = check_corpus(sources)
    if contents is None:
        _print_faults(faults, as_json, {"state": "faulty", "digest": None, "out": None})
        ctx.exit(2)
    out = out or load_settings().store_path
    digest = _written(contents, out)
    if as_json:
        document = {"state": "built", "digest": digest, "out": str(out), "corpora": contents.corpora, "faults": []}
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        click.echo(f"{out}: {len(contents.clauses)} clauses, digest {digest}")


@corpus_group.command()
@_SOURCES
@_JSON
@click.pass_context
def check(ctx: click.Context, sources: tuple[str, ...], as_json: bool) -> None:
    """Find every fault of authored policies at once, with its file, line and id (exit 1 when there is one)."""
    from cda.systems.coverage.authored_corpus import check_corpus

    _existing(sources)
    contents, faults = check_corpus(sources)
    if contents is None:
        _print_faults(faults, as_json, {"state": "faulty"})
        ctx.exit(1)
    if as_json:
        click.echo(json.dumps({"state": "sound", "corpora": contents.corpora, "faults": []}, indent=2))
    else:
        click.echo(f"no fault in {len(contents.clauses)} clauses of {len(contents.versions)} versions and riders")


@corpus_group.command()
@click.argument("old")
@click.argument("new")
@_JSON
def diff(old: str, new: str, as_json: bool) -> None:
    """Show what differs between two corpora: each a store file, a folder of authored policies, or builtin."""
    from corpus.diff import diff as differences_of

    differences = differences_of(_contents(old), _contents(new))
    if as_json:
        click.echo(json.dumps(differences, indent=2, ensure_ascii=False))
        return
    for line in _diff_lines(differences):
        click.echo(line)


@corpus_group.command()
@_STORE
@_JSON
def stats(store: Path | None, as_json: bool) -> None:
    """Show what a store holds, corpus by corpus."""
    with _open(store) as opened:
        meta = opened.meta
    if as_json:
        click.echo(json.dumps(meta, indent=2, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(
        "corpus", *(name for name in _COUNTS), "dated / undated / ambiguous", title=f"digest {meta['digest']}"
    )
    for name, figures in meta["corpora"].items():
        states = " / ".join(str(figures["date_states"][state]) for state in ("DATED", "UNDATED", "AMBIGUOUS"))
        table.add_row(name, *(str(figures[count]) for count in _COUNTS), states)
    Console().print(table)


@corpus_group.command()
@_STORE
@_JSON
def facts(store: Path | None, as_json: bool) -> None:
    """List the facts that criteria may name and a request may state."""
    keys = ("type", "label", "unit", "values", "presume", "remark")
    with _open(store) as opened:
        definitions = opened.fact_definitions()
    rows = {name: {key: data.get(key) for key in keys} for name, data in definitions.items()}
    if as_json:
        click.echo(json.dumps({"facts": rows}, indent=2, ensure_ascii=False))
        return
    for name, row in rows.items():
        what = ", ".join(map(str, row["values"])) if row["values"] else row["unit"] or ""
        click.echo(f"{name}  ({row['type']}{': ' if what else ''}{what})  {row['label'] or ''}".rstrip())


@corpus_group.command()
@click.option("--clauses", type=click.IntRange(1, 5_000_000), required=True, help="How many clauses.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same corpus.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="Store file to write.")
@_JSON
def synth(clauses: int, seed: int, out: Path, as_json: bool) -> None:
    """Write a large corpus of invented policies, without criteria, for measuring."""
    from corpus.synth import synthesize

    contents = synthesize(clauses, seed)
    digest = _written(contents, out)
    if as_json:
        document = {"digest": digest, "out": str(out), "corpora": contents.corpora}
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        click.echo(f"{out}: {clauses} clauses, digest {digest}")


_COUNTS = ("payers", "plans", "policies", "versions", "riders", "clauses", "codes")


def _existing(sources: tuple[str, ...]) -> None:
    """Raise UsageError for a source that is not there: a mistyped path is wrong usage, not a faulty corpus."""
    for source in sources:
        if source != BUILTIN and not Path(source).exists():
            raise UsageError(f"--source {source}: no such folder or file; the shipped corpora are called builtin")


def _written(contents: "Contents", out: Path) -> str:
    """Write the store and return its digest. Raises UsageError for a place that cannot be written."""
    from corpus.store_writer import write_store

    try:
        return write_store(contents, out)
    except OSError as error:
        raise UsageError(f"{out} cannot be written ({error.strerror}); nothing was changed") from None


def _open(store: Path | None) -> "CorpusStore":
    """The store asked for; the default one is built from the shipped policies when it is not there yet."""
    from cda.settings import load_settings
    from cda.systems.coverage.setting_up import open_store, to_stderr
    from corpus.store import CorpusStore

    return CorpusStore.open(store) if store else open_store(load_settings(), say=to_stderr)


def _contents(name: str) -> "Contents":
    """The contents of a store file or of authored policies."""
    from corpus.errors import CorpusFaults, StoreMissing
    from corpus.store import CorpusStore

    if name == BUILTIN or Path(name).is_dir():
        from cda.systems.coverage.authored_corpus import check_corpus

        contents, faults = check_corpus([name])
        if contents is None:
            raise CorpusFaults(faults)
        return contents
    try:
        with CorpusStore.open(name) as store:
            return store.contents()
    except StoreMissing as error:
        raise UsageError(str(error)) from None


def _print_faults(faults: "tuple[Fault, ...]", as_json: bool, document: dict[str, Any]) -> None:
    if as_json:
        rows = [{"file": f.file, "line": f.line, "id": f.id, "message": f.message} for f in faults]
        click.echo(json.dumps({**document, "faults": rows}, indent=2, ensure_ascii=False))
        return
    for fault in faults:
        click.echo(str(fault), err=True)
    click.echo(f"{len(faults)} fault(s)", err=True)


def _diff_lines(differences: dict[str, dict[str, Any]]) -> list[str]:
    lines: list[str] = []
    for kind, found in differences.items():
        lines += [f"+ {kind} {id_}" for id_ in found["added"]]
        lines += [f"- {kind} {id_}" for id_ in found["removed"]]
        for change in found["changed"]:
            lines.append(f"~ {kind} {change['id']}")
            for field, (before, after) in change["fields"].items():
                lines += [f"    {field}: {_short(before)}", f"    {' ' * len(field)}  {_short(after)}"]
    return lines or ["no difference"]


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
