"""Words and codes in Postgres: full-text search over stems that were made outside, with the filter inside the search.

No text comes here. An entry brings the stems of its text and how often each occurs; they are kept as a tsvector whose
positions count (1, 2, 3 for a stem that occurs three times) and locate nothing. No text-search configuration reads
them, so none throws "not", "no", "unless" or "except" away as a stop word, and none splits a code: codes are whole
values in arrays of their own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from backends.base import Hit
from backends.errors import IndexAbsent, IndexMismatch
from backends.filters import Where
from backends.migrations import require_current
from backends.pgtables import HASH, ID, TYPES, collated, reading_order
from backends.postgres import Database, Query, TableMissing, Transaction
from backends.schema import Schema
from backends.sqlfilters import column, compile_sql
from backends.words import WordEntry

WORDS, OWN, SAID = "leg_words", "leg_own_codes", "leg_said_codes"
WRITE_TIMEOUT_S = 3600.0
MOST_REPEATS = 16  # of a stem that are kept: more do not change its rank
KEPT_INDEXES = 3  # the newest; older ones are removed when another is built
# ts_rank with every weight 1 grows with a stem's repeats and is divided by 1 + log of the entry's length (flag 1).
RANK = f"ts_rank('{{1,1,1,1}}', {WORDS}, asked.query, 1)"


class PgWords:
    """Word indexes of one migrated database, each under a name, a schema and an analyzer. Thread-safe."""

    def __init__(self, database: Database, schema: Schema, analyzer: str) -> None:
        """`analyzer` names what made the stems; an index of another one is refused."""
        self._database = database
        self._schema = schema
        self._analyzer = analyzer
        self._current = False

    def holds(self, name: str) -> bool:
        """Whether there is an index of this name."""
        with self._ready().reading() as look:
            return bool(look.rows("SELECT FROM cda.word_indexes WHERE name = %s", name))

    def build(self, name: str, entries: Iterable[WordEntry]) -> int:
        """Write the index whole, in place of one of this name; how many entries it has. Nothing is changed when it
        fails. All but the KEPT_INDEXES newest of the schema are removed."""
        with self._ready().transaction(timeout_s=WRITE_TIMEOUT_S) as change:
            _drop(change, change.rows("DELETE FROM cda.word_indexes WHERE name = %s RETURNING number", name))
            number = change.rows(
                "INSERT INTO cda.word_indexes (name, analyzer, schema_digest, entries) VALUES (%s, %s, %s, 0)"
                " RETURNING number",
                *(name, self._analyzer, self._schema.digest),
            )[0][0]
            count = self._fill(change, number, entries)
            change.run("UPDATE cda.word_indexes SET entries = %s WHERE number = %s", count, number)
            old = change.rows(
                "DELETE FROM cda.word_indexes WHERE number IN (SELECT number FROM cda.word_indexes"
                " WHERE schema_digest = %s ORDER BY number DESC OFFSET %s) RETURNING number",
                *(self._schema.digest, KEPT_INDEXES),
            )
            _drop(change, old)
        return count

    def search(self, name: str, words: Sequence[str], *, where: Where, k: int) -> tuple[Hit, ...]:
        """The k entries, among those that the filter admits, that hold most of the words, rare ones before common
        ones. Ranks 1, 2, 3; ties by id."""
        condition, values = compile_sql(where, self._schema)
        asked = sorted(set(words))

        def query(number: int) -> Query:
            # Lucene's idf: positive for a word that every entry holds, too.
            idf = (
                "SELECT ln(1 + (held.entries - found.n + 0.5) / (found.n + 0.5)) AS idf, given.query::tsquery AS query"
                " FROM unnest(%s::text[], %s::text[]) AS given (word, query)"
                " CROSS JOIN (SELECT entries FROM cda.word_indexes WHERE number = %s) AS held"
                " LEFT JOIN cda.word_counts AS counted ON counted.number = %s AND counted.word = given.word"
                " CROSS JOIN LATERAL (SELECT coalesce(counted.entries, 0) AS n) AS found"
            )
            scored = (
                f"SELECT {ID}, {HASH}, round(1e6 * sum(asked.idf * {RANK})) AS score FROM cda.words_{number}"
                f" JOIN ({idf}) AS asked ON {WORDS} @@ asked.query WHERE {condition} GROUP BY {ID}, {HASH}"
            )
            bound = [asked, [_quoted(word) for word in asked], number, number, *values, k]
            return f"SELECT * FROM ({scored}) AS scored ORDER BY score DESC, {ID} LIMIT %s", bound

        return self._hits(name, query)

    def codes(
        self, name: str, codes: Sequence[str], *, weights: tuple[float, float], where: Where, k: int
    ) -> tuple[Hit, ...]:
        """The k admitted entries with most of the codes: each own code counts the first weight, each that the text
        only says the second. Ranks 1, 2, 3; ties by id."""
        condition, values = compile_sql(where, self._schema)
        asked = sorted(set(codes))

        def query(number: int) -> Query:
            counts = [f"(SELECT count(*) FROM unnest({held}) AS c WHERE c = ANY(%s::text[]))" for held in (OWN, SAID)]
            scored = (
                f"SELECT {ID}, {HASH}, 1e6 * (%s * {counts[0]} + %s * {counts[1]}) AS score FROM cda.words_{number}"
                f" WHERE ({OWN} && %s::text[] OR {SAID} && %s::text[]) AND {condition}"
            )
            bound = [weights[0], asked, weights[1], asked, asked, asked, *values, k]
            return f"SELECT * FROM ({scored}) AS scored ORDER BY score DESC, {ID} LIMIT %s", bound

        return self._hits(name, query)

    def close(self) -> None:
        """Close the database's connections."""
        self._database.close()

    def _ready(self) -> Database:
        if not self._current:
            require_current(self._database)
            self._current = True
        return self._database

    def _hits(self, name: str, query: Callable[[int], Query]) -> tuple[Hit, ...]:
        try:
            with self._ready().reading() as look:
                number = self._number(look, name)
                sql, values = query(number)
                rows = look.rows(sql, *values)
        except TableMissing:
            raise IndexAbsent(f"the word index {name!r} was built anew meanwhile; ask again") from None
        return tuple(Hit(row[0], float(row[2]) / 1e6, rank, row[1]) for rank, row in enumerate(rows, 1))

    def _number(self, look: Transaction, name: str) -> int:
        found = look.rows("SELECT number, analyzer, schema_digest FROM cda.word_indexes WHERE name = %s", name)
        if not found:
            raise IndexAbsent(f"there is no word index {name!r} in the database; build it first")
        number, analyzer, digest = found[0]
        if (analyzer, digest) != (self._analyzer, self._schema.digest):
            raise IndexMismatch(f"the word index {name!r} is of another analyzer or schema; build the index again")
        return int(number)

    def _fill(self, change: Transaction, number: int, entries: Iterable[WordEntry]) -> int:
        fields = [field.name for field in self._schema.fields]
        held = {ID: "text", HASH: "text"} | {column(field): TYPES[field.kind] for field in self._schema.fields}
        held |= {WORDS: "tsvector", OWN: "text[]", SAID: "text[]"}
        table = f"cda.words_{number}"
        change.run(f"CREATE TABLE {table} ({collated(held)}, PRIMARY KEY ({ID}))")

        def rows() -> Iterator[tuple[object, ...]]:
            for entry in entries:
                self._schema.check(entry.id, entry.meta)
                kept = (list(v) if isinstance(v, tuple) else v for v in (entry.meta[name] for name in fields))
                codes = (sorted(set(entry.own_codes)), sorted(set(entry.said_codes)))
                yield (entry.id, entry.content_hash, *kept, _vector(entry.words), *codes)

        count = change.copy_text(f"COPY {table} ({', '.join(held)}) FROM STDIN", rows())
        change.run(f"CREATE INDEX words_{number}_eligible ON {table} ({reading_order(self._schema)})")
        change.run(f"CREATE INDEX words_{number}_words ON {table} USING gin ({WORDS})")
        change.run(f"CREATE INDEX words_{number}_codes ON {table} USING gin ({OWN}, {SAID})")
        change.run(
            "INSERT INTO cda.word_counts (number, word, entries)"
            f" SELECT %s, word, ndoc FROM ts_stat('SELECT {WORDS} FROM {table}')",
            number,
        )
        change.run(f"ANALYZE {table}")
        return count


def _drop(change: Transaction, rows: Sequence[tuple[int, ...]]) -> None:
    for (number,) in rows:
        change.run(f"DROP TABLE cda.words_{number}")


def _vector(words: Mapping[str, int]) -> str:
    """The literal of a tsvector: 'stem':1,2,3 for a stem that occurs three times."""
    repeats = {word: range(1, 1 + min(count, MOST_REPEATS)) for word, count in sorted(words.items())}
    return " ".join(f"{_quoted(word)}:{','.join(map(str, numbers))}" for word, numbers in repeats.items())


def _quoted(word: str) -> str:
    """A word as a lexeme of a tsvector or tsquery, whatever is in it."""
    escaped = word.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
