"""`cda cost`: what a run of N cases would cost, from what traced runs have used."""

import json
from pathlib import Path
from typing import Any

import click

from cda.errors import UnavailableError


@click.command()
@click.option("--cases", "count", type=click.IntRange(1), required=True, help="How many cases the run has.")
@click.option(
    "--traces", type=click.Path(path_type=Path), multiple=True, help="Folder of traces. Default: CDA_TRACE_DIR."
)
@click.option("--model", help="Price every role as if it used this model.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def cost(count: int, traces: tuple[Path, ...], model: str | None, as_json: bool) -> None:
    """Price a run of N cases from measured traces, by role and model, with and without caching and batches."""
    from cda.llm.prices import read_prices
    from cda.settings import load_settings
    from evals.cost import project
    from evals.usage import measured

    settings = load_settings()
    runs = sorted((settings.home / "evals" / "runs").glob("*/traces"))
    folders = traces or (settings.trace_path, *runs)
    usage = measured(folders)
    if not usage.runs:
        raise UnavailableError(f"no finished run left a trace in {folders[0]}; `cda eval --limit 5` makes some")
    prices = read_prices().priced(settings.model_prices)
    if model is not None:
        prices.of(model)
    document = {**project(usage, count, prices, model), "note": _note(usage.tokens, usage.runs)}
    click.echo(json.dumps(document, indent=1) if as_json else "\n".join(_lines(document)))


def _note(tokens: int, runs: int) -> str | None:
    if tokens:
        return None
    return (
        f"the {runs} traced runs called no model: 0 tokens and no cost at any number of cases. What a model reasoner "
        "would cost cannot be told from them; trace a few runs with one first"
    )


def _lines(document: dict[str, Any]) -> list[str]:
    total = document["total"]
    lines = [f"{document['cases']} cases, from {document['measured_runs']} traced runs"]
    for row in document["roles"]:
        used = f"{row['input_tokens_per_case']:g} in, {row['output_tokens_per_case']:g} out"
        priced = f"{row['plain']}, cached {row['cached']}, batch {row['batch']}"
        lines.append(f"  {row['role']:12} {row['model']:24} {row['calls_per_case']:g} calls, {used} a case: {priced}")
    lines.append(
        f"  {document['currency']} {total['plain']}; cached {total['cached']}; batch {total['batch']}; "
        f"both {total['cached_batch']} (prices of {document['prices_as_of']})"
    )
    return [*lines, *([f"  {document['note']}"] if document["note"] else [])]
