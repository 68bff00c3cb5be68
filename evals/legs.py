"""Each leg of a search alone, and the filter held against the oracle: what the fused order hides."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from backends.base import SearchPage, Vectors
from backends.filters import Where, eligible, evaluate
from backends.schema import Meta
from cda.contracts.embedding import Embedder
from cda.retrieval.codes import all_forms
from cda.retrieval.documents import ClauseStore, meta_of
from cda.retrieval.index import OpenIndex
from cda.retrieval.legs import DEPTH
from cda.retrieval.search import PolicySearch
from evals.case_model import RetrievalCase

LEGS = ("lexical", "dense", "fused")
K = 8


@dataclass(frozen=True, slots=True)
class Ranked:
    """What one query brought: ranked ids by leg, and how many ids the filter and its oracle disagree on."""

    legs: Mapping[str, tuple[str, ...]]
    filter_differences: int


class LegSearch:
    """The legs of one index, asked one by one under the same filter as the product's search."""

    def __init__(self, search: PolicySearch, index: OpenIndex, embedder: Embedder, store: ClauseStore) -> None:
        self._search, self._index, self._embedder = search, index, embedder
        clauses = tuple(store.clauses())
        self._metas: Mapping[str, Meta] = {clause.clause_id: meta_of(clause) for clause in clauses}
        self._coded = {clause.clause_id: all_forms(clause.codes) for clause in clauses if clause.codes}
        self._every_code = tuple(sorted({form for forms in self._coded.values() for form in forms}))

    def ask(self, case: RetrievalCase) -> Ranked:
        """The ranked ids of the lexical leg, the dense leg and the product's own fused order."""
        as_of = date.fromisoformat(case.as_of_date) if case.as_of_date else None
        where = eligible(payer_id=case.payer_id, plan_id=case.plan_id, as_of=as_of)
        lexical = self._index.lexical.text(case.query, where).hits
        vector = self._embedder.embed([case.query])
        dense = self._dense(vector, DEPTH, where).hits
        answer = self._search.search(
            [case.query],
            payer_id=case.payer_id,
            plan_id=case.plan_id,
            as_of=as_of,
            codes=case.procedure_codes,
            k=K,
        )[0]
        return Ranked(
            {
                "lexical": tuple(hit.id for hit in lexical),
                "dense": tuple(hit.id for hit in dense),
                "fused": tuple(hit.clause.clause_id for hit in answer.hits),
            },
            self._differences(where, case.query),
        )

    def _dense(self, vectors: Vectors, k: int, where: Where) -> SearchPage:
        placed = self._index.vectors
        return placed.backend.search(placed.target, self._index.manifest.spec, vectors, k=k, where=where)[0]

    def _differences(self, where: Where, query: str) -> int:
        """The symmetric difference between what each leg lets through and what the oracle does, clause by clause."""
        allowed = {name for name, meta in self._metas.items() if evaluate(where, meta)}
        many = len(self._metas)
        vector = self._embedder.embed([query])
        dense = {hit.id for hit in self._dense(vector, many, where).hits}
        coded = {hit.id for hit in self._index.lexical.codes(self._every_code, where, many).hits}
        words = {hit.id for hit in self._index.lexical.text(query, where, many).hits}
        missed = (allowed & self._coded.keys()) - coded
        return len(dense ^ allowed) + len(coded - allowed) + len(missed) + len(words - allowed)
