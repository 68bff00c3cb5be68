"""`cda search`: clauses by meaning, words and codes, with dates filtered inside the search."""

import json
from datetime import date
from typing import TYPE_CHECKING, Any

import click

from cda.errors import PolicyToolError, UnavailableError, UsageError
from cda.systems.coverage.day_option import as_day

if TYPE_CHECKING:
    from cda.contracts.policy_tools import SearchHit


def _row(hit: "SearchHit") -> dict[str, Any]:
    clause = hit.clause
    return {
        "clause_id": clause.clause_id,
        "score": round(hit.score, 6),
        "legs": hit.legs.model_dump(),
        "text": clause.text,
        "section": clause.section,
        "payer_id": clause.payer_id,
        "date_state": clause.date_state,
        "effective_start": clause.effective_start.isoformat() if clause.effective_start else None,
        "effective_end": clause.effective_end.isoformat() if clause.effective_end else None,
    }


@click.command()
@click.argument("query")
@click.option("--collection", type=click.Choice(["policy"]), default="policy", show_default=True)
@click.option("--payer", help="Only this payer's clauses.")
@click.option("--plan", help="Also this plan's riders; without it riders are left out.")
@click.option("--as-of", callback=as_day, help="Only clauses in effect on this day, YYYY-MM-DD.")
@click.option("--code", "codes", multiple=True, help="Adds a ranked leg for this code; repeat for several.")
@click.option("--include-superseded", is_flag=True, help="With --as-of: also clauses that were not in effect then.")
@click.option("--k", type=click.IntRange(1, 25), default=8, show_default=True, help="Hits at most.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def search(
    query: str,
    collection: str,
    payer: str | None,
    plan: str | None,
    as_of: date | None,
    codes: tuple[str, ...],
    include_superseded: bool,
    k: int,
    as_json: bool,
) -> None:
    """Search the policy corpus. Without --as-of every dated and undated clause may be found."""
    from cda.settings import load_settings
    from cda.systems.coverage.system import open_tools

    tools = open_tools(load_settings())
    try:
        answer = tools.search_policies(
            [query], payer_id=payer, plan_id=plan, as_of=as_of, codes=codes, k=k, include_superseded=include_superseded
        )[0]
    except PolicyToolError as error:
        kind = UnavailableError if error.code == "search_unavailable" else UsageError
        raise kind(str(error)) from None
    rows = [_row(hit) for hit in answer.hits]
    if as_json:
        document = {
            "query": query,
            "collection": collection,
            "hits": rows,
            "dropped": answer.dropped,
            "notes": list(answer.notes),
        }
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    for row in rows:
        start, end = row["effective_start"] or row["date_state"].lower(), row["effective_end"] or "open"
        click.echo(f"{row['score']:.4f}  {row['clause_id']}  [{row['section']}]  {start} to {end}")
        click.echo(f"        {row['text']}")
    for note in answer.notes:
        click.echo(f"note: {note}", err=True)
