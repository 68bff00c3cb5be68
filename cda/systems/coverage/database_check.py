"""What the doctor looks at in the database of pgvector, when the settings use it, and what HNSW costs there."""

from datetime import date
from typing import TYPE_CHECKING

from backends.base import IndexSpec, Scanned
from backends.errors import BackendError, BackendUnavailable
from backends.filters import Where, eligible
from backends.schema import NEVER_LASTED, OPEN_END, PLAN_ANY, POLICY
from cda.contracts.health import Finding
from cda.settings import Settings

if TYPE_CHECKING:
    from backends.pgvector import PgVectorBackend

SAMPLE = 50  # records whose neighbours are looked for
BEST = 10
LEAST_RECALL = 0.95


def examine(settings: Settings) -> list[Finding]:
    """One finding on the database, and with CDA_PGVECTOR_HNSW one a target; nothing when no setting uses it."""
    if settings.vector_backend != "pgvector" and settings.lexical != "postgres":
        return []
    try:
        return _looked_at(settings)
    except BackendUnavailable as error:
        remedy = "run `cda db up`" if settings.database_url is None else "start the server, or correct DATABASE_URL"
        return [Finding(name="database", state="fail", detail=str(error), remedy=remedy)]
    except BackendError as error:
        return [Finding(name="database", state="fail", detail=str(error), remedy="run `cda db migrate`")]


def _looked_at(settings: Settings) -> list[Finding]:
    from backends.factory import open_database
    from backends.pgvector_config import PgVectorConfig

    database = open_database(PgVectorConfig(settings.database_url, settings.postgres_path))
    from backends.pgvector import PgVectorBackend

    backend = PgVectorBackend(database, hnsw=settings.pgvector_hnsw)
    try:
        targets = backend.targets()
        counts = ", ".join(f"{name} {info.count}" for name in targets if (info := backend.describe(name)))
        kind = "the embedded Postgres" if settings.database_url is None else "the server of DATABASE_URL"
        found = Finding(name="database", state="ok", detail=f"{kind}, migrated; targets: {counts or 'none yet'}")
        losses = [_loss(backend, target) for target in targets] if settings.pgvector_hnsw else []
        return [found, *(loss for loss in losses if loss is not None)]
    finally:
        backend.close()


def _loss(backend: "PgVectorBackend", target: str) -> Finding | None:
    """How many of the true best the approximate index finds, each sample asked as its own payer on its own day."""
    info = backend.describe(target)
    if info is None or info.schema_digest != POLICY.digest:
        return None
    spec = IndexSpec(POLICY, info.embedder, info.dim)
    found, short = [], 0
    for record, vector in backend.sample(target, spec, SAMPLE):
        recall, less = backend.measured_loss(target, spec, vector[None, :], k=BEST, where=_circumstances(record))
        found.append(recall)
        short += less
    recall = sum(found) / max(1, len(found))
    detail = (
        f"finds {recall:.3f} of the true {BEST} on {len(found)} samples; {short} answers shorter than they should be"
    )
    good = recall >= LEAST_RECALL and not short
    remedy = "" if good else "unset CDA_PGVECTOR_HNSW: exact search misses none"
    return Finding(name=f"approximate index ({target})", state="ok" if good else "warn", detail=detail, remedy=remedy)


def _circumstances(record: Scanned) -> Where:
    """The filter of a question that this record may answer."""
    start, end = record.meta["effective_start_i"], record.meta["effective_end_i"]
    payer, plan = str(record.meta["payer_id"]), str(record.meta["plan_id"])
    dated = isinstance(start, int) and end != NEVER_LASTED and start < OPEN_END
    day = date(start // 10_000, start // 100 % 100, start % 100) if dated and isinstance(start, int) else None
    return eligible(payer_id=payer, plan_id=None if plan == PLAN_ANY else plan, as_of=day)
