"""What the doctor says of the database."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conformance.backend import SPEC, record
from embedded_server import TestServer

from backends.pgvector import PgVectorBackend
from backends.postgres import Database
from cda.settings import Settings
from cda.systems.coverage.database_check import examine

pytestmark = pytest.mark.promise("database.doctor")


@pytest.fixture
def url(postgres_server: TestServer) -> Iterator[str]:
    url = postgres_server.database()
    yield url
    postgres_server.give_back(url)


def settings(home: Path, **changes: str) -> Settings:
    return Settings(_env_file=None, **{"CDA_HOME": str(home), "CDA_VECTOR_BACKEND": "pgvector", **changes})


def test_nothing_is_said_of_a_database_that_no_setting_uses(tmp_path: Path) -> None:
    assert examine(settings(tmp_path, CDA_VECTOR_BACKEND="local")) == []


@pytest.mark.parametrize("used", [{}, {"CDA_VECTOR_BACKEND": "local", "CDA_LEXICAL": "postgres"}])
def test_a_migrated_database_is_well_and_its_targets_are_counted(
    tmp_path: Path, url: str, used: dict[str, str]
) -> None:
    backend = PgVectorBackend(Database(url))
    backend.ensure("t", SPEC)
    backend.upsert("t", SPEC, [record("a"), record("b")])
    backend.close()
    found = examine(settings(tmp_path, DATABASE_URL=url, **used))
    assert [(one.name, one.state, one.remedy) for one in found] == [("database", "ok", "")]
    assert "t 2" in found[0].detail


@pytest.mark.parametrize(
    ("address", "remedy"),
    [
        (None, "cda db up"),
        ("postgresql://canary:canary@127.0.0.1:1/canary", "DATABASE_URL"),
        ("empty", "cda db migrate"),
    ],
)
def test_a_database_that_is_not_ready_is_a_failure_with_its_remedy(
    tmp_path: Path, postgres_server: TestServer, address: str | None, remedy: str
) -> None:
    given = postgres_server.empty_database() if address == "empty" else address
    found = examine(settings(tmp_path, **({"DATABASE_URL": given} if given else {})))
    assert [one.state for one in found] == ["fail"]
    assert remedy in found[0].remedy
    assert "canary" not in str(found)


def test_the_loss_of_an_approximate_index_is_measured_and_told(tmp_path: Path, url: str) -> None:
    backend = PgVectorBackend(Database(url), hnsw=True)
    backend.ensure("t", SPEC)
    vectors = np.random.default_rng(1).normal(size=(300, SPEC.dim))
    undated = {"effective_start_i": 99991231, "effective_end_i": 0}
    backend.upsert("t", SPEC, [record(f"r{i:03}", v, **(undated if i % 9 == 0 else {})) for i, v in enumerate(vectors)])
    backend.close()
    _, loss = examine(settings(tmp_path, DATABASE_URL=url, CDA_PGVECTOR_HNSW="true"))
    assert loss.name == "approximate index (t)"
    assert "of the true 10 on 50 samples" in loss.detail
    assert (loss.state == "ok") == (loss.remedy == "")
