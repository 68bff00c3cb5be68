"""Search over the policy corpus: three legs under one filter, one fusion, every hit hydrated from the store."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Literal, Protocol

from backends.errors import InvalidFilter
from backends.filters import Where, eligible
from cda.contracts.embedding import Embedder
from cda.contracts.policy_tools import SearchAnswer, SearchHit
from cda.errors import PolicyToolError
from cda.retrieval.codes import all_forms, codes_in
from cda.retrieval.documents import ClauseStore, content_hash, indexed_text, view_of
from cda.retrieval.fusion import Rule, Signals, fuse
from cda.retrieval.index import TARGET, open_index
from cda.retrieval.legs import DEPTH, Leg, Legs
from cda.retrieval.reference_bm25 import ReferenceBm25
from cda.retrieval.words import has_words, stems
from corpus.model import Clause

MAX_K = 25
MAX_QUERIES = 16
MAX_QUERY_CHARS = 8_000

Hydrated = dict[str, Clause | None]


class TextLeg(Protocol):
    """Scores words among the eligible."""

    def text(self, query: str, where: Where, depth: int = DEPTH) -> Leg:
        """Ranks 1, 2, 3; ties by id."""
        ...


class PolicySearch:
    """Answers queries from one index of one store. Thread-safe; holds no clause text."""

    def __init__(
        self,
        store: ClauseStore,
        embedder: Embedder,
        folder: Path,
        *,
        rule: Rule = "adaptive",
        lexical: Literal["tantivy", "rank-bm25"] = "tantivy",
    ) -> None:
        """Open the index in `folder`; raises IndexAbsent or IndexMismatch unless it is this store's and embedder's."""
        self._store = store
        self._embedder = embedder
        self._index = open_index(folder, store, embedder)
        self._rule: Rule = rule
        self._text: TextLeg = self._index.lexical if lexical == "tantivy" else ReferenceBm25(tuple(store.clauses()))

    @property
    def manifest_digest(self) -> str:
        """Sha256 of the index's manifest, for provenance."""
        return self._index.manifest.digest

    def search(
        self,
        queries: Sequence[str],
        *,
        payer_id: str | None = None,
        plan_id: str | None = None,
        as_of: date | None = None,
        codes: Sequence[str] = (),
        k: int = 8,
        include_superseded: bool = False,
    ) -> list[SearchAnswer]:
        """One answer a query, in order; all queries are embedded in one call.

        Only eligible clauses are ever ranked (`backends.filters.eligible`). Raises PolicyToolError invalid_argument,
        before anything is embedded, for a query without words, one of more than 8,000 characters, or k outside 1..25.
        """
        _check(queries, k)
        try:
            where = eligible(payer_id=payer_id, plan_id=plan_id, as_of=as_of, include_superseded=include_superseded)
        except InvalidFilter as why:
            raise PolicyToolError("invalid_argument", str(why)) from None
        wanted = all_forms(codes)
        vectors = self._embedder.embed(queries)
        pages = self._index.backend.search(TARGET, self._index.manifest.spec, vectors, k=DEPTH, where=where)
        hydrated: Hydrated = {}
        answers = []
        for query, vector, page in zip(queries, vectors, pages, strict=True):
            said = sorted({*wanted, *codes_in(query), *codes_in(query.upper())})
            legs = Legs(Leg(hits=page.hits), self._text.text(query, where), self._index.lexical.codes(said, where))
            legs, clauses, dropped = self._hydrate(legs, hydrated)
            titles = (
                {name: float(self._index.title_vectors[row] @ vector) for name, row in self._index.titles.items()}
                if self._rule == "adaptive"
                else {}
            )
            signals = Signals(
                self._coverage(query, said, legs, clauses),
                {i: titles.get(clause.policy_title, 0.0) for i, clause in clauses.items()},
                {i: _preferences(clause, as_of, codes) for i, clause in clauses.items()},
            )
            hits = tuple(
                SearchHit(clause=view_of(clauses[item.id]), score=item.score, legs=item.legs)
                for item in fuse(self._rule, legs, signals)[:k]
            )
            answers.append(SearchAnswer(query=query, hits=hits, dropped=dropped, notes=_notes(legs, dropped)))
        return answers

    def _hydrate(self, legs: Legs, known: Hydrated) -> tuple[Legs, dict[str, Clause], int]:
        """The legs without the hits that the store does not know as they were indexed, and the clauses of the rest."""
        hashes = {hit.id: hit.content_hash for leg in (legs.dense, legs.lexical, legs.codes) for hit in leg.hits}
        clauses: dict[str, Clause] = {}
        for clause_id, digest in hashes.items():
            key = f"{clause_id}\n{digest}"
            if key not in known:
                clause = self._store.clause(clause_id)
                known[key] = clause if clause is not None and content_hash(clause) == digest else None
            found = known[key]
            if found is not None:
                clauses[clause_id] = found
        kept = Legs(*(_only(leg, clauses) for leg in (legs.dense, legs.lexical, legs.codes)))
        return kept, clauses, len(hashes) - len(clauses)

    def _coverage(self, query: str, codes: Sequence[str], legs: Legs, clauses: Mapping[str, Clause]) -> float:
        """The share of the query's idf mass that the best lexical clause holds. Codes are the code leg's matter."""
        words = set(stems(query)) - {code.lower() for code in codes}
        if self._rule != "adaptive" or not words or not legs.lexical.hits:
            return 0.0
        idf = self._index.lexical.idf(sorted(words))
        held = words & set(stems(indexed_text(clauses[legs.lexical.hits[0].id])))
        return sum(idf[word] for word in sorted(held)) / sum(idf.values())


def _check(queries: Sequence[str], k: int) -> None:
    if isinstance(queries, str) or not 1 <= len(queries) <= MAX_QUERIES:
        raise PolicyToolError("invalid_argument", f"1 to {MAX_QUERIES} queries are asked at once")
    if type(k) is not int or not 1 <= k <= MAX_K:
        raise PolicyToolError("invalid_argument", f"k must be in 1..{MAX_K}")
    for position, query in enumerate(queries, 1):
        if len(query) > MAX_QUERY_CHARS:
            raise PolicyToolError("invalid_argument", f"query {position} has more than {MAX_QUERY_CHARS} characters")
        if not has_words(query):
            raise PolicyToolError("invalid_argument", f"query {position} has no word to search for")


def _only(leg: Leg, clauses: Mapping[str, Clause]) -> Leg:
    return replace(leg, hits=tuple(hit for hit in leg.hits if hit.id in clauses))


def _preferences(clause: Clause, as_of: date | None, codes: Sequence[str]) -> frozenset[str]:
    holds = {
        "in_effect": as_of is not None and clause.in_effect(as_of),
        "own_code": not set(codes).isdisjoint(clause.codes),
        "rider": clause.source == "rider",
        "criteria_section": clause.section == "Coverage Criteria",
    }
    return frozenset(name for name, true in holds.items() if true)


def _notes(legs: Legs, dropped: int) -> tuple[str, ...]:
    notes = [
        f"{name} leg: {leg.status}"
        for name, leg in (("dense", legs.dense), ("lexical", legs.lexical))
        if leg.status != "ok"
    ]
    if dropped:
        notes.append(f"{dropped} hit(s) dropped: the store does not know them as they were indexed")
    return tuple(notes)
