"""`cda trace`: what a run did, step by step, without any patient text."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import click


@click.group()
def trace() -> None:
    """Show the traces of earlier runs."""


@trace.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def list_command(as_json: bool) -> None:
    """List the runs that left a trace, newest first."""
    from cda.harness.trace import list_traces
    from cda.settings import load_settings

    runs = list_traces(load_settings().trace_path)
    if as_json:
        click.echo(json.dumps({"runs": [asdict(run) for run in runs]}, indent=2))
        return
    for run in runs:
        click.echo(f"{run.run_id}  {run.gate or 'unfinished':10}  {run.events} events")


@trace.command("show")
@click.argument("run_id")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def show_command(run_id: str, as_json: bool) -> None:
    """Show one run's events in order."""
    from cda.harness.trace import read_trace
    from cda.settings import load_settings

    events = read_trace(load_settings().trace_path, run_id)
    if as_json:
        click.echo(json.dumps({"run_id": run_id, "events": events}, indent=2))
        return
    for event in events:
        click.echo(_line(event))


def _line(event: Mapping[str, Any]) -> str:
    rest = {name: value for name, value in event.items() if name not in ("event", "seq")}
    return f"{event.get('seq', ''):>3} {event.get('event', '')}: {json.dumps(rest, ensure_ascii=False)}"
