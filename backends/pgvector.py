"""Vector search in Postgres with the extension pgvector: exact among the eligible, by a plain index on payer and days.

The search computes every eligible record's cosine and takes the k best by (rounded score, id), an order that no
approximate index can serve: so at any size, and whatever indexes somebody adds, it is exact. HNSW answers sooner from
about a million records on and misses some of the best, behind a filter more often than not; it is used only by a
backend that was made for it, and `measured_loss` tells its price.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from backends.base import (
    Capabilities,
    Hit,
    IndexSpec,
    Record,
    Scanned,
    ScanPage,
    SearchPage,
    TargetInfo,
    Usage,
    Vector,
    Vectors,
    Visibility,
    WriteReport,
)
from backends.checks import checked_query, require_spec, require_target_name
from backends.errors import BackendError
from backends.filters import Where
from backends.migrations import require_current
from backends.pgtables import (
    CAPABILITIES,
    HASH,
    ID,
    VECTOR,
    Target,
    columns,
    counted,
    find,
    make_hnsw,
    make_table,
    reading_order,
    require,
    scanned,
    stored_rows,
)
from backends.postgres import Database, Row, TableMissing
from backends.sqlfilters import column, compile_sql, storable

HNSW_MAX_DIM = 2000  # of the type `vector` (pgvector 0.8)
WRITE_TIMEOUT_S = 3600.0
# The score in millionths. Vectors have norm 1, so the inner product is the cosine, of which `<#>` gives the negative.
SCORE = f"greatest(-1e6, least(1e6, round(-1e6 * ({VECTOR} <#> %s))))"
# An approximate search holds this many candidates and goes on until enough pass the filter (pgvector 0.8).
HNSW_SESSION = {"hnsw.ef_search": "200", "hnsw.iterative_scan": "strict_order"}
_VISIBLE = "visible"  # the token of every write: what is committed is in the next read

Search = Callable[[Target], list[SearchPage]]


class PgVectorBackend:
    """Targets of one migrated database. Thread-safe."""

    def __init__(self, database: Database, *, hnsw: bool = False) -> None:
        """`hnsw`: build an approximate index and search by it. Closing the backend closes the database."""
        self._database = database
        self._hnsw = hnsw
        self._known: dict[str, Target] = {}
        self._current = False
        self._closed = False
        self._requests = 0

    def capabilities(self) -> Capabilities:
        """Exact unless made for HNSW; a write is whole or not at all, and in the next read."""
        return replace(CAPABILITIES, exact=False, max_dim=HNSW_MAX_DIM) if self._hnsw else CAPABILITIES

    def targets(self) -> tuple[str, ...]:
        """See `VectorBackend.targets`."""
        with self._ready().reading() as look:
            return tuple(name for (name,) in look.rows("SELECT name FROM cda.targets ORDER BY name"))

    def describe(self, target: str) -> TargetInfo | None:
        """See `VectorBackend.describe`. Counted now."""
        with self._ready(target).transaction() as look:
            found = find(look, target)
            return None if found is None else counted(look, found)

    def ensure(self, target: str, spec: IndexSpec) -> TargetInfo:
        """See `VectorBackend.ensure`. Two who make one target at once make one."""
        limit = self.capabilities().max_dim
        if spec.dim > limit:
            raise BackendError(
                f"the pgvector backend takes {limit} dimensions at most here, the embedder has {spec.dim}"
            )
        with self._ready(target).transaction() as change:
            made = change.rows(
                "INSERT INTO cda.targets (name, embedder, dim, schema_digest) VALUES (%s, %s, %s, %s)"
                " ON CONFLICT (name) DO NOTHING RETURNING number",
                *(target, spec.embedder, spec.dim, spec.schema.digest),
            )
            if made:
                make_table(change, made[0][0], spec)
            return counted(change, require(change, target, spec))

    def upsert(
        self,
        target: str,
        spec: IndexSpec,
        records: Iterable[Record],
        *,
        on_batch: Callable[[WriteReport], None] | None = None,
    ) -> WriteReport:
        """See `VectorBackend.upsert`. One batch, one transaction: everything or nothing."""
        ids: list[str] = []
        held = columns(spec.schema)
        names = ", ".join(held)
        replaced = ", ".join(f"{name} = EXCLUDED.{name}" for name in held if name != ID)
        with self._ready(target).transaction(timeout_s=WRITE_TIMEOUT_S) as change:
            found = require(change, target, spec, writing=True)
            change.run(f"CREATE TEMPORARY TABLE incoming (LIKE {found.table}) ON COMMIT DROP")
            copied = f"COPY incoming ({names}) FROM STDIN (FORMAT BINARY)"
            change.copy(copied, list(held.values()), stored_rows(spec, records, ids))
            change.run(
                f"INSERT INTO {found.table} ({names}) SELECT {names} FROM incoming"
                f" ORDER BY {reading_order(spec.schema)}, {ID} ON CONFLICT ({ID}) DO UPDATE SET {replaced}"
            )
            if self._hnsw:
                make_hnsw(change, found)
            # Its size when it was last looked at; a large write is not left to the server's own housekeeping.
            known = change.rows("SELECT reltuples FROM pg_class WHERE oid = %s::regclass", found.table)[0][0]
            if len(ids) * 10 >= known:
                change.run(f"ANALYZE {found.table}")
        report = WriteReport(tuple(ids), (), _VISIBLE)
        if on_batch is not None:
            on_batch(report)
        return report

    def delete(self, target: str, spec: IndexSpec, ids: Sequence[str], *, foreign: Sequence[str] = ()) -> WriteReport:
        """See `VectorBackend.delete`. Nothing foreign can lie in a target's table."""
        with self._ready(target).transaction(timeout_s=WRITE_TIMEOUT_S) as change:
            found = require(change, target, spec, writing=True)
            change.run(f"DELETE FROM {found.table} WHERE {ID} = ANY(%s::text[])", [i for i in ids if storable(i)])
        return WriteReport((*ids, *foreign), (), _VISIBLE)

    def scan(self, target: str, spec: IndexSpec, *, after: str | None = None, limit: int = 1000) -> ScanPage:
        """See `VectorBackend.scan`. By id: what stays is told once, whatever is written meanwhile."""
        fields = ", ".join([ID, HASH, *(column(field) for field in spec.schema.fields)])
        with self._ready(target).transaction() as look:
            found = require(look, target, spec)
            page = f"SELECT {fields} FROM {found.table} WHERE {ID} > %s ORDER BY {ID} LIMIT %s"
            records = tuple(scanned(spec.schema, row) for row in look.rows(page, after or "", limit))
        return ScanPage(records, (), records[-1].id if len(records) == limit else None)

    def wait_visible(self, target: str, token: str, *, deadline_s: float) -> Visibility:  # noqa: ARG002
        """See `VectorBackend.wait_visible`; a write that returned is visible."""
        self._ready(target)
        return Visibility(confirmed=True)

    def search(self, target: str, spec: IndexSpec, vectors: Vectors, *, k: int, where: Where) -> list[SearchPage]:
        """See `VectorBackend.search`. One round trip for all vectors."""
        units = checked_query(self.capabilities(), spec, vectors, k, where)
        search = self._approximate if self._hnsw else self._exact
        return self._in_target(target, spec, lambda found: search(found, spec, units, k, where))

    def measured_loss(
        self, target: str, spec: IndexSpec, vectors: Vectors, *, k: int, where: Where
    ) -> tuple[float, int]:
        """What HNSW costs on these queries: the share of the true k best that it finds, and how many of its pages come
        short of them."""
        units = checked_query(self.capabilities(), spec, vectors, k, where)
        exact = self._in_target(target, spec, lambda found: self._exact(found, spec, units, k, where))
        near = self._in_target(target, spec, lambda found: self._approximate(found, spec, units, k, where))
        pairs = [
            ({hit.id for hit in one.hits}, {hit.id for hit in other.hits})
            for one, other in zip(exact, near, strict=True)
        ]
        kept = sum(len(best & found) for best, found in pairs)
        return kept / max(1, sum(len(best) for best, _ in pairs)), sum(len(f) < len(b) for b, f in pairs)

    def sample(self, target: str, spec: IndexSpec, count: int) -> list[tuple[Scanned, Vector]]:
        """At most `count` records with their vectors, scattered over the target and the same ones every time."""
        fields = ", ".join([ID, HASH, *(column(field) for field in spec.schema.fields), VECTOR])
        with self._ready(target).reading() as look:
            found = require(look, target, spec)
            rows = look.rows(f"SELECT {fields} FROM {found.table} ORDER BY md5({ID}), {ID} LIMIT %s", count)
        return [(scanned(spec.schema, row[:-1]), row[-1].to_numpy()) for row in rows]

    def drop(self, target: str) -> None:
        """See `VectorBackend.drop`."""
        with self._ready(target).transaction(timeout_s=WRITE_TIMEOUT_S) as change:
            gone = change.rows("DELETE FROM cda.targets WHERE name = %s RETURNING number", target)
            for (number,) in gone:
                change.run(f"DROP TABLE cda.records_{number}")
        self._known.pop(target, None)

    def usage(self) -> Usage:
        """How often the database was asked."""
        return Usage(requests=self._requests)

    def close(self) -> None:
        """Close the database's connections."""
        self._closed = True
        self._database.close()

    def _ready(self, target: str | None = None) -> Database:
        """The database, known to be open and current, for a target of a name that can be one."""
        if self._closed:
            raise BackendError("the pgvector backend is closed")
        if target is not None:
            require_target_name(target)
        self._requests += 1
        if not self._current:
            require_current(self._database)
            self._current = True
        return self._database

    def _in_target(self, target: str, spec: IndexSpec, search: Search) -> list[SearchPage]:
        """Search with what is known of the target, and again with what the database knows when its table is gone."""
        database = self._ready(target)
        known = self._known.get(target)
        if known is not None:
            require_spec(known.info, spec)
            try:
                return search(known)
            except TableMissing:
                del self._known[target]
        with database.reading() as look:
            known = require(look, target, spec)
        pages = search(known)
        self._known[target] = known
        return pages

    def _exact(self, found: Target, spec: IndexSpec, units: Sequence[Vector], k: int, where: Where) -> list[SearchPage]:
        condition, values = compile_sql(where, spec.schema)
        scored = f"SELECT {ID}, {HASH}, {SCORE} AS score FROM {found.table} WHERE {condition}"
        # Materialized: scored once, and counted and sorted without their vectors.
        query = (
            f"WITH eligible AS MATERIALIZED ({scored}) SELECT *, (SELECT count(*) FROM eligible) FROM eligible"
            f" ORDER BY score DESC, {ID} LIMIT %s"
        )
        with self._database.reading() as look:
            answers = look.together([(query, [unit, *values, k]) for unit in units])
        return [SearchPage(_hits(rows), rows[0][3] if rows else 0, exact=True) for rows in answers]

    def _approximate(
        self, found: Target, spec: IndexSpec, units: Sequence[Vector], k: int, where: Where
    ) -> list[SearchPage]:
        condition, values = compile_sql(where, spec.schema)
        nearest = (
            f"SELECT {ID}, {HASH}, {VECTOR} FROM {found.table} WHERE {condition} ORDER BY {VECTOR} <#> %s LIMIT %s"
        )
        query = f"SELECT {ID}, {HASH}, {SCORE} AS score FROM ({nearest}) AS nearest ORDER BY score DESC, {ID}"
        with self._database.transaction() as look:
            eligible = look.rows(f"SELECT count(*) FROM {found.table} WHERE {condition}", *values)[0][0]
            look.run("SELECT '[1]'::vector")  # the settings exist once the extension's library is loaded
            for name, value in HNSW_SESSION.items():
                look.run("SELECT set_config(%s, %s, true)", name, value)
            answers = [look.rows(query, unit, *values, unit, k) for unit in units]
        return [SearchPage(_hits(rows), eligible, exact=False) for rows in answers]


def _hits(rows: Sequence[Row]) -> tuple[Hit, ...]:
    return tuple(Hit(row[0], row[2] / 1e6 + 0.0, rank, row[1]) for rank, row in enumerate(rows, 1))
