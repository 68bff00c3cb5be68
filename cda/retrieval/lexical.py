"""The lexical leg and the code leg: BM25 over stems, and exact codes, with the eligibility filter inside the search.

The index holds no stored text, only postings and row numbers; `rows.json` beside it turns rows into ids.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import tantivy

from backends.base import Hit
from backends.errors import IndexAbsent, IndexMismatch
from backends.filters import Where
from backends.schema import Meta, Schema
from backends.termqueries import add_fields, add_values, compile_query
from cda.retrieval.legs import DEPTH, Leg
from cda.retrieval.words import ANALYZER, analyzer, fold, stems

HEAP_BYTES = 64_000_000
TEXT, OWN, SAID, ROW = "leg_text", "leg_own_codes", "leg_said_codes", "leg_row"
_KEPT_WORDS = 1 << 14  # an opened index does not change
OWN_WEIGHT, SAID_WEIGHT = 2.0, 1.0  # a clause's own code before one that its text only mentions


@dataclass(frozen=True, slots=True)
class Entry:
    """What the lexical index takes of one clause. `text` is read and not kept."""

    id: str
    text: str
    own_codes: Sequence[str]
    said_codes: Sequence[str]
    meta: Meta
    content_hash: str


class LexicalIndex:
    """An opened index. Thread-safe for searches. `ids` are all its entries, in the order in which they were built."""

    def __init__(
        self, index: tantivy.Index, declared: tantivy.Schema, schema: Schema, ids: list[str], hashes: list[str]
    ) -> None:
        self._searcher = index.searcher()
        self._declared = declared
        self._schema = schema
        self.ids = ids
        self._hashes = hashes
        self._last_filter: tuple[Where, tantivy.Query] | None = None
        self._idf = lru_cache(maxsize=_KEPT_WORDS)(self._idf_of)

    @classmethod
    def build(cls, folder: Path, schema: Schema, entries: Iterable[Entry]) -> int:
        """Write a new index into `folder`; returns the number of entries. The schema has checked their fields."""
        folder.mkdir(parents=True)
        index = tantivy.Index(_declare(schema), path=str(folder))
        index.register_tokenizer("stems", analyzer())
        writer = index.writer(heap_size=HEAP_BYTES, num_threads=1)
        ids: list[str] = []
        hashes: list[str] = []
        for row, entry in enumerate(entries):
            document = tantivy.Document()
            document.add_unsigned(ROW, row)
            document.add_text(TEXT, fold(entry.text))
            for name, codes in ((OWN, entry.own_codes), (SAID, entry.said_codes)):
                for code in codes:
                    document.add_text(name, code)
            add_values(document, schema, entry.meta)
            writer.add_document(document)
            ids.append(entry.id)
            hashes.append(entry.content_hash)
        writer.commit()
        writer.wait_merging_threads()
        held = {"analyzer": ANALYZER, "schema": schema.digest, "ids": ids, "hashes": hashes}
        (folder / "rows.json").write_text(json.dumps(held, ensure_ascii=False), encoding="utf-8")
        return len(ids)

    @classmethod
    def open(cls, folder: Path, schema: Schema) -> "LexicalIndex":
        """Open what `build` wrote. IndexAbsent, or IndexMismatch when it was built with another analyzer or schema."""
        rows = folder / "rows.json"
        if not rows.exists():
            raise IndexAbsent(f"there is no lexical index under {folder}; build it first")
        held = json.loads(rows.read_text(encoding="utf-8"))
        if held["analyzer"] != ANALYZER or held["schema"] != schema.digest:
            raise IndexMismatch("the lexical index was built with another analyzer or schema; build the index again")
        index = tantivy.Index.open(str(folder))
        index.register_tokenizer("stems", analyzer())
        return cls(index, _declare(schema), schema, held["ids"], held["hashes"])

    def text(self, query: str, where: Where, depth: int = DEPTH) -> Leg:
        """BM25 over title, section and text among the eligible. Ranks 1, 2, 3; ties by id."""
        return self._search(TEXT, dict.fromkeys(sorted(set(stems(query))), 1.0), (), where, depth)

    def codes(self, codes: Sequence[str], where: Where, depth: int = DEPTH) -> Leg:
        """Clauses that govern or mention the codes, those with most of them first; equal ones share a rank."""
        if not codes:
            return Leg("empty_query")
        leg = self._search(
            OWN, {}, [(OWN, c, OWN_WEIGHT) for c in codes] + [(SAID, c, SAID_WEIGHT) for c in codes], where, depth
        )
        return Leg(leg.status, share_ranks(leg.hits))

    def idf(self, words: Iterable[str]) -> dict[str, float]:
        """Lucene's idf of each stem over the whole index; a stem that is nowhere has the greatest."""
        return {word: self._idf(word) for word in words}

    def _idf_of(self, word: str) -> float:
        n, df = len(self.ids), self._searcher.doc_freq(TEXT, word)
        return math.log(1 + (n - df + 0.5) / (df + 0.5))

    def _search(
        self,
        field: str,
        words: dict[str, float],
        constants: Sequence[tuple[str, str, float]],
        where: Where,
        depth: int,
    ) -> Leg:
        term = tantivy.Query.term_query
        should = [term(self._declared, field, word, "freq") for word in words]
        should += [
            tantivy.Query.const_score_query(term(self._declared, name, value, "basic"), weight)
            for name, value, weight in constants
        ]
        if not should:
            return Leg("empty_query")
        query = tantivy.Query.boolean_query(
            [
                (tantivy.Occur.Must, self._filter(where)),
                (tantivy.Occur.Must, tantivy.Query.boolean_query([(tantivy.Occur.Should, part) for part in should])),
            ]
        )
        return Leg("ok", self._hits(query, depth))

    def _filter(self, where: Where) -> tantivy.Query:
        """The compiled filter: both legs of every query of a call share one."""
        held = self._last_filter
        if held is None or (held[0] is not where and held[0] != where):
            held = self._last_filter = (where, compile_query(where, self._schema, self._declared))
        return held[1]

    def _hits(self, query: tantivy.Query, depth: int) -> tuple[Hit, ...]:
        """The `depth` best by (-score, id). The engine cuts ties by its own row order, so whatever could tie with the
        last one is fetched before ids decide."""
        limit = depth + 16
        while True:
            found = self._searcher.search(query, limit=limit, count=False).hits
            if len(found) < limit or round(found[-1][0], 6) < round(found[depth - 1][0], 6):
                break
            limit *= 4
        rows = self._searcher.fast_field_values(ROW, [address for _, address in found])
        numbers = [int(row or 0) for row in rows]
        scored = sorted(
            [(-round(score, 6), self.ids[row], row) for (score, _), row in zip(found, numbers, strict=True)]
        )
        return tuple(
            [
                Hit(record_id, -score, rank, self._hashes[row])
                for rank, (score, record_id, row) in enumerate(scored[:depth], 1)
            ]
        )


def _declare(schema: Schema) -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field(ROW, indexed=False, fast=True)
    builder.add_text_field(TEXT, tokenizer_name="stems", index_option="freq")
    builder.add_text_field(OWN, tokenizer_name="raw", index_option="basic")
    builder.add_text_field(SAID, tokenizer_name="raw", index_option="basic")
    add_fields(builder, schema)
    return builder.build()


def share_ranks(hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
    """The hits with one rank for all of one score."""
    ranked: list[Hit] = []
    for hit in hits:
        rank = ranked[-1].rank if ranked and ranked[-1].score == hit.score else hit.rank
        ranked.append(Hit(hit.id, hit.score, rank, hit.content_hash))
    return tuple(ranked)
