"""The protocol of a word index on a server: stems and codes of texts that never go there, under the one filter."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from backends.base import Hit
from backends.filters import Where
from backends.schema import Meta


@dataclass(frozen=True, slots=True)
class WordEntry:
    """What a word index takes of one text: its stems with how often each occurs, the codes that it governs and those
    that it only says, its filterable fields, and the hash that a hit brings back."""

    id: str
    content_hash: str
    meta: Meta
    words: Mapping[str, int]
    own_codes: Sequence[str]
    said_codes: Sequence[str]


class WordIndex(Protocol):
    """Word indexes by name, all of one schema and one analyzer. Errors are those of `VectorBackend`."""

    def holds(self, name: str) -> bool:
        """Whether there is an index of this name."""
        ...

    def build(self, name: str, entries: Iterable[WordEntry]) -> int:
        """Write the index whole, in place of one of this name, or change nothing; how many entries it has."""
        ...

    def search(self, name: str, words: Sequence[str], *, where: Where, k: int) -> tuple[Hit, ...]:
        """The k admitted entries that hold most of the words, rare ones before common ones. Ranks 1, 2, 3; ties by
        id. IndexAbsent, IndexMismatch."""
        ...

    def codes(
        self, name: str, codes: Sequence[str], *, weights: tuple[float, float], where: Where, k: int
    ) -> tuple[Hit, ...]:
        """The k admitted entries with most of the codes: each own code counts the first weight, each said one the
        second. Ranks 1, 2, 3; ties by id. IndexAbsent, IndexMismatch."""
        ...

    def close(self) -> None:
        """Close what is open."""
        ...
