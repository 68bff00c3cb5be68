"""The Pinecone backend over the wire double: the conformance suite, and what only a network can get wrong."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conformance.backend import BackendConformance
from doubles.pinecone_server import PineconeDouble
from pydantic import SecretStr

from backends.base import VectorBackend
from backends.pinecone import PineconeBackend
from backends.pinecone_service import PineconeConfig


@pytest.fixture
def double() -> Iterator[PineconeDouble]:
    with PineconeDouble() as running:
        yield running


def opened(double: PineconeDouble, **changes: Any) -> PineconeBackend:
    given = {"api_key": SecretStr(double.key), "index": "policies", "namespace": "cda", "host": double.host}
    return PineconeBackend(PineconeConfig(**(given | changes)))


@pytest.fixture
def make_backend(double: PineconeDouble) -> Iterator[Callable[[], VectorBackend]]:
    made: list[PineconeBackend] = []

    def make() -> VectorBackend:
        made.append(opened(double, index=f"policies-{len(made)}"))
        return made[-1]

    yield make
    for backend in made:
        backend.close()


class TestPinecone(BackendConformance):
    @pytest.fixture
    def make_backend(self, make_backend: Callable[[], VectorBackend]) -> Callable[[], VectorBackend]:
        return make_backend
