"""`cda corpus draft-criteria`: a model drafts criteria, a person reviews them, and what is accepted compiles."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cda.errors import UsageError
from corpus import BUILTIN

if TYPE_CHECKING:
    from cda.contracts.model_client import ModelClient


@click.command("draft-criteria", short_help="Draft criteria of imported policies with a model, for a person to review.")
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "--policy", "policies", multiple=True, help="Only this policy; repeat for several. Default: all of SOURCE."
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder of review files; with --accept of authored files.")
@click.option("--accept", "reviews", multiple=True, type=click.Path(path_type=Path), help="A reviewed file to compile.")
@click.option(
    "--beside",
    multiple=True,
    default=(BUILTIN,),
    show_default=True,
    help="With --accept: what the corpus is built with besides; repeat for several.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def draft_criteria(
    context: click.Context,
    source: Path,
    policies: tuple[str, ...],
    out: Path | None,
    reviews: tuple[Path, ...],
    beside: tuple[str, ...],
    as_json: bool,
) -> None:
    """Draft clauses and criteria of the imported policies in SOURCE, one review file a version.

    The texts of the policies are sent to the model that CDA_MODEL_DRAFTER, else CDA_MODEL, names. A review file that is
    there is not asked for again. With --accept nothing is sent: what a person accepted in the review files is checked
    and written to --out as authored files, which `cda corpus build --source` takes. Nothing else ever determines.
    Exit 1 when a version could not be drafted.
    """
    if reviews:
        _accept(source, reviews, out, beside, as_json)
        return
    from cda.llm.opening import open_model_client
    from cda.settings import load_settings

    client = open_model_client(load_settings())
    try:
        failed = draft(client, source, policies, out or Path("drafts") / source.stem, as_json)
    finally:
        client.close()
    context.exit(1 if failed else 0)


def draft(client: "ModelClient", source: Path, policies: tuple[str, ...], out: Path, as_json: bool) -> bool:
    """Draft with an open client and tell what came of it; whether a version failed."""
    from cda.agents import drafter
    from cda.contracts.model_client import UnlimitedMeter
    from cda.systems.coverage.drafting import draft_all, read_source, undrafted

    read = read_source(source)
    versions = undrafted(read, policies)
    say = _quiet if as_json else _say
    _say(f"sending the texts of {len(versions)} versions to {client.describe(drafter.ROLE)}; no member's data")
    meter = UnlimitedMeter()
    done = draft_all(versions, read.definitions, client, meter, out, say)
    tokens = sum(c.usage.input + c.usage.cache_read + c.usage.cache_write for c in meter.calls)
    output = sum(call.usage.output for call in meter.calls)
    usd = str(sum((call.usd for call in meter.calls), start=type(meter.calls[0].usd)(0)) if meter.calls else 0)
    if as_json:
        used = {"input_tokens": tokens, "output_tokens": output, "usd": usd}
        click.echo(json.dumps({**asdict(done), "out": str(out), **used}, ensure_ascii=False, indent=2))
    else:
        click.echo(
            f"{len(done.written)} drafted ({done.clauses} clauses, {done.faulty} with faults), {len(done.there)} there "
            f"already, {len(done.failed)} failed; {tokens} + {output} tokens, USD {usd}"
        )
        click.echo(f"next: review the files in {out}, then --accept FILE --out FOLDER")
    return bool(done.failed)


def _accept(source: Path, reviews: tuple[Path, ...], out: Path | None, beside: tuple[str, ...], as_json: bool) -> None:
    from cda.systems.coverage.draft_accept import accept

    if out is None:
        raise UsageError("--accept needs --out: a new folder for the authored files")
    done = accept(source, reviews, out, beside)
    if as_json:
        held = {**asdict(done), "out": str(done.out)}
        click.echo(json.dumps(held, ensure_ascii=False, indent=2))
        return
    click.echo(
        f"{done.out}: {done.deciding} clauses decide, {done.informing} inform; {done.left_out} drafted ones were not "
        f"accepted and decide nothing"
    )
    shown = " ".join(f"--source {name}" for name in beside)
    click.echo(f"next: cda corpus build {shown} --source {done.out}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _quiet(_: str) -> None:
    """Progress is for people."""
