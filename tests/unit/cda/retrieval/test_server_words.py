"""The words and codes of a corpus on a server: what the local legs find, and no text."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from embedded_server import TestServer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from retrieval_world import FakeStore, make_clause, small_corpus

from backends.errors import IndexAbsent, IndexMismatch
from backends.filters import Everything, Where, eligible
from backends.pgwords import KEPT_INDEXES, PgWords
from backends.postgres import Database
from backends.schema import POLICY
from cda.retrieval.codes import all_forms
from cda.retrieval.documents import content_hash, indexed_text, meta_of, own_codes, said_codes
from cda.retrieval.lexical import Entry, LexicalIndex
from cda.retrieval.server_words import ServerWords, entries
from cda.retrieval.words import ANALYZER
from corpus.model import Clause

NEGATED = [
    make_clause("N-1.v1.C1", "Sensors are covered."),
    make_clause("N-1.v1.C2", "Sensors are not covered."),
    make_clause("N-1.v1.C3", "Sensors are covered unless the member has no insulin, except for children."),
    make_clause("N-1.v1.C4", "It's a member's pump; naïve \\ quoting 'here' and there: pump, pump, pump."),
]
CORPUS = [*small_corpus(), *NEGATED]
QUERIES = ("glucose sensor", "not covered", "unless", "no insulin", "except", "sleep testing at home", "isn't covered",
           "member's", "insulin pump", "xylophone", "95249", "naïve")  # fmt: skip


def local(folder: Path, clauses: list[Clause]) -> LexicalIndex:
    made = [
        Entry(c.clause_id, indexed_text(c), own_codes(c), said_codes(c), meta_of(c), content_hash(c)) for c in clauses
    ]
    LexicalIndex.build(folder / "lexical", POLICY, made)
    return LexicalIndex.open(folder / "lexical", POLICY)


@pytest.fixture(scope="module")
def database(postgres_server: TestServer) -> Iterator[Database]:
    database = Database(postgres_server.database())
    yield database
    database.close()


@pytest.fixture(scope="module")
def legs(database: Database, tmp_path_factory: pytest.TempPathFactory) -> tuple[LexicalIndex, ServerWords]:
    store = FakeStore(CORPUS)
    return local(tmp_path_factory.mktemp("local"), CORPUS), ServerWords(PgWords(database, POLICY, ANALYZER), store)


FILTERS: st.SearchStrategy[Where] = st.builds(
    eligible,
    payer_id=st.sampled_from([None, "AAA", "BBB", "nobody"]),
    plan_id=st.sampled_from([None, "AAA-GOLD", "AAA-SILVER"]),
    as_of=st.sampled_from([None, date(2024, 6, 30), date(2024, 7, 1), date(2023, 1, 1)]),
)


@pytest.mark.promise("retrieval.server_words")
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    query=st.sampled_from(QUERIES) | st.lists(st.sampled_from(QUERIES), min_size=2, max_size=4).map(" ".join),
    where=FILTERS | st.just(Everything()),
)
def test_the_server_finds_the_clauses_that_the_local_leg_finds(
    legs: tuple[LexicalIndex, ServerWords], query: str, where: Where
) -> None:
    expected, found = (leg.text(query, where) for leg in legs)
    assert found.status == expected.status
    assert {(hit.id, hit.content_hash) for hit in found.hits} == {(hit.id, hit.content_hash) for hit in expected.hits}
    assert [hit.rank for hit in found.hits] == list(range(1, len(found.hits) + 1))


@pytest.mark.promise("retrieval.server_words")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["A9276", "95249", "95806", "G47.33", "P-1.v2.C1", "P-1", "Z99"]), max_size=4), FILTERS)
def test_the_server_ranks_codes_as_the_local_leg_does(
    legs: tuple[LexicalIndex, ServerWords], codes: list[str], where: Where
) -> None:
    expected, found = (leg.codes(all_forms(codes), where) for leg in legs)
    assert found == expected


@pytest.mark.promise("retrieval.negation_words")
def test_a_negation_decides_between_a_clause_and_its_opposite(legs: tuple[LexicalIndex, ServerWords]) -> None:
    _, words = legs
    assert words.text("sensors are not covered", Everything(), 1).hits[0].id == "N-1.v1.C2"
    assert {hit.id for hit in words.text("unless", Everything()).hits} == {"N-1.v1.C3", "P-2.v1.C2"}


@pytest.mark.promise("retrieval.server_words")
def test_nothing_but_spaces_is_an_empty_query_and_no_code_is_none(legs: tuple[LexicalIndex, ServerWords]) -> None:
    _, words = legs
    assert (words.text(" \u200b", Everything()).status, words.codes((), Everything()).status) == ("empty_query",) * 2


@pytest.mark.promise("retrieval.server_words_textless")
def test_no_run_of_words_of_any_clause_is_in_the_database(database: Database, legs: object) -> None:
    with database.reading() as look:
        tables = [name for (name,) in look.rows("SELECT relname FROM pg_class WHERE relname ~ '^words_[0-9]+$'")]
        rows = [row for name in tables for row in look.rows(f"SELECT w::text FROM cda.{name} AS w")]  # noqa: S608
    kept = " ".join(map(str, rows))
    assert "sensor" in kept
    for clause in CORPUS:
        words = clause.text.split()
        for at in range(len(words) - 1):
            assert " ".join(words[at : at + 2]) not in kept


@pytest.mark.promise("retrieval.server_words")
def test_an_index_is_built_once_a_corpus_and_only_the_newest_stay(postgres_server: TestServer) -> None:
    database = Database(postgres_server.database())
    index = PgWords(database, POLICY, ANALYZER)
    for i in range(KEPT_INDEXES + 2):
        store = FakeStore([make_clause(f"P-{i}.v1.C1", "A sensor.")])
        words = ServerWords(index, store)
        assert [hit.id for hit in words.text("sensor", Everything()).hits] == [f"P-{i}.v1.C1"]
        ServerWords(index, store)
    with database.reading() as look:
        assert look.rows("SELECT count(*) FROM cda.word_indexes") == [(KEPT_INDEXES,)]
        assert look.rows("SELECT count(*) FROM pg_class WHERE relname ~ '^words_[0-9]+$'") == [(KEPT_INDEXES,)]
    with pytest.raises(IndexAbsent, match="build it first"):
        index.search("policy-gone", ["sensor"], where=Everything(), k=1)
    index.close()


@pytest.mark.promise("retrieval.server_words")
def test_an_index_of_another_analyzer_is_refused(database: Database) -> None:
    PgWords(database, POLICY, ANALYZER).build("made", entries(FakeStore(NEGATED)))
    with pytest.raises(IndexMismatch, match="analyzer"):
        PgWords(database, POLICY, "another").search("made", ["sensor"], where=Everything(), k=1)
