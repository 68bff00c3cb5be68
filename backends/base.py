"""The protocol of a vector backend and the values that cross it. No value here has a text field."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from json import dumps
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from backends.filters import Where
from backends.schema import Meta, Schema

Vector = NDArray[np.float32]
Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """One vector with its filterable fields. `content_hash` covers everything the record was made from, so a reader
    of the source can tell that a hit is stale; a backend keeps it beside the fields and never filters on it."""

    id: str
    vector: Vector
    meta: Meta
    content_hash: str


class Hit(NamedTuple):
    """A record found: score is the cosine in [-1, 1], rank is 1-based. Order: higher score rounded to 1e-6, then id."""

    id: str
    score: float
    rank: int
    content_hash: str


@dataclass(frozen=True, slots=True)
class SearchPage:
    """The hits of one vector. `eligible` counts the records that the filter admitted, None where the service does not
    tell; `exact` is False for approximate search."""

    hits: tuple[Hit, ...]
    eligible: int | None
    exact: bool


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """What every record of a target is made with. What the records are is told by their ids and content hashes."""

    schema: Schema
    embedder: str
    dim: int


@dataclass(frozen=True, slots=True)
class TargetInfo:
    """What a target was made with and holds. `count` may lag behind the writes where reads do; `root` is the
    `root_hash` of its records, None where only a scan can tell."""

    target: str
    embedder: str
    dim: int
    schema_digest: str
    count: int
    root: str | None


@dataclass(frozen=True, slots=True)
class Failure:
    """A record that the backend did not take. `retryable`: the same record may be taken the next time."""

    id: str
    code: str
    retryable: bool


@dataclass(frozen=True, slots=True)
class WriteReport:
    """What became of the ids of one write: each is in `accepted` or in `failed`, never in both and never in neither.
    `token` is the position to give `wait_visible`; a later one covers the earlier ones of its target."""

    accepted: tuple[str, ...]
    failed: tuple[Failure, ...]
    token: str


@dataclass(frozen=True, slots=True)
class Visibility:
    """Whether reads show everything up to a token. Not confirmed is not a pass: `why` says what is missing."""

    confirmed: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class Scanned:
    """A stored record without its vector. TEXTS values come back sorted."""

    id: str
    content_hash: str
    meta: Meta


@dataclass(frozen=True, slots=True)
class ScanPage:
    """Some records of a target, in no particular order. `foreign` names, in the service's own spelling, what lies in
    the target and was not written through this protocol. `after` continues; None: this was the last page."""

    records: tuple[Scanned, ...]
    foreign: tuple[str, ...]
    after: str | None


@dataclass(frozen=True, slots=True)
class Usage:
    """What a backend object has asked of its service since it was made. Units are the service's own; 0 where it bills
    none."""

    requests: int = 0
    bytes_sent: int = 0
    read_units: int = 0
    write_units: int = 0


FilterOp = Literal["everything", "nothing", "all", "any", "eq", "in", "le", "ge", "contains"]
ALL_OPS: frozenset[FilterOp] = frozenset(("everything", "nothing", "all", "any", "eq", "in", "le", "ge", "contains"))


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can do, declared before work starts; what it lacks is refused, never dropped.

    exact: the k best are the true k best. id_max_length: characters of an id after the backend's own encoding.
    max_in_values: values of one In. max_request_bytes, max_records_per_request, max_meta_bytes: what the service takes,
    None where nothing but memory bounds it; the backend cuts its requests to them. read_after_write: `immediate`, or
    `token`: only `wait_visible` tells. atomic_upsert: an upsert that raises has written nothing. counts_eligible:
    `SearchPage.eligible` is never None. native_alias: the service can rename a target in one step.
    """

    name: str
    exact: bool
    max_dim: int
    max_k: int
    id_max_length: int
    server_side_filter: bool
    filter_ops: frozenset[FilterOp] = ALL_OPS
    max_in_values: int | None = None
    max_request_bytes: int | None = None
    max_records_per_request: int | None = None
    max_meta_bytes: int | None = None
    read_after_write: Literal["immediate", "token"] = "immediate"
    atomic_upsert: bool = True
    counts_eligible: bool = True
    native_alias: bool = False


class VectorBackend(Protocol):
    """Filtered nearest neighbours by cosine. The filter is applied inside the search, before the k best are taken.

    A target is a named set of records of one spec. Every verb but `capabilities`, `usage` and `close` may raise
    BackendUnavailable (the service does not answer in time), AccessRefused (it does not accept the key or the account)
    and, after `close`, BackendError. A verb that takes a spec raises IndexMismatch, naming what differs, when the
    target was made with another, and IndexAbsent when there is no such target.
    """

    def capabilities(self) -> Capabilities:
        """The frozen declaration."""
        ...

    def targets(self) -> tuple[str, ...]:
        """The names of all targets, sorted."""
        ...

    def describe(self, target: str) -> TargetInfo | None:
        """What the target was made with and holds, or None when there is none."""
        ...

    def ensure(self, target: str, spec: IndexSpec) -> TargetInfo:
        """Make the target, empty, or find it made with this spec; never change one that is there."""
        ...

    def upsert(
        self,
        target: str,
        spec: IndexSpec,
        records: Iterable[Record],
        *,
        on_batch: Callable[[WriteReport], None] | None = None,
    ) -> WriteReport:
        """Write records; one that is there under its id is replaced whole. Records are drawn as they are needed.

        `on_batch` is called from the calling thread after each batch that the service has answered, with that batch's
        own report; the batches' reports add up to the one returned. InvalidRecord names the first record with an id
        that comes twice or cannot be kept, a field off the schema, or a vector that is not `dim` numbers with a
        direction; batches that were answered before it stay written unless `atomic_upsert`.
        """
        ...

    def delete(self, target: str, spec: IndexSpec, ids: Sequence[str], *, foreign: Sequence[str] = ()) -> WriteReport:
        """Remove exactly these records; an id that is not there is accepted too. `foreign` names others as `scan`
        spelt them."""
        ...

    def scan(self, target: str, spec: IndexSpec, *, after: str | None = None, limit: int = 1000) -> ScanPage:
        """The next at most `limit` stored records after a page's `after`. BackendError when the backend noticed that
        the target was written to between two pages; one that cannot notice may show a record twice or not at all."""
        ...

    def wait_visible(self, target: str, token: str, *, deadline_s: float) -> Visibility:
        """Return as soon as searches and scans show every write up to the token, or when the deadline is over."""
        ...

    def search(self, target: str, spec: IndexSpec, vectors: Vectors, *, k: int, where: Where) -> list[SearchPage]:
        """One page a row of `vectors`, all in flight together. Fewer than k records are eligible: fewer hits.
        ValueError when k is not in 1..max_k; InvalidFilter for what the schema or this backend does not know."""
        ...

    def drop(self, target: str) -> None:
        """Remove the target and all it holds; nothing happens when there is none."""
        ...

    def usage(self) -> Usage:
        """What was asked of the service so far."""
        ...

    def close(self) -> None:
        """Release what is open; a second close does nothing, any other verb after it is an error."""
        ...


def root_hash(records: Iterable[tuple[str, str]]) -> str:
    """Hex sha256 over every (id, content hash), whatever their order."""
    lines = sorted(dumps([record_id, content_hash]) for record_id, content_hash in records)
    return sha256("\n".join(lines).encode("utf-8")).hexdigest()
