"""What every backend refuses in the same words: records, queries, filters and targets of another make."""

from collections.abc import Iterable, Iterator
from math import isfinite, sqrt

import numpy as np

from backends.base import Capabilities, FilterOp, IndexSpec, Record, TargetInfo, Vector, Vectors
from backends.errors import BackendError, IndexMismatch, InvalidFilter, InvalidRecord
from backends.filters import All, AnyOf, Contains, Eq, Everything, Ge, In, Le, Nothing, Where, check_fields

_OPS: dict[type, FilterOp] = {
    Everything: "everything",
    Nothing: "nothing",
    All: "all",
    AnyOf: "any",
    Eq: "eq",
    In: "in",
    Le: "le",
    Ge: "ge",
    Contains: "contains",
}


def checked_records(spec: IndexSpec, records: Iterable[Record]) -> Iterator[Record]:
    """The records with unit vectors, one by one. InvalidRecord for the first that is none."""
    seen: set[str] = set()
    for record in records:
        if not record.id or "\x00" in record.id:
            raise InvalidRecord("a record id is empty or holds a NUL character")
        if record.id in seen:
            raise InvalidRecord(f"record {record.id!r} comes twice")
        if not isinstance(record.content_hash, str) or not record.content_hash:
            raise InvalidRecord(f"record {record.id!r} has no content hash")
        seen.add(record.id)
        spec.schema.check(record.id, record.meta)
        try:
            vector = unit(record.vector, spec.dim)
        except InvalidFilter as why:
            raise InvalidRecord(f"record {record.id!r}: {why}") from None
        yield Record(record.id, vector, record.meta, record.content_hash)


def require_target_name(target: str) -> None:
    """BackendError for a name that some backend could not keep."""
    if not target or not all(c.isascii() and (c.isalnum() or c in "-_.") for c in target) or target[0] == ".":
        raise BackendError("a target is named with ASCII letters, digits, '-', '_' and '.', not '.' first")


def require_id_length(record_id: str, kept: str, capabilities: Capabilities) -> None:
    """InvalidRecord when the id, in the form in which the backend keeps it, is too long for it."""
    if len(kept) > capabilities.id_max_length:
        raise InvalidRecord(
            f"record {record_id[:40]!r}...: its id takes {len(kept)} characters, "
            f"{capabilities.name} keeps {capabilities.id_max_length}"
        )


def checked_query(capabilities: Capabilities, spec: IndexSpec, vectors: Vectors, k: int, where: Where) -> list[Vector]:
    """The query vectors with norm 1; raises before any work for a k, a vector or a filter that cannot be served."""
    require_k(capabilities, k)
    check_fields(where, spec.schema)
    require_filter(capabilities, where)
    return [unit(vector, spec.dim) for vector in vectors]


def require_k(capabilities: Capabilities, k: int) -> None:
    """ValueError unless that many hits can be asked for."""
    if type(k) is not int or not 1 <= k <= capabilities.max_k:
        raise ValueError(f"k must be in 1..{capabilities.max_k}")


def require_filter(capabilities: Capabilities, where: Where) -> None:
    """InvalidFilter when the filter needs what the backend does not declare."""
    op = _OPS[type(where)]
    if op not in capabilities.filter_ops:
        raise InvalidFilter(f"the {capabilities.name} backend cannot filter by {op!r}")
    match where:
        case All(parts) | AnyOf(parts):
            for part in parts:
                require_filter(capabilities, part)
        case In(field, values) if capabilities.max_in_values is not None and len(values) > capabilities.max_in_values:
            raise InvalidFilter(
                f"{len(values)} values for {field.name!r}: "
                f"the {capabilities.name} backend takes {capabilities.max_in_values}"
            )
        case _:
            pass


def require_spec(info: TargetInfo, spec: IndexSpec) -> None:
    """IndexMismatch, naming what differs, unless the target was made with this spec."""
    for what, held, wanted in (
        ("embedder", info.embedder, spec.embedder),
        ("dimension", info.dim, spec.dim),
        ("schema", info.schema_digest, spec.schema.digest),
    ):
        if held != wanted:
            raise IndexMismatch(
                f"target {info.target!r} was built with {what} {held!r}, this run has {wanted!r}; build the index again"
            )


def unit(vector: Vector, dim: int) -> Vector:
    """The vector with norm 1; InvalidFilter for another shape, and for what is zero or not finite: no direction, no
    search."""
    vector = np.asarray(vector, dtype=np.float32)
    if vector.shape != (dim,):
        raise InvalidFilter(f"a vector of shape {vector.shape} where {dim} components are needed")
    wide = vector.astype(np.float64)
    norm = sqrt(wide @ wide)
    if not isfinite(norm) or norm == 0.0:
        raise InvalidFilter("a vector is zero or not finite; it has no direction")
    return vector if abs(norm - 1.0) < 1e-6 else (wide / norm).astype(np.float32)
