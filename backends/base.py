"""The protocol of a vector backend and the values that cross it. No value here has a text field."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

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
    """The hits of one vector, and how many records the filter admitted; `exact` is False for approximate search."""

    hits: tuple[Hit, ...]
    eligible: int
    exact: bool


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """What a target is built with and later opened against."""

    schema: Schema
    embedder: str
    dim: int
    corpus_digest: str


@dataclass(frozen=True, slots=True)
class TargetInfo:
    """What a target holds. `root` is a sha256 over every (id, content hash), order-independent."""

    target: str
    embedder: str
    dim: int
    schema_digest: str
    corpus_digest: str
    count: int
    root: str


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can do, declared before work starts; what it lacks is refused, never dropped."""

    name: str
    exact: bool
    max_dim: int
    max_k: int
    id_max_length: int
    server_side_filter: bool


class VectorBackend(Protocol):
    """Filtered nearest neighbours by cosine. The filter is applied inside the search, before the k best are taken."""

    def capabilities(self) -> Capabilities:
        """The frozen declaration."""
        ...

    def create(self, target: str, spec: IndexSpec, records: Iterable[Record]) -> TargetInfo:
        """Build the whole target, or nothing; a target of that name is replaced. InvalidRecord names the first record
        with an id that comes twice, a field off the schema, or a vector that is not `dim` numbers with a direction."""
        ...

    def describe(self, target: str) -> TargetInfo | None:
        """What the target holds, or None when there is none."""
        ...

    def search(self, target: str, spec: IndexSpec, vectors: Vectors, *, k: int, where: Where) -> list[SearchPage]:
        """One page a row of `vectors`. Fewer than k records are eligible: fewer hits. IndexAbsent without a target;
        IndexMismatch when it was built with another spec; ValueError when k is not in 1..max_k."""
        ...

    def close(self) -> None:
        """Release what is open; a second close does nothing, a search after it is an error."""
        ...
