"""The lexical leg on a service: a hosted model weighs the words, and a sparse index there ranks them under the filter.

Clause texts go to that model when the corpus's index is built, and every question goes to it; the index gets numbers.
"""

import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Protocol

from backends.filters import Where
from backends.sparse import SparseIndex, SparseRecord, SparseVector
from cda.retrieval.documents import ClauseStore, content_hash, indexed_text, meta_of
from cda.retrieval.legs import DEPTH, Leg

_CHUNK = 768  # clauses whose vectors are in memory at a time: eight requests of the model, all under way together


class SparseEmbedder(Protocol):
    """Text to sparse vectors."""

    def embed(self, texts: Sequence[str]) -> list[SparseVector]:
        """Vectors of passages, in order."""
        ...

    def embed_queries(self, texts: Sequence[str]) -> list[SparseVector]:
        """Vectors of questions, in order, in one request where the service takes them so."""
        ...


class SparseLeg:
    """The sparse index of one corpus."""

    def __init__(
        self, index: SparseIndex, embedder: SparseEmbedder, store: ClauseStore, *, say: Callable[[str], None]
    ) -> None:
        """Build the corpus's index when the service has none; `say` hears of it before any text leaves."""
        self._index = index
        self._embedder = embedder
        self._name = f"words-{store.digest[:32]}"
        self._pool = ThreadPoolExecutor(max_workers=8, thread_name_prefix="sparse-leg")
        weakref.finalize(self, self._pool.shutdown, wait=False)
        if not index.holds(self._name):
            say("the service has no words of this corpus yet: every clause's text is sent to its model once")
            index.build(self._name, _records(store, embedder))

    def begin(self, queries: Sequence[str], where: Where, depth: int = DEPTH) -> Callable[[], list[Leg]]:
        """Ask for one leg a query, so that others can work meanwhile; what is returned waits for them. It takes two
        round trips: one for all vectors, one for all queries."""
        return self._pool.submit(self._legs, tuple(queries), where, depth).result

    def _legs(self, queries: Sequence[str], where: Where, depth: int) -> list[Leg]:
        vectors = self._embedder.embed_queries(queries)
        pages = self._index.search(self._name, vectors, where=where, k=depth)
        return [
            Leg(hits=hits) if vector.places else Leg("empty_query") for vector, hits in zip(vectors, pages, strict=True)
        ]


def _records(store: ClauseStore, embedder: SparseEmbedder) -> Iterator[SparseRecord]:
    clauses = iter(store.clauses())
    while chunk := list(islice(clauses, _CHUNK)):
        vectors = embedder.embed([indexed_text(clause) for clause in chunk])
        for clause, vector in zip(chunk, vectors, strict=True):
            meta = meta_of(clause)
            yield SparseRecord(clause.clause_id, vector, meta, content_hash(clause, meta))
