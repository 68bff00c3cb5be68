"""The shipped corpus with its vectors, and by choice its words, in Postgres: a real server, the product's paths."""

import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from coverage_world import FLOOR, HMO, T1, open_system, request
from embedded_server import TestServer, running_server
from pydantic import SecretStr

from backends.errors import BackendError
from backends.postgres import Database
from cda.errors import exit_code
from cda.retrieval.embedding_cache import EmbeddingCache
from cda.retrieval.index import ensure_index
from cda.retrieval.lifecycle.goal import Goal
from cda.retrieval.lifecycle.run import LifeCycle, Report
from cda.settings import Settings
from cda.systems.coverage.system import CoverageSystem
from cda.systems.coverage.vector_backend import configured_backend, shared_files
from corpus.store import CorpusStore

ASKED = request(HMO, "A9276", "2024-03-15", {**T1, "fingersticks_per_day": 5})


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    """A server of this module's own: it is stopped and started."""
    with running_server() as running:
        yield running


@pytest.fixture(scope="module")
def url(server: TestServer) -> str:
    return server.database()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, url: str) -> Path:
    root = tmp_path_factory.mktemp("pgvector-home")
    open_system(root)  # the store
    assert indexed(of(root, url)).promoted
    return root


@pytest.fixture(autouse=True)
def _nothing_left_open() -> Iterator[None]:
    yield
    gc.collect()  # a system that nobody holds closes its connections now, and a warning would fail this test


def environment(home: Path, url: str) -> dict[str, str]:
    return {
        "CDA_HOME": str(home),
        "CDA_EMBEDDER": "tfidf",
        "CDA_VECTOR_BACKEND": "pgvector",
        "DATABASE_URL": url,
        "CDA_MANIFESTS": "postgres",
    }


def of(home: Path, url: str, **changes: str) -> Settings:
    return Settings(_env_file=None, **environment(home, url), **changes)


def indexed(settings: Settings) -> Report:
    with CorpusStore.open(settings.store_path) as store:
        _, embedder = ensure_index(store, "tfidf", settings.index_path, local_vectors=False)
        backend = configured_backend(settings, "pgvector")
        try:
            return LifeCycle(
                backend,
                shared_files(settings),
                Goal.of(store, embedder),
                embedder,
                cache=EmbeddingCache(settings.home / "embeddings.sqlite"),
                journals=settings.home / "journals",
            ).index()
        finally:
            backend.close()


def decided(result: Any) -> dict[str, Any]:
    """Everything of a result that the backend must not change."""
    return {
        name: value
        for name, value in result.model_dump(mode="json").items()
        if name not in ("run_id", "latency_s", "provenance", "trace_path")
    }


@pytest.mark.promise("pgvector.same_decisions")
@pytest.mark.parametrize("lexical", ["tantivy", "postgres"])
def test_every_floor_case_is_decided_as_over_local_files(home: Path, url: str, lexical: str) -> None:
    there, here = CoverageSystem.open(of(home, url, CDA_LEXICAL=lexical)), open_system(home)
    for _, plan, code, _, day, facts, _, _ in FLOOR:
        raw = request(plan, code, day, facts)
        over_database, over_files = decided(there.ask(raw)), decided(here.ask(raw))
        if lexical == "postgres":  # ranks words in its own order; what was looked at on the way may differ
            del over_database["retrieved_clause_ids"], over_files["retrieved_clause_ids"]
        assert over_database == over_files
    assert there.ask(ASKED).provenance.backend == "pgvector"


@pytest.mark.promise("pgvector.same_decisions")
def test_searches_find_the_same_clauses_in_the_same_order(home: Path, url: str) -> None:
    queries = ["continuous glucose monitor for gestational diabetes", "step therapy waived", "J0135"]
    there, here = CoverageSystem.open(of(home, url)), open_system(home)
    for given in ({}, {"payer_id": "MHP"}, {"plan_id": HMO}):
        answers = [system.tools.search_policies(queries, k=25, **given) for system in (there, here)]
        found, expected = [[[hit.clause.clause_id for hit in one.hits] for one in answer] for answer in answers]
        assert found == expected


@pytest.mark.promise("pgvector.same_decisions")
def test_a_second_run_of_the_index_writes_nothing(home: Path, url: str) -> None:
    report = indexed(of(home, url))
    assert (report.state, report.embedded, report.upserted, report.deleted) == ("live", 0, 0, 0)


@pytest.mark.promise("pgvector.no_text")
def test_no_clause_text_and_no_question_is_in_the_database(home: Path, url: str) -> None:
    said = "an unusual wording of nobody else: monitor xylophone 4711"
    CoverageSystem.open(of(home, url, CDA_LEXICAL="postgres")).ask({**ASKED, "question": said})
    database = Database(url)
    with database.reading() as look:
        tables = [name for (name,) in look.rows("SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = "
                                                "'cda'::regnamespace")]  # fmt: skip
        rows = [row for name in tables for row in look.rows(f"SELECT t::text FROM cda.{name} AS t")]  # noqa: S608
    database.close()
    kept = "\n".join(text for (text,) in rows)
    with CorpusStore.open(home / "corpus.sqlite") as store:
        texts = [said, *(clause.text for clause in store.clauses())]
    assert len(kept) > 10_000
    pairs = {" ".join(words[at : at + 2]) for words in map(str.split, texts) for at in range(len(words) - 1)}
    sections = {"Coverage Criteria"}  # a field to filter by, which some clause also says
    assert [pair for pair in pairs - sections if pair in kept] == []


@pytest.mark.promise("pgvector.failures")
def test_a_database_that_dies_is_a_review_with_its_reason_and_then_an_error_at_the_start(
    home: Path, url: str, server: TestServer
) -> None:
    system = CoverageSystem.open(of(home, url))
    server.stop()
    try:
        result = system.ask(ASKED)
        assert result.gate.state == "REVIEW"
        assert "search_unavailable" in " ".join(result.gate.reasons)
        with pytest.raises(BackendError, match="does not answer") as caught:
            CoverageSystem.open(of(home, url))
        assert exit_code(caught.value) == 3
    finally:
        server.start()
    assert system.ask(ASKED).gate.state == "DETERMINE"


@pytest.mark.promise("pgvector.failures")
@pytest.mark.parametrize("lexical", ["tantivy", "postgres"])
def test_a_database_without_the_index_or_without_migrations_names_the_command(
    home: Path, server: TestServer, lexical: str
) -> None:
    for other, command in ((server.database(), "cda corpus index"), (server.empty_database(), "cda db migrate")):
        with pytest.raises(BackendError, match=command) as caught:
            CoverageSystem.open(of(home, other, CDA_LEXICAL=lexical))
        assert exit_code(caught.value) == 3
        assert len(str(caught.value).splitlines()) == 1


@pytest.mark.promise("pgvector.failures")
def test_an_index_of_another_embedder_is_refused_by_name(home: Path, url: str) -> None:
    with pytest.raises(BackendError, match="was built with embedder") as caught:
        CoverageSystem.open(of(home, url).model_copy(update={"embedder": "minilm-int8"}))
    assert exit_code(caught.value) == 3


@pytest.mark.promise("pgvector.failures")
def test_without_an_address_the_embedded_server_is_named(home: Path, url: str) -> None:
    with pytest.raises(BackendError, match="cda db up"):
        CoverageSystem.open(of(home, url).model_copy(update={"database_url": None}))


@pytest.mark.promise("pgvector.failures")
def test_the_command_line_answers_and_names_what_is_wrong(home: Path, url: str) -> None:
    dead = "postgresql://canary-user:canary-word@127.0.0.1:1/canary"
    for address, code in ((url, 0), (dead, 3)):
        variables = environment(home, address) | {"PATH": os.defpath, "CDA_LEXICAL": "postgres"}
        command = [sys.executable, "-W", "error", "-c", "from cda.cli import main; main()"]
        command += ["search", "glucose monitor", "--payer", "MHP", "--json"]
        done = subprocess.run(command, capture_output=True, check=False, timeout=120, env=variables)
        assert done.returncode == code, done.stderr.decode()
        if code == 0:
            assert json.loads(done.stdout)["hits"]
            assert done.stderr == b""
        else:
            assert done.stdout == b""
            assert done.stderr.decode().count("\n") == 1
            assert b"canary" not in done.stderr


@pytest.mark.promise("backends.plain_errors")
def test_no_password_is_in_a_setting_shown_a_trace_or_a_file(home: Path, url: str) -> None:
    settings = of(home, url).model_copy(update={"database_url": SecretStr(url.replace("cda@", "cda:canary-word@"))})
    assert CoverageSystem.open(settings).ask(ASKED).gate.state == "DETERMINE"
    assert "canary-word" not in repr(settings)
    assert not [file for file in home.rglob("*") if file.is_file() and b"canary-word" in file.read_bytes()]
