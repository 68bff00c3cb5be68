"""A determination for people: the answer, the criterion table with the chart line beside the clause, the windows."""

from collections.abc import Callable
from itertools import groupby
from math import inf
from typing import TYPE_CHECKING

from cda.contracts.decision import Claim, GateState, RunResult
from cda.contracts.facts import Interval
from cda.contracts.policy_tools import ClauseView
from cda.errors import PolicyToolError

if TYPE_CHECKING:
    from rich.console import Console

GATE_STYLES = {
    GateState.DETERMINE: "bold green",
    GateState.REVIEW: "bold yellow",
    GateState.REFUSE: "bold cyan",
    GateState.HALT: "bold red",
}
STATUS = {
    "met": ("met", "green"),
    "not_met": ("not met", "red"),
    "unknown": ("unknown", "yellow"),
    "presumed": ("presumed", "blue"),
}


def window(clause: ClauseView) -> str:
    """The clause's effective window in words."""
    if clause.date_state != "DATED" or clause.effective_start is None:
        return clause.date_state.lower()
    return f"{clause.effective_start} to {clause.effective_end or 'open'}"


def _chart(claim: Claim) -> str:
    values = {found.fact: found.value for found in claim.evidence}
    said = {
        found.fact: [f"“{e.quote}”" for e in claim.evidence if e.fact == found.fact and e.quote]
        for found in claim.evidence
    }
    silent = "(presumed)" if claim.status == "presumed" else "(structured)"
    lines = [f"{plain_value(value)}  {' '.join(said[name]) or silent}" for name, value in values.items()]
    return "\n".join(lines) or ("(nothing stated, presumed)" if claim.status == "presumed" else "(nothing stated)")


def plain_value(value: object) -> str:
    """A value of evidence in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        ends = Interval(
            value.get("lo", -inf), value.get("hi", inf), bool(value.get("lo_open")), bool(value.get("hi_open"))
        )
        return "any" if ends == Interval(-inf, inf) else str(ends)
    return f"{value:g}" if isinstance(value, float) else str(value).replace("_", " ")


def _clause(claims: list[Claim], console: "Console", fetch: Callable[[str], ClauseView]) -> None:
    """One clause, quoted once, with a row for each criterion that was judged under it."""
    from rich.table import Table
    from rich.text import Text

    citation = claims[0].citation
    try:
        dates = f"in effect {window(fetch(citation.clause_id))}"
    except PolicyToolError:
        dates = "not in the corpus"
    console.print(Text.assemble("\n", (citation.clause_id, "bold"), f"  {dates}"))
    console.print(Text(f"“{citation.quote}”", style="italic"))
    whole, *parts = claims
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for claim in [*parts, whole] if parts else [whole]:
        word, style = STATUS[claim.status]
        name = claim.text.rsplit(": ", 1)[0]
        chart = "" if claim is whole and parts else _chart(claim)
        table.add_row(
            Text(word, style=style), Text(name, style="bold" if claim is whole and parts else ""), Text(chart)
        )
    console.print(table)


def _say(console: "Console", style: str, head: str, rest: str = "") -> None:
    """One line: a styled head and plain words, in which nothing is taken for markup."""
    from rich.text import Text

    console.print(Text.assemble((head, style), " " if rest else "", rest))


def _determination(result: RunResult, console: "Console", fetch: Callable[[str], ClauseView]) -> None:
    determination = result.determination
    if determination is None:
        return
    _say(console, "", determination.summary)
    for _, claims in groupby(determination.claims, key=lambda claim: claim.citation.clause_id):
        _clause(list(claims), console, fetch)
    if determination.claims:
        console.print()
    for missing in determination.missing_facts:
        why = f": {missing.why}" if missing.why else ""
        _say(console, "yellow", "missing", f"{missing.label} ({missing.fact}), needed by {missing.clause_id}{why}")
    for conflict in determination.noted_conflicts:
        _say(console, "yellow", "conflict", conflict.text)
    for flip in determination.would_change:
        facts = ", ".join(f"{name} = {plain_value(value)}" for name, value in flip.facts.items())
        _say(console, "dim", f"would be {flip.outcome} if {facts}")


def _lines(result: RunResult, console: "Console") -> None:
    for line in result.lines:
        if len(result.lines) > 1:
            _say(console, "bold", line.procedure_code, f"{line.gate} {line.outcome}")
        authorization = line.prior_authorization
        if authorization.required != "unknown":
            said = f"{authorization.required} ({authorization.clause_id})"
            _say(console, "bold", f"prior authorization for {line.procedure_code}", said)


def show(result: RunResult, console: "Console", fetch: Callable[[str], ClauseView]) -> None:
    """Print one run. `fetch` reads a clause for its window; what it prints is no part of the contract."""
    from rich.panel import Panel
    from rich.text import Text

    style = GATE_STYLES[result.gate.state]
    outcome = result.determination.outcome if result.determination else "no determination"
    console.print(Panel(Text(f"{result.gate.state}  {outcome}", style=style), expand=False))
    _determination(result, console, fetch)
    _lines(result, console)
    for reason in result.gate.reasons:
        _say(console, "bold", result.gate.state.value.lower(), reason)
    if result.versus:
        _say(console, "bold", f"on {result.versus.as_of_date}", f"{result.versus.gate} {result.versus.outcome}")
        for difference in result.versus.differences:
            _say(console, "", f"  {difference.kind}", difference.text)
    _say(console, "dim", f"run {result.run_id}, corpus {result.provenance.corpus_digest[:12]}")
