"""Search over the policy corpus: three legs under one filter, one fusion, every hit hydrated from the store."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Literal, Protocol

from backends.base import Hit, Vector
from backends.errors import InvalidFilter
from backends.filters import Where, eligible
from cda.contracts.embedding import Embedder, embed_queries
from cda.contracts.policy_tools import (
    MAX_K,
    MAX_QUERIES,
    MAX_QUERY_CHARS,
    SearchAnswer,
    SearchHit,
    SearchLegs,
)
from cda.errors import PolicyToolError
from cda.retrieval.codes import all_forms, codes_asked
from cda.retrieval.documents import ClauseStore, hash_read, stems_of, view_of
from cda.retrieval.fusion import Fused, Rule, Signals, fuse
from cda.retrieval.index import Placed, open_index
from cda.retrieval.legs import DEPTH, Leg, Legs
from cda.retrieval.reference_bm25 import ReferenceBm25
from cda.retrieval.words import has_words, stems
from corpus.model import Clause

Lexical = Literal["tantivy", "rank-bm25", "postgres", "pinecone"]
Hydrated = dict[tuple[str, str], Clause | None]  # of one call: id and indexed hash to the clause, if it is that


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    text: str
    vector: Vector
    said_codes: Sequence[str]  # in every form, those of the text and those given
    codes: Sequence[str]  # as given
    as_of: date | None
    legs: Legs


class TextLeg(Protocol):
    """Scores words among the eligible."""

    def text(self, query: str, where: Where, depth: int = DEPTH) -> Leg:
        """Ranks 1, 2, 3; ties by id."""
        ...


class WordLegs(TextLeg, Protocol):
    """Scores words, and codes too."""

    def codes(self, codes: Sequence[str], where: Where, depth: int = DEPTH) -> Leg:
        """Those with most of the codes first; equal ones share a rank."""
        ...


class DistantText(Protocol):
    """Scores words on a service that is worth not waiting for."""

    def begin(self, queries: Sequence[str], where: Where, depth: int = DEPTH) -> Callable[[], Sequence[Leg]]:
        """Ask for one leg a query; what is returned waits for them."""
        ...


class Reranker(Protocol):
    """Orders passages for questions."""

    def orders(self, asked: Sequence[tuple[str, Sequence[str]]]) -> list[list[int]]:
        """For each question and its texts the positions of the texts, best first."""
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
        lexical: Lexical = "tantivy",
        vectors: Placed | None = None,
        words: WordLegs | None = None,
        distant: DistantText | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        """Open the index in `folder`, and search its own vectors and words or those placed elsewhere; raises
        IndexAbsent or IndexMismatch unless it is this store's and embedder's. `distant` takes the place of the text
        leg alone. A reranker orders the best MAX_K anew."""
        self._store = store
        self._embedder = embedder
        self._index = open_index(folder, store, embedder, vectors=vectors)
        self._rule: Rule = rule
        self._reranker = reranker
        self._distant = distant
        self._words: WordLegs = words or self._index.lexical
        self._text: TextLeg = ReferenceBm25(tuple(store.clauses())) if lexical == "rank-bm25" else self._words

    @property
    def manifest_digest(self) -> str:
        """Sha256 of the index's manifest, for provenance."""
        return self._index.manifest.digest

    @property
    def vectors(self) -> Placed:
        """Where the vectors are that it searches."""
        return self._index.vectors

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
        texts = self._distant.begin(queries, where) if self._distant else None
        vectors = embed_queries(self._embedder, queries)
        placed = self._index.vectors
        pages = placed.backend.search(placed.target, self._index.manifest.spec, vectors, k=DEPTH, where=where)
        text_legs = texts() if texts else [self._text.text(query, where) for query in queries]
        by_codes: dict[tuple[str, ...], Leg] = {}  # the queries of a plan mostly name the same codes
        asked: list[_Asked] = []
        for query, vector, page, text in zip(queries, vectors, pages, text_legs, strict=True):
            said = tuple(sorted({*wanted, *codes_asked(query)}))
            if said not in by_codes:
                by_codes[said] = self._words.codes(said, where)
            legs = Legs(Leg(hits=page.hits), text, by_codes[said])
            asked.append(_Asked(query, vector, said, codes, as_of, legs))
        answers = self._answers(asked, MAX_K if self._reranker else k)
        return _reranked(self._reranker, answers, k) if self._reranker else answers

    def _answers(self, asked: Sequence[_Asked], k: int) -> list[SearchAnswer]:
        """Rank and hydrate. The queries share their reads of the store: one for the signals, one for what is shown."""
        known: Hydrated = {}
        self._read([hit for query in asked for hit in self._signalling(query)], known)
        ranked = [fuse(self._rule, query.legs, self._signals(query, known)) for query in asked]
        found = [{hit.id: hit for leg in query.legs.all for hit in leg.hits} for query in asked]
        self._read([hits[item.id] for best, hits in zip(ranked, found, strict=True) for item in best[:k]], known)
        answers = []
        for query, best, of in zip(asked, ranked, found, strict=True):
            hits, dropped = self._hydrate(best, of, k, known)
            notes = _notes(query.legs, dropped)
            answers.append(SearchAnswer(query=query.text, hits=hits, dropped=dropped, notes=notes))
        return answers

    def _signalling(self, asked: _Asked) -> Sequence[Hit]:
        """The hits that the rule in use reads before it ranks: the best by words, or for date_aware every candidate."""
        if self._rule == "date_aware":
            return [hit for leg in asked.legs.all for hit in leg.hits]
        return asked.legs.lexical.hits[:1] if self._rule == "adaptive" else ()

    def _signals(self, asked: _Asked, known: Hydrated) -> Signals:
        """What the rule in use needs beside the legs."""
        legs = asked.legs
        if self._rule == "adaptive":
            titles = self._index.titles([hit.id for hit in legs.dense.hits], asked.vector)
            return Signals(coverage=self._coverage(asked, known), titles=titles)
        if self._rule == "date_aware":
            clauses = {hit.id: self._clause(hit, known) for leg in legs.all for hit in leg.hits}
            return Signals(preferences={i: _preferences(c, asked) for i, c in clauses.items() if c is not None})
        return Signals()

    def _hydrate(
        self, ranked: Sequence[Fused], found: Mapping[str, Hit], k: int, known: Hydrated
    ) -> tuple[tuple[SearchHit, ...], int]:
        """The k best that the store knows as they were indexed, and how many it did not on the way."""
        hits: list[SearchHit] = []
        dropped = 0
        for item in ranked:
            if len(hits) == k:
                break
            clause = self._clause(found[item.id], known)
            if clause is None:
                dropped += 1
            else:
                ranks = _ranks(item.dense_rank, item.lexical_rank, item.code_rank)
                hits.append(SearchHit(clause=view_of(clause), score=item.score, legs=ranks))
        return tuple(hits), dropped

    def _read(self, hits: Iterable[Hit], known: Hydrated) -> None:
        """Read the clauses of hits that are not known yet, all at once."""
        wanted = {key: hit for hit in hits if (key := (hit.id, hit.content_hash)) not in known}
        if wanted:
            clauses = self._store.clauses_of({hit.id for hit in wanted.values()})
            for key, hit in wanted.items():
                clause = clauses.get(hit.id)
                known[key] = clause if clause is not None and hash_read(clause) == hit.content_hash else None

    def _clause(self, hit: Hit, known: Hydrated) -> Clause | None:
        """The store's clause of a hit; None when there is none, or when it is not what was indexed."""
        key = (hit.id, hit.content_hash)
        if key not in known:
            self._read([hit], known)
        return known[key]

    def _coverage(self, asked: _Asked, known: Hydrated) -> float:
        """The share of the query's idf mass that the best lexical clause holds. Codes are the code leg's matter."""
        words = sorted(set(stems(asked.text)) - {code.lower() for code in asked.said_codes})
        hits = asked.legs.lexical.hits
        best = next((clause for hit in hits if (clause := self._clause(hit, known)) is not None), None)
        if not words or best is None:
            return 0.0
        idf = self._index.lexical.idf(words)
        held = stems_of(best)
        return sum(idf[word] for word in words if word in held) / sum(idf.values())


def _reranked(reranker: Reranker, answers: Sequence[SearchAnswer], k: int) -> list[SearchAnswer]:
    """The k best of each answer in the reranker's order; their scores stay those of the fusion."""
    orders = reranker.orders([(one.query, [hit.clause.text for hit in one.hits]) for one in answers])
    return [
        one.model_copy(update={"hits": tuple([one.hits[place] for place in order[:k]])})
        for one, order in zip(answers, orders, strict=True)
    ]


@lru_cache(maxsize=4096)
def _ranks(dense: int | None, lexical: int | None, code: int | None) -> SearchLegs:
    return SearchLegs(dense_rank=dense, lexical_rank=lexical, code_rank=code)


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


def _preferences(clause: Clause, asked: _Asked) -> frozenset[str]:
    holds = {
        "in_effect": asked.as_of is not None and clause.in_effect(asked.as_of),
        "own_code": not set(asked.codes).isdisjoint(clause.codes),
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
