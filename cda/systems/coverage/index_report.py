"""What the index commands say: a document for a program, lines for a person."""

from typing import Any

from cda.retrieval.lifecycle.plan import Plan
from cda.retrieval.lifecycle.run import Report
from cda.retrieval.lifecycle.verify import Verification

_SHOWN = 20  # ids of a kind that a person is shown; a document has all


def planned(plan: Plan) -> dict[str, Any]:
    """The document of a plan; `ids` names every record."""
    ids = {kind: list(getattr(plan, kind)) for kind in ("added", "changed", "orphaned", "foreign")}
    return {
        "target": plan.target,
        "state": "planned",
        "backend": plan.backend,
        "embedder": plan.embedder,
        "corpus_digest": plan.corpus_digest,
        **{kind: len(names) for kind, names in ids.items()},
        "unchanged": plan.unchanged,
        "embed": plan.embed,
        "bytes": plan.bytes,
        "requests": plan.requests,
        "tokens": plan.tokens,
        "usd": plan.usd,
        "seconds": plan.seconds,
        "ids": ids,
        "plan": plan.digest,
    }


def plan_lines(plan: Plan) -> list[str]:
    """The plan for a person."""
    return [
        f"{plan.target} ({plan.backend}, {plan.embedder})",
        f"  {len(plan.added)} to add, {len(plan.changed)} changed, {plan.unchanged} unchanged, "
        f"{len(plan.orphaned)} orphaned (only --prune deletes them), {len(plan.foreign)} not ours",
        f"  {plan.embed} texts to embed, {plan.tokens} paid tokens, about {plan.bytes:,} bytes in {plan.requests} "
        f"requests, {plan.usd} USD, {plan.seconds:g} s",
        *_named(changed=plan.changed, orphaned=plan.orphaned, foreign=plan.foreign),
        "nothing was done",
    ]


def done(report: Report) -> dict[str, Any]:
    """The document of a run."""
    plan, found = report.plan, report.verification
    return {
        "target": plan.target,
        "state": report.state,
        "backend": plan.backend,
        "embedder": plan.embedder,
        "corpus_digest": plan.corpus_digest,
        "added": len(plan.added),
        "changed": len(plan.changed),
        "unchanged": plan.unchanged,
        "orphaned": len(plan.orphaned),
        "foreign": len(plan.foreign),
        "embedded": report.embedded,
        "upserted": report.upserted,
        "deleted": report.deleted,
        "failed": [{"id": one.id, "code": one.code, "retryable": one.retryable} for one in report.failed],
        "promoted": report.state == "live",
        "verification": verified(found, plan.backend, None) if found else None,
    }


def report_lines(report: Report) -> list[str]:
    """What a run did, for a person."""
    plan = report.plan
    lines = [
        f"{plan.target}: {report.state}"
        + {"live": "", "verified": "; not promoted", "drifted": "; nothing was promoted, run this again"}[report.state],
        f"  {len(plan.added)} added, {len(plan.changed)} changed, {plan.unchanged} unchanged, "
        f"{len(plan.orphaned)} orphaned; {report.embedded} embedded, {report.upserted} written, "
        f"{report.deleted} deleted",
    ]
    lines += [f"  not taken: {one.id} ({one.code})" for one in report.failed[:_SHOWN]]
    return lines + (_faults(report.verification) if report.verification else [])


def verified(found: Verification, backend: str, manifest: str | None) -> dict[str, Any]:
    """The document of a comparison with the corpus; `manifest` is the digest of the target's own."""
    kinds = ("missing", "stale", "orphans", "foreign", "unconfirmed", "filters")
    return {
        "state": found.state,
        "backend": backend,
        "target": found.target,
        "manifest": manifest,
        "expected": found.expected,
        "found": found.found,
        **{kind: list(getattr(found, kind)) for kind in kinds},
    }


def verification_lines(found: Verification) -> list[str]:
    """What differs, for a person."""
    return [f"{found.target}: {found.state}, {found.found} of {found.expected} records", *_faults(found)]


def _faults(found: Verification) -> list[str]:
    return _named(
        missing=found.missing,
        stale=found.stale,
        orphans=found.orphans,
        foreign=found.foreign,
        unconfirmed=found.unconfirmed,
        filters=found.filters,
    )


def _named(**kinds: tuple[str, ...]) -> list[str]:
    lines = []
    for kind, names in kinds.items():
        more = f" and {len(names) - _SHOWN} more (--json has all)" if len(names) > _SHOWN else ""
        lines += [f"  {kind}: {', '.join(names[:_SHOWN])}{more}"] if names else []
    return lines


def kinds_of(document: dict[str, Any]) -> list[tuple[str, tuple[str, ...]]]:
    """What becomes of each target, by kind."""
    kinds = ("live", "previous", "building", "kept", "collected", "unknown")
    held = {kind: document[kind] for kind in kinds}
    return [(kind, names if isinstance(names, tuple) else (names,) if names else ()) for kind, names in held.items()]
