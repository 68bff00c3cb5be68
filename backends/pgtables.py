"""The tables of the pgvector backend: one row a target in cda.targets, one table of records a target.

The records' columns are the fields of the target's schema; a btree on the partition and the days leads a search to
what is eligible.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from backends.base import Capabilities, IndexSpec, Record, Scanned, TargetInfo
from backends.checks import checked_records, require_id_length, require_spec
from backends.errors import IndexAbsent, InvalidRecord
from backends.postgres import Row, Transaction
from backends.schema import Kind, Schema, Value
from backends.sqlfilters import column, storable

ID, HASH, VECTOR = "record_id", "record_hash", "record_vector"
TYPES = {Kind.TEXT: "text", Kind.DAY: "int4", Kind.TEXTS: "text[]"}
CAPABILITIES = Capabilities(
    name="pgvector", exact=True, max_dim=16_000, max_k=1000, id_max_length=512, server_side_filter=True
)
MAX_PARTITION = 512  # characters: an entry of a btree holds at most 2,700 bytes


@dataclass(frozen=True, slots=True)
class Target:
    """A target as its row tells it; `info.count` is that of the moment it was counted, else 0."""

    number: int
    info: TargetInfo

    @property
    def table(self) -> str:
        """The table of its records."""
        return f"cda.records_{self.number}"


def columns(schema: Schema) -> dict[str, str]:
    """Every column of a target's table with its type, the record's own first."""
    fields = {column(field): TYPES[field.kind] for field in schema.fields}
    return {ID: "text", HASH: "text", VECTOR: "vector", **fields}


def reading_order(schema: Schema) -> str:
    """The columns of the index: in this order records are written, so that what is eligible together lies together."""
    return ", ".join([column(schema[schema.partition]), *(column(f) for f in schema.fields if f.kind is Kind.DAY)])


def collated(held: Mapping[str, str]) -> str:
    """The columns as a table declares them. Text compares by code point, as Python's strings do."""
    texts = {"text": 'text COLLATE "C"', "text[]": 'text[] COLLATE "C"'}
    return ", ".join(f"{name} {texts.get(kind, kind)} NOT NULL" for name, kind in held.items())


def find(look: Transaction, target: str) -> Target | None:
    """The target, or None."""
    rows = look.rows("SELECT number, embedder, dim, schema_digest FROM cda.targets WHERE name = %s", target)
    if not rows:
        return None
    number, embedder, dim, schema_digest = rows[0]
    return Target(number, TargetInfo(target, embedder, dim, schema_digest, 0, None))


def require(look: Transaction, target: str, spec: IndexSpec, *, writing: bool = False) -> Target:
    """The target. IndexAbsent, IndexMismatch. `writing` keeps it from being dropped until the transaction ends."""
    if writing:
        look.run("SELECT FROM cda.targets WHERE name = %s FOR KEY SHARE", target)
    found = find(look, target)
    if found is None:
        raise IndexAbsent(f"there is no pgvector target {target!r}; build it first")
    require_spec(found.info, spec)
    return found


def counted(look: Transaction, target: Target) -> TargetInfo:
    """What the target was made with and how many records it holds now."""
    info = target.info
    count = look.rows(f"SELECT count(*) FROM {target.table}")[0][0]
    return TargetInfo(info.target, info.embedder, info.dim, info.schema_digest, count, None)


def make_table(change: Transaction, number: int, spec: IndexSpec) -> None:
    """The table of a new target, empty."""
    held = collated(columns(spec.schema) | {VECTOR: f"vector({spec.dim})"})
    change.run(f"CREATE TABLE cda.records_{number} ({held}, PRIMARY KEY ({ID}))")
    change.run(f"CREATE INDEX records_{number}_eligible ON cda.records_{number} ({reading_order(spec.schema)})")


def make_hnsw(change: Transaction, target: Target) -> None:
    """The approximate index, unless it is there. A first write of everything is indexed at once, which is quicker."""
    change.run("SET LOCAL maintenance_work_mem = '512MB'")
    change.run(
        f"CREATE INDEX IF NOT EXISTS records_{target.number}_hnsw ON {target.table} USING hnsw ({VECTOR} vector_ip_ops)"
    )


def stored_rows(spec: IndexSpec, records: Iterable[Record], ids: list[str]) -> Iterator[Row]:
    """Each record as a row of `columns`, its id added to `ids`. InvalidRecord for the first that cannot be kept."""
    names = [field.name for field in spec.schema.fields]
    for record in checked_records(spec, records):
        require_id_length(record.id, record.id, CAPABILITIES)
        values = [record.meta[name] for name in names]
        texts = [record.id, record.content_hash, *_texts(values)]
        if not all(map(storable, texts)):
            raise InvalidRecord(f"record {record.id!r}: Postgres keeps no NUL and no half of a surrogate pair")
        if len(str(record.meta[spec.schema.partition])) > MAX_PARTITION:
            raise InvalidRecord(f"record {record.id!r}: {spec.schema.partition!r} has over {MAX_PARTITION} characters")
        ids.append(record.id)
        yield (record.id, record.content_hash, record.vector, *(_kept(value) for value in values))


def scanned(schema: Schema, row: Row) -> Scanned:
    """A row of id, hash and fields as a scan tells it."""
    values = (tuple(sorted(value)) if isinstance(value, list) else value for value in row[2:])
    return Scanned(row[0], row[1], dict(zip((field.name for field in schema.fields), values, strict=True)))


def _texts(values: list[Value]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple):
            yield from value


def _kept(value: Value) -> str | int | list[str]:
    return list(value) if isinstance(value, tuple) else value
