"""`cda corpus index` and its kin: put an index on a backend as a step of its own, check it, go back, clear away.

Nothing here decides anything: the life-cycle does (`cda/retrieval/lifecycle`). Exit 1: what was found is not as it
should be, and queries go where they went before.
"""

import json
from typing import TYPE_CHECKING, Any

import click

from cda.errors import UsageError

if TYPE_CHECKING:
    from backends.factory import BackendName
    from cda.settings import Settings

_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_BACKEND = click.option(
    "--backend",
    type=click.Choice(["local", "pinecone", "pgvector"]),
    help="Where the vectors are [default: CDA_VECTOR_BACKEND, else local].",
)


@click.command("index")
@_BACKEND
@click.option("--plan", "plan_only", is_flag=True, help="Say what would be done and what it costs, and do nothing.")
@click.option("--fresh", is_flag=True, help="Write a new target beside the live one instead of changing it.")
@click.option("--prune", is_flag=True, help="Delete the records that the corpus no longer has.")
@click.option(
    "--prune-limit",
    type=click.FloatRange(0, 1),
    default=0.2,
    show_default=True,
    help="Refuse to prune more than this part of a target.",
)
@click.option("--promote/--no-promote", default=True, show_default=True, help="Let queries go there once verified.")
@click.option("--take-over", is_flag=True, help="Go on from a run towards another corpus that was not finished.")
@_JSON
@click.pass_context
def build_index(
    ctx: click.Context,
    backend: "BackendName | None",
    plan_only: bool,
    fresh: bool,
    prune: bool,
    prune_limit: float,
    promote: bool,
    take_over: bool,
    as_json: bool,
) -> None:
    """Bring the index of the corpus store up to date: plan, write what differs, verify, and let queries go there.

    A run that was cut short is gone on with by the next one. Exit 1 when something is missing afterwards: then nothing
    was promoted.
    """
    from cda.systems.coverage.index_progress import IndexProgress
    from cda.systems.coverage.index_report import done, plan_lines, planned, report_lines
    from cda.systems.coverage.index_run import index_run

    settings, backend = _chosen(backend)
    if backend == "local":
        _index_local(settings, as_json, plan_only=plan_only, fresh=fresh, promote=promote, take_over=take_over)
        return
    with index_run(settings, backend, IndexProgress(), build=not plan_only) as run:
        if plan_only:
            plan = run.cycle.plan(fresh=fresh)
            _say(planned(plan), plan_lines(plan), as_json)
            return
        report = run.cycle.index(
            fresh=fresh, promote=promote, prune=prune, prune_limit=prune_limit, take_over=take_over
        )
    _say(done(report), report_lines(report), as_json)
    ctx.exit(1 if report.state == "drifted" else 0)


@click.command("verify-index")
@_BACKEND
@_JSON
@click.pass_context
def verify_index(ctx: click.Context, backend: "BackendName | None", as_json: bool) -> None:
    """Compare the index with the corpus store, record by record; exit 1 when anything differs.

    What is missing, stale, orphaned, foreign or not found by a search for itself is told by name. A lost manifest is
    written again when nothing differs.
    """
    from cda.retrieval.lifecycle.manifest import TargetManifest, held, manifest_name
    from cda.systems.coverage.index_progress import IndexProgress
    from cda.systems.coverage.index_report import verification_lines, verified
    from cda.systems.coverage.index_run import index_run
    from cda.systems.coverage.local_index import verify_local

    settings, backend = _chosen(backend)
    if backend == "local":
        found, digest = verify_local(settings)
    else:
        with index_run(settings, backend, IndexProgress(), build=False) as run:
            found = run.cycle.verify()
            manifest, _ = held(run.files, manifest_name(backend, found.target), TargetManifest)
            digest = manifest.digest if manifest else None
    _say(verified(found, backend, digest), verification_lines(found), as_json)
    ctx.exit(0 if found.state == "verified" else 1)


@click.command("rollback-index")
@_BACKEND
@_JSON
def rollback_index(backend: "BackendName | None", as_json: bool) -> None:
    """Let queries go back to the target that was live before; nothing is written but the pointer."""
    from contextlib import closing

    from backends.schema import POLICY
    from cda.retrieval.lifecycle.rollback import roll_back
    from cda.systems.coverage.vector_backend import configured_backend, shared_files

    settings, backend = _chosen(backend)
    _refuse_local(backend, "rollback-index")
    with closing(configured_backend(settings, backend)) as opened:
        pointer = roll_back(opened, shared_files(settings), POLICY.name)
    document = {"backend": backend, "target": pointer.target, "previous_target": pointer.previous_target}
    _say(document, [f"queries go to {pointer.target} again; {pointer.previous_target} is kept"], as_json)


@click.command("collect-index")
@_BACKEND
@click.option("--plan", "plan_only", is_flag=True, help="Say what would be removed, and do nothing.")
@click.option("--keep", type=click.IntRange(0), default=2, show_default=True, help="Old targets that stay in any case.")
@click.option(
    "--older-than",
    "days",
    type=click.FloatRange(0),
    default=30,
    show_default=True,
    help="Remove only what was last verified so many days ago.",
)
@_JSON
def collect_index(backend: "BackendName | None", plan_only: bool, keep: int, days: float, as_json: bool) -> None:
    """Remove old targets by age and count: never the live one, the one before it, or one that is written to."""
    from contextlib import closing
    from dataclasses import asdict

    from backends.schema import POLICY
    from cda.retrieval.lifecycle.collect import collect, collection_of
    from cda.systems.coverage.index_report import kinds_of
    from cda.systems.coverage.vector_backend import configured_backend, shared_files

    settings, backend = _chosen(backend)
    _refuse_local(backend, "collect-index")
    with closing(configured_backend(settings, backend)) as opened:
        files = shared_files(settings)
        found = collection_of(opened, files, POLICY.name, keep=keep, older_than_days=days)
        if not plan_only:
            collect(opened, files, POLICY.name, found)
    document = {"backend": backend, "state": "planned" if plan_only else "collected", **asdict(found)}
    lines = [f"{kind}: {', '.join(map(str, names)) or 'none'}" for kind, names in kinds_of(document)]
    _say(document, [f"{backend}: {'nothing was removed' if plan_only else 'done'}", *lines], as_json)


def _chosen(backend: "BackendName | None") -> "tuple[Settings, BackendName]":
    from cda.settings import load_settings

    settings = load_settings()
    return settings, backend or settings.vector_backend


def _refuse_local(backend: "BackendName", command: str) -> None:
    if backend == "local":
        raise UsageError(f"{command} is for an index on a service; each local one is found by its corpus and embedder")


def _index_local(
    settings: "Settings", as_json: bool, *, plan_only: bool, fresh: bool, promote: bool, take_over: bool
) -> None:
    from cda.systems.coverage.index_progress import IndexProgress
    from cda.systems.coverage.local_index import build_local

    if take_over or not promote:
        option = "--take-over" if take_over else "--no-promote"
        raise UsageError(f"{option} is for an index on a service; each local one is found by its corpus and embedder")
    document = build_local(settings, IndexProgress(), plan_only=plan_only, fresh=fresh)
    count = document["added"] + document["unchanged"]
    _say(document, [f"{document['target']}: {document['state']}, {count} clauses"], as_json)


def _say(document: dict[str, Any], lines: list[str], as_json: bool) -> None:
    click.echo(json.dumps(document, indent=2) if as_json else "\n".join(lines))
