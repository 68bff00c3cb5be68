"""The original's lexical scorer, kept as a reference: BM25-Okapi over all clauses in memory, masked by eligibility."""

from collections.abc import Sequence

import numpy as np

from backends.base import Hit
from backends.columns import Columns
from backends.filters import Where
from backends.schema import POLICY
from cda.retrieval.documents import content_hash, indexed_text, meta_of
from cda.retrieval.legs import DEPTH, Leg
from cda.retrieval.words import stems
from corpus.model import Clause

LEAST_IDF = 0.01


class ReferenceBm25:
    """Okapi's idf is zero for a word of half the clauses and negative above, and an empty corpus divides by zero; here
    every idf is at least LEAST_IDF, so a clause with a word of the query always beats one without."""

    def __init__(self, clauses: Sequence[Clause]) -> None:
        from rank_bm25 import BM25Okapi

        self._ids = [clause.clause_id for clause in clauses]
        self._hashes = [content_hash(clause) for clause in clauses]
        self._columns = Columns.of(POLICY, [meta_of(clause) for clause in clauses])
        words = [stems(indexed_text(clause)) for clause in clauses]
        self._scorer = BM25Okapi(words) if any(words) else None
        if self._scorer is not None:
            self._scorer.idf = {word: max(LEAST_IDF, idf) for word, idf in self._scorer.idf.items()}

    def text(self, query: str, where: Where, depth: int = DEPTH) -> Leg:
        """See `LexicalIndex.text`."""
        words = sorted(set(stems(query)))
        if not words:
            return Leg("empty_query")
        if self._scorer is None:
            return Leg()
        scores = self._scorer.get_scores(words)
        rows = np.flatnonzero(self._columns.mask(where) & (scores > 0))
        best = sorted(rows.tolist(), key=lambda row: (-round(float(scores[row]), 6), self._ids[row]))[:depth]
        return Leg(
            hits=tuple(
                Hit(self._ids[row], round(float(scores[row]), 6), rank, self._hashes[row])
                for rank, row in enumerate(best, 1)
            )
        )
