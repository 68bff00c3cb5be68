"""The lexical leg and the code leg on a server: the same stems and codes as the local ones, ranked there."""

from collections import Counter
from collections.abc import Iterator, Sequence

from backends.filters import Where
from backends.words import WordEntry, WordIndex
from cda.retrieval.documents import ClauseStore, content_hash, indexed_text, meta_of, own_codes, said_codes
from cda.retrieval.legs import DEPTH, Leg
from cda.retrieval.lexical import OWN_WEIGHT, SAID_WEIGHT, share_ranks
from cda.retrieval.words import stems


class ServerWords:
    """The word index of one corpus. Queries leave as stems and codes; ids, hashes and scores come back."""

    def __init__(self, index: WordIndex, store: ClauseStore) -> None:
        """Build the corpus's index when the server has none."""
        self._index = index
        self._name = f"policy-{store.digest[:32]}"
        if not index.holds(self._name):
            index.build(self._name, entries(store))

    def text(self, query: str, where: Where, depth: int = DEPTH) -> Leg:
        """See `LexicalIndex.text`; the same clauses, in the server's own order of relevance."""
        words = stems(query)
        if not words:
            return Leg("empty_query")
        return Leg(hits=self._index.search(self._name, words, where=where, k=depth))

    def codes(self, codes: Sequence[str], where: Where, depth: int = DEPTH) -> Leg:
        """See `LexicalIndex.codes`; the same hits."""
        if not codes:
            return Leg("empty_query")
        weights = (OWN_WEIGHT, SAID_WEIGHT)
        return Leg(hits=share_ranks(self._index.codes(self._name, codes, weights=weights, where=where, k=depth)))


def entries(store: ClauseStore) -> Iterator[WordEntry]:
    """Every clause as the index takes it: counted stems, no text."""
    for clause in store.clauses():
        meta = meta_of(clause)
        words = Counter(stems(indexed_text(clause)))
        yield WordEntry(
            clause.clause_id, content_hash(clause, meta), meta, words, own_codes(clause), said_codes(clause)
        )
