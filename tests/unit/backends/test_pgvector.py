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
    made: list[PgVectorBackend] = []

    def make(**settings: bool) -> PgVectorBackend:
        made.append(PgVectorBackend(Database(postgres_server.database()), **settings))
        return made[-1]

    yield make
    for backend in made:
        backend.close()


class TestPgVector(BackendConformance):
    @pytest.fixture
    def make_backend(self, make_pgvector: Callable[..., PgVectorBackend]) -> Callable[[], VectorBackend]:
        return make_pgvector
