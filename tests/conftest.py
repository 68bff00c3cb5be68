"""Shared test set-up: the promise marker, and an environment of its own for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from embedded_server import TestServer, running_server


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "promise(*ids): the promises (tests/promise_data) that this test keeps")


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test reads or writes this machine's own state, and none sees its keys."""
    for name in (
        "CDA_STORE",
        "CDA_TRACE_DIR",
        "CDA_FAULT",
        "CDA_EMBEDDER",
        "CDA_RERANKER",
        "CDA_VECTOR_BACKEND",
        "DATABASE_URL",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("PINECONE_API_KEY", "CDA_PINECONE_HOST", "CDA_PINECONE_INDEX", "PINECONE_CONTROLLER_HOST"):
        monkeypatch.delenv(name, raising=False)
    for name in (
        "CDA_MODEL",
        "CDA_REASONER",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CDA_HOME", str(tmp_path / "cda-home"))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[TestServer]:
    """A Postgres server of this process, started when the first test asks for it."""
    with running_server() as server:
        yield server
