"""Sparse vectors: the few components that are not zero, and an index of them on a service. No text here either."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from backends.base import Hit
from backends.filters import Where
from backends.schema import Meta


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Components by their place. Both tuples are of one length; a text of which a model knows no word has none."""

    places: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SparseRecord:
    """One sparse vector with its filterable fields and the hash that a hit brings back."""

    id: str
    vector: SparseVector
    meta: Meta
    content_hash: str


class SparseIndex(Protocol):
    """Sparse indexes by name, all of one schema and one model. Errors are those of `VectorBackend`."""

    def holds(self, name: str) -> bool:
        """Whether there is a finished index of this name."""
        ...

    def build(self, name: str, records: Iterable[SparseRecord]) -> int:
        """Write the index and see it whole; how many records it has. One that was cut short is written again."""
        ...

    def search(self, name: str, vectors: Sequence[SparseVector], *, where: Where, k: int) -> list[tuple[Hit, ...]]:
        """For each vector the k admitted records with the largest products, all asked together. Ranks 1, 2, 3; ties by
        id; no product of zero. InvalidFilter as `VectorBackend.search`, IndexAbsent, IndexMismatch."""
        ...

    def close(self) -> None:
        """Close what is open."""
        ...
