"""The filter language: what can be made, what it means, and that every compiler agrees with the oracle."""

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import tantivy
from conformance.backend import SPEC, X, meta, put
from doubles import pinecone_rules as service
from embedded_server import TestServer
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.base import Record, VectorBackend
from backends.columns import Columns
from backends.errors import InvalidFilter, InvalidRecord
from backends.filters import (
    All,
    AnyOf,
    Contains,
    Eq,
    Everything,
    Ge,
    In,
    Le,
    Nothing,
    Where,
    eligible,
    evaluate,
    pinned,
)
from backends.local import LocalBackend
from backends.pgvector import PgVectorBackend
from backends.pinecone_filters import compile_filter
from backends.pinecone_records import stored
from backends.postgres import Database
from backends.schema import POLICY, Field, Kind, Schema, window
from backends.sqlfilters import compile_sql
from backends.termqueries import add_fields, add_values, compile_query

PAYERS, PLANS, CODES = ("AAA", "BBB", "it's"), ("*any-plan*", "GOLD", "naïve plan"), ("A9276", "95249", "E1.0")
DAYS = st.dates(date(2023, 12, 28), date(2024, 3, 2))
NUMBERS = DAYS.map(lambda day: day.year * 10_000 + day.month * 100 + day.day)


@st.composite
def metas(draw: st.DrawFn) -> dict[str, Any]:
    start, end = draw(st.none() | DAYS), draw(st.none() | DAYS)
    first, last = window(start, end, dated=draw(st.booleans()))
    return meta(
        payer_id=draw(st.sampled_from(PAYERS)),
        plan_id=draw(st.sampled_from(PLANS)),
        codes=tuple(draw(st.sets(st.sampled_from(CODES), min_size=1))),
        effective_start_i=first,
        effective_end_i=last,
    )


LEAVES: st.SearchStrategy[Where] = st.one_of(
    st.just(Everything()),
    st.just(Nothing()),
    st.builds(Eq, st.just(POLICY["payer_id"]), st.sampled_from((*PAYERS, "nobody"))),
    st.builds(Eq, st.just(POLICY["effective_start_i"]), NUMBERS),
    st.builds(In, st.just(POLICY["plan_id"]), st.lists(st.sampled_from((*PLANS, "none")), max_size=3).map(tuple)),
    st.builds(Le, st.sampled_from([POLICY["effective_start_i"], POLICY["effective_end_i"]]), NUMBERS),
    st.builds(Ge, st.sampled_from([POLICY["effective_start_i"], POLICY["effective_end_i"]]), NUMBERS),
    st.builds(Contains, st.just(POLICY["codes"]), st.sampled_from((*CODES, "A92", "a9276"))),
)
FILTERS: st.SearchStrategy[Where] = st.recursive(
    LEAVES,
    lambda parts: st.one_of(
        st.lists(parts, min_size=1, max_size=3).map(lambda held: All(tuple(held))),
        st.lists(parts, min_size=1, max_size=3).map(lambda held: AnyOf(tuple(held))),
    ),
    max_leaves=6,
)


def by_mask(rows: list[dict[str, Any]], where: Where) -> list[int]:
    return np.flatnonzero(Columns.of(POLICY, rows).mask(where)).tolist()


def by_tantivy(rows: list[dict[str, Any]], where: Where) -> list[int]:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("row", indexed=False, fast=True)
    add_fields(builder, POLICY)
    declared = builder.build()
    index = tantivy.Index(declared)
    writer = index.writer(heap_size=15_000_000, num_threads=1)
    for row, held in enumerate(rows):
        document = tantivy.Document()
        document.add_unsigned("row", row)
        add_values(document, POLICY, held)
        writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    found = searcher.search(compile_query(where, POLICY, declared), limit=100).hits
    assert all(score == 0 for score, _ in found)
    return sorted(int(v or 0) for v in searcher.fast_field_values("row", [address for _, address in found]))


def by_local(rows: list[dict[str, Any]], where: Where) -> list[int]:
    with TemporaryDirectory() as folder:
        backend = LocalBackend(Path(folder))
        put(backend, [Record(str(row), X[0], held, "h") for row, held in enumerate(rows)])
        return sorted(int(hit.id) for hit in backend.search("t", SPEC, X, k=100, where=where)[0].hits)


@pytest.fixture(scope="module")
def pgvector(postgres_server: TestServer) -> Iterator[VectorBackend]:
    backend = PgVectorBackend(Database(postgres_server.database()))
    yield backend
    backend.close()


def by_sql(backend: VectorBackend, rows: list[dict[str, Any]], where: Where) -> list[int]:
    backend.drop("t")
    put(backend, [Record(str(row), X[0], held, "h") for row, held in enumerate(rows)])
    return sorted(int(hit.id) for hit in backend.search("t", SPEC, X, k=100, where=where)[0].hits)


@pytest.mark.promise("backends.filter_parity")
@settings(max_examples=60, deadline=None)
@given(st.lists(metas(), min_size=1, max_size=12), FILTERS)
def test_a_database_admits_what_the_oracle_admits(
    pgvector: VectorBackend, rows: list[dict[str, Any]], where: Where
) -> None:
    assert by_sql(pgvector, rows, where) == [row for row, held in enumerate(rows) if evaluate(where, held)]


@pytest.mark.promise("backends.filter_types")
@pytest.mark.parametrize("text", ["a\x00b", "half \ud800", "'; DROP TABLE cda.targets; --", "%s", "{}", '"', "\\"])
def test_any_text_is_a_value_to_a_database_and_never_sql(pgvector: VectorBackend, text: str) -> None:
    rows = [meta(codes=("A9276",)), meta(payer_id="BBB")]
    for where in (
        Eq(POLICY["payer_id"], text),
        In(POLICY["payer_id"], (text, "BBB")),
        Contains(POLICY["codes"], text),
    ):
        assert by_sql(pgvector, rows, where) == [row for row, held in enumerate(rows) if evaluate(where, held)]


@pytest.mark.promise("backends.filter_types")
def test_a_field_whose_name_is_no_identifier_becomes_no_sql() -> None:
    field = Field('x" IS NULL OR TRUE --', Kind.TEXT)
    with pytest.raises(InvalidFilter, match="column"):
        compile_sql(Eq(field, "a"), Schema("odd", (field,), field.name))


def by_pinecone(rows: list[dict[str, Any]], where: Where) -> list[int]:
    compiled = compile_filter(where, POLICY)
    if compiled is None:
        return []
    service.check_filter(compiled)
    told = [json.loads(json.dumps(stored(Record("r", X[0], held, "h"))["metadata"])) for held in rows]
    kept = [service.check_metadata(metadata, service.Semantics()) for metadata in told]
    of_today, of_before = (
        [row for row, metadata in enumerate(kept) if service.admits(compiled, metadata, semantics)]
        for semantics in (service.Semantics(), service.Semantics(ne_matches_absent=True))
    )
    assert of_today == of_before
    return of_today


@pytest.mark.promise("backends.filter_parity")
@settings(max_examples=60, deadline=None)
@given(st.lists(metas(), min_size=1, max_size=12), FILTERS)
def test_every_compiler_admits_what_the_oracle_admits(rows: list[dict[str, Any]], where: Where) -> None:
    expected = [row for row, held in enumerate(rows) if evaluate(where, held)]
    assert by_mask(rows, where) == expected
    assert by_tantivy(rows, where) == expected
    assert by_local(rows, where) == expected
    assert by_pinecone(rows, where) == expected


@pytest.mark.promise("backends.boundaries")
@settings(max_examples=40, deadline=None)
@given(st.lists(metas(), min_size=1, max_size=12), st.sampled_from(PAYERS), st.none() | st.sampled_from(PLANS), DAYS)
def test_eligibility_means_the_same_everywhere(
    rows: list[dict[str, Any]], payer: str, plan: str | None, day: date
) -> None:
    where = eligible(payer_id=payer, plan_id=plan, as_of=day)
    number = day.year * 10_000 + day.month * 100 + day.day
    expected = [
        row
        for row, held in enumerate(rows)
        if held["payer_id"] == payer
        and held["plan_id"] in (plan, "*any-plan*")
        and held["effective_start_i"] <= number <= held["effective_end_i"]
    ]
    assert [row for row, held in enumerate(rows) if evaluate(where, held)] == expected
    assert by_mask(rows, where) == expected
    assert by_tantivy(rows, where) == expected
    assert by_pinecone(rows, where) == expected


@pytest.mark.promise("backends.boundaries")
def test_superseded_and_undated_clauses_are_admitted_only_on_request() -> None:
    first, last = window(None, None, dated=False)
    undated = meta(effective_start_i=first, effective_end_i=last)
    assert not evaluate(eligible(payer_id="AAA", plan_id=None, as_of=date(9999, 12, 31)), undated)
    assert evaluate(eligible(payer_id="AAA", plan_id=None, as_of=None), undated)
    wide = eligible(payer_id="AAA", plan_id=None, as_of=date(2024, 1, 1), include_superseded=True)
    assert evaluate(wide, undated)


@pytest.mark.promise("backends.filter_types")
@pytest.mark.parametrize(
    ("node", "arguments"),
    [
        (Eq, ("payer_id", 5)),
        (Eq, ("payer_id", None)),
        (Eq, ("payer_id", "")),
        (Eq, ("codes", "A9276")),
        (Eq, ("effective_start_i", 20240231)),
        (Le, ("effective_start_i", 20240630.5)),
        (Le, ("effective_start_i", True)),
        (Ge, ("effective_end_i", "20240101")),
        (Ge, ("effective_end_i", float("nan"))),
        (Le, ("payer_id", 20240101)),
        (In, ("payer_id", "AAA")),
        (In, ("payer_id", ["AAA"])),
        (In, ("payer_id", (None,))),
        (Contains, ("codes", "")),
        (Contains, ("payer_id", "AAA")),
    ],
)
def test_a_value_of_the_wrong_type_makes_no_filter(node: Any, arguments: tuple[str, Any]) -> None:
    name, value = arguments
    with pytest.raises(InvalidFilter):
        node(POLICY[name], value)


@pytest.mark.promise("backends.filter_types")
@pytest.mark.parametrize("node", [All, AnyOf])
@pytest.mark.parametrize("parts", [(), [Everything()], (Everything(), "x"), None])
def test_a_composite_is_made_of_at_least_one_filter(node: Any, parts: Any) -> None:
    with pytest.raises(InvalidFilter):
        node(parts)


@pytest.mark.promise("backends.filter_types")
def test_a_field_that_is_unknown_or_of_another_kind_is_refused() -> None:
    with pytest.raises(InvalidFilter, match="no field 'payer'"):
        POLICY["payer"]
    lookalike = type(POLICY["codes"])("codes", Kind.TEXT)
    with pytest.raises(InvalidFilter, match="another kind"):
        by_mask([meta()], All((Everything(), Eq(lookalike, "A9276"))))


@pytest.mark.promise("backends.filter_types")
def test_what_is_no_filter_is_no_filter_anywhere() -> None:
    for judge in (lambda w: evaluate(w, meta()), lambda w: by_mask([meta()], w)):
        with pytest.raises(InvalidFilter):
            judge("payer_id = AAA")  # type: ignore[arg-type]


@pytest.mark.promise("backends.schema")
def test_a_stored_record_without_a_field_is_an_error_and_not_a_mismatch() -> None:
    with pytest.raises(InvalidRecord, match="plan_id"):
        evaluate(In(POLICY["plan_id"], ("GOLD",)), {"payer_id": "AAA"})


@pytest.mark.promise("backends.pinned")
@settings(deadline=None)
@given(metas(), FILTERS)
def test_no_record_outside_the_pinned_values_is_admitted(held: dict[str, Any], where: Where) -> None:
    values = pinned(where, POLICY["payer_id"])
    if values is not None and held["payer_id"] not in values:
        assert not evaluate(where, held)
