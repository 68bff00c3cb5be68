"""The pgvector backend on a real server: the conformance suite, and what only a database can get wrong."""

from collections.abc import Callable, Iterator

import pytest
from conformance.backend import BackendConformance
from embedded_server import TestServer

from backends.base import VectorBackend
from backends.pgvector import PgVectorBackend
from backends.postgres import Database


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
