"""The pgvector backend on a real server: the conformance suite, and what only a database can get wrong."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conformance.backend import DIM, SPEC, BackendConformance, X, put, record
from embedded_server import TestServer, running_server

from backends.base import Record, VectorBackend
from backends.errors import BackendError, BackendUnavailable, IndexAbsent, IndexMismatch, InvalidRecord
from backends.filters import Everything, eligible
from backends.local import LocalBackend
from backends.pgvector import PgVectorBackend
from backends.postgres import Database
from backends.schema import window


@pytest.fixture
def make_pgvector(postgres_server: TestServer) -> Iterator[Callable[..., PgVectorBackend]]:
    made: dict[str, PgVectorBackend] = {}

    def make(**settings: bool) -> PgVectorBackend:
        url = postgres_server.database()
        made[url] = PgVectorBackend(Database(url), **settings)
        return made[url]

    yield make
    for url, backend in made.items():
        backend.close()
        postgres_server.give_back(url)


class TestPgVector(BackendConformance):
    @pytest.fixture
    def make_backend(self, make_pgvector: Callable[..., PgVectorBackend]) -> Callable[[], VectorBackend]:
        return make_pgvector


PAYERS = tuple(f"P{i}" for i in range(8))


def corpus(rows: int, dim: int = DIM, seed: int = 5) -> list[Record]:
    """Records of 8 payers whose windows overlap some of the days asked for."""
    random = np.random.default_rng(seed)
    found = []
    for i, vector in enumerate(random.normal(size=(rows, dim))):
        start = date(2020, 1, 1) + timedelta(days=int(random.integers(0, 1800)))
        first, last = window(start, start + timedelta(days=int(random.integers(0, 700))), dated=i % 50 != 0)
        found.append(record(f"r{i:05}", vector, payer_id=PAYERS[i % 8], effective_start_i=first, effective_end_i=last))
    return found


def asked(count: int, dim: int, seed: int = 6) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(seed).normal(size=(count, dim)).astype(np.float32)


FILTERS = (
    Everything(),
    eligible(payer_id="P3", plan_id=None, as_of=date(2022, 6, 1)),
    eligible(payer_id=None, plan_id="GOLD", as_of=date(2021, 6, 1)),
)


@pytest.mark.promise("backends.same_answers")
@pytest.mark.parametrize("with_hnsw_index", [False, True])
def test_the_hits_are_those_of_the_local_files(
    postgres_server: TestServer, tmp_path: Path, with_hnsw_index: bool
) -> None:
    spec = replace(SPEC, dim=16)
    rows, queries = corpus(2000, 16), asked(5, 16)
    local = LocalBackend(tmp_path)
    url = postgres_server.database()
    writer, reader = PgVectorBackend(Database(url), hnsw=with_hnsw_index), PgVectorBackend(Database(url))
    for backend in (local, writer):
        backend.ensure("t", spec)
        backend.upsert("t", spec, rows)
    for where in FILTERS:
        expected = local.search("t", spec, queries, k=50, where=where)
        found = reader.search("t", spec, queries, k=50, where=where)
        for one, other in zip(expected, found, strict=True):
            assert [hit.id for hit in other.hits] == [hit.id for hit in one.hits]
            assert [hit.score for hit in other.hits] == pytest.approx([hit.score for hit in one.hits], abs=1.1e-6)
            assert (other.eligible, other.exact) == (one.eligible, True)
    writer.close()
    reader.close()
    postgres_server.give_back(url)


@pytest.mark.promise("backends.approximate")
def test_an_approximate_search_says_so_and_its_loss_is_measured(make_pgvector: Callable[..., PgVectorBackend]) -> None:
    spec = replace(SPEC, dim=16)
    backend = make_pgvector(hnsw=True)
    backend.ensure("t", spec)
    backend.upsert("t", spec, corpus(2000, 16))
    assert not backend.capabilities().exact
    pages = backend.search("t", spec, asked(4, 16), k=10, where=FILTERS[1])
    assert {page.exact for page in pages} == {False}
    assert [hit.rank for hit in pages[0].hits] == list(range(1, len(pages[0].hits) + 1))
    for where in FILTERS:
        recall, short = backend.measured_loss("t", spec, asked(20, 16), k=10, where=where)
        assert 0.5 < recall <= 1.0
        assert 0 <= short <= 20


@pytest.mark.promise("backends.approximate")
def test_more_dimensions_than_the_index_takes_are_refused_before_any_record(
    make_pgvector: Callable[..., PgVectorBackend],
) -> None:
    with pytest.raises(BackendError, match="2000 dimensions"):
        make_pgvector(hnsw=True).ensure("t", replace(SPEC, dim=2001))
    assert make_pgvector().ensure("t", replace(SPEC, dim=2001)).dim == 2001
    with pytest.raises(BackendError, match="16000 dimensions"):
        make_pgvector().ensure("t", replace(SPEC, dim=16_001))


@pytest.mark.promise("backends.mismatch")
def test_a_target_that_another_process_made_anew_is_read_anew(postgres_server: TestServer) -> None:
    url = postgres_server.database()
    one, other = PgVectorBackend(Database(url)), PgVectorBackend(Database(url))
    put(one, [record("old")])
    assert [hit.id for hit in one.search("t", SPEC, X, k=5, where=Everything())[0].hits] == ["old"]
    other.drop("t")
    with pytest.raises(IndexAbsent):
        one.search("t", SPEC, X, k=5, where=Everything())
    put(other, [record("new")])
    assert [hit.id for hit in one.search("t", SPEC, X, k=5, where=Everything())[0].hits] == ["new"]
    other.drop("t")
    other.ensure("t", replace(SPEC, embedder="another"))
    with pytest.raises(IndexMismatch, match="embedder"):
        one.search("t", SPEC, X, k=5, where=Everything())
    one.close()
    other.close()
    postgres_server.give_back(url)


@pytest.mark.promise("backends.schema")
@pytest.mark.parametrize(
    "changes", [{"section": "a\x00b"}, {"codes": ("A9276", "\ud800")}, {"payer_id": "P" * 513}, {"policy_id": "\udfff"}]
)
def test_what_no_text_column_holds_is_refused_by_name(
    make_pgvector: Callable[..., PgVectorBackend], changes: dict[str, Any]
) -> None:
    with pytest.raises(InvalidRecord, match="'bad'"):
        put(make_pgvector(), [record("good"), record("bad", **changes)])


@pytest.mark.promise("backends.round_trip")
def test_of_two_who_make_one_target_at_once_both_find_it(postgres_server: TestServer) -> None:
    url = postgres_server.database()
    made = [PgVectorBackend(Database(url)) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        infos = list(pool.map(lambda backend: backend.ensure("t", SPEC), made))
    assert len(set(infos)) == 1
    assert made[0].targets() == ("t",)
    for backend in made:
        backend.close()
    postgres_server.give_back(url)


@pytest.mark.promise("backends.round_trip")
def test_many_threads_share_few_connections(make_pgvector: Callable[..., PgVectorBackend]) -> None:
    backend = make_pgvector()
    put(backend, corpus(300))
    expected = backend.search("t", SPEC, X, k=20, where=Everything())
    with ThreadPoolExecutor(20) as pool:
        found = list(pool.map(lambda _: backend.search("t", SPEC, X, k=20, where=Everything()), range(60)))
    assert all(pages == expected for pages in found)


@pytest.mark.promise("backends.plain_errors")
def test_a_server_that_dies_and_returns_is_one_error_and_then_an_answer() -> None:
    with running_server() as server:
        backend = PgVectorBackend(Database(server.database(), patience_s=1))
        put(backend, [record("a")])
        server.stop()
        for verb in (
            lambda: backend.search("t", SPEC, X, k=1, where=Everything()),
            lambda: backend.upsert("t", SPEC, [record("b")]),
        ):
            with pytest.raises(BackendUnavailable, match="does not answer"):
                verb()
        server.start()
        assert [hit.id for hit in backend.search("t", SPEC, X, k=5, where=Everything())[0].hits] == ["a"]
        backend.close()
