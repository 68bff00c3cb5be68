"""`cda evals generate`: charts that a model makes hard, with labels that people authored."""

import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cda.errors import UsageError

if TYPE_CHECKING:
    from cda.contracts.model_client import ModelClient


@click.command("generate")
@click.option("--count", type=click.IntRange(1, 2_000), default=20, show_default=True, help="Charts to ask for.")
@click.option("--pattern", "names", multiple=True, help="Only this authored pattern; repeat for several.")
@click.option("--seed", type=int, default=0, show_default=True, help="Which charts; the same seed asks for the same.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("generated.json"),
    show_default=True,
    help="File of the cases that passed; what was rejected goes beside it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def generate_command(
    context: click.Context, count: int, names: tuple[str, ...], seed: int, out: Path, as_json: bool
) -> None:
    """Propose hard cases with a model: it words charts, the labels are those of authored patterns.

    The facts of the patterns, all invented, are sent to the model that CDA_MODEL_ADVERSARY, else CDA_MODEL, names.
    Every case that is written passes `cda evals validate`. Exit 1 when none passed.
    """
    from cda.llm.opening import open_model_client
    from cda.settings import load_settings

    if not out.absolute().parent.is_dir():
        raise UsageError(f"--out {out}: its folder does not exist")
    client = open_model_client(load_settings())
    try:
        passed = propose(client, count=count, names=names, seed=seed, out=out, as_json=as_json)
    finally:
        client.close()
    context.exit(0 if passed else 1)


def propose(client: "ModelClient", *, count: int, names: tuple[str, ...], seed: int, out: Path, as_json: bool) -> int:
    """Propose with an open client, write what passed and tell it; how many passed."""
    from cda.agents import adversary
    from cda.contracts.model_client import UnlimitedMeter
    from evals.corpus_view import shipped
    from evals.expand import as_file, read_patterns
    from evals.generate import generate, tasks

    patterns = read_patterns()
    known = {pattern.pattern for pattern in patterns}
    for name in names:
        if name not in known:
            raise UsageError(f"--pattern {name}: no authored pattern has this name")
    chosen = [pattern for pattern in patterns if not names or pattern.pattern in names]
    asked = tasks(chosen, shipped(), count=count, seed=seed)
    _say(f"asking {client.describe(adversary.ROLE)} for {len(asked)} charts over invented facts")
    meter = UnlimitedMeter()
    found = generate(asked, shipped(), client, meter, name=str(out), say=_say)
    rejected = found.rejected
    out.write_text(as_file(found.cases), encoding="utf-8", newline="\n")
    beside = out.with_suffix(".rejected.json")
    beside.write_text(json.dumps(rejected, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")
    document = {
        "out": str(out),
        "asked": len(asked),
        "passed": len(found.cases),
        "rejected": rejected,
        "input_tokens": sum(c.usage.input + c.usage.cache_read + c.usage.cache_write for c in meter.calls),
        "output_tokens": sum(call.usage.output for call in meter.calls),
        "usd": str(sum((call.usd for call in meter.calls), Decimal(0))),
    }
    if as_json:
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return len(found.cases)
    for row in rejected:
        click.echo(f"rejected: {row['case_id']}: {row['rule']}: {row['message']}")
    click.echo(f"{out}: {document['passed']} of {len(asked)} cases passed; rejections are in {beside}")
    click.echo(f"{document['input_tokens']} + {document['output_tokens']} tokens, USD {document['usd']}")
    return len(found.cases)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
