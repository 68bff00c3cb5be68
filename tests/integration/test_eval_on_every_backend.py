"""The coverage suite over local files, pgvector and Pinecone: the same decisions, and the same clauses admitted.

By default a sample of the cases is asked; `--all-cases` asks every one of them:

    python -m pytest tests/integration/test_eval_on_every_backend.py --all-cases
"""

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from doubles.pinecone_server import PineconeDouble
from embedded_server import TestServer, running_server
from service_index import indexed

from backends.base import IndexSpec
from backends.filters import eligible, evaluate
from backends.schema import POLICY
from cda.retrieval.documents import meta_of
from cda.retrieval.index import ensure_index
from cda.settings import Settings
from cda.systems.coverage.vector_backend import open_policy_search
from corpus.store import CorpusStore
from evals.asking import Asked, Asker
from evals.case_files import load_coverage
from evals.record import Record
from evals.shipped_corpus import Worlds, worlds

BACKENDS = ("local", "pgvector", "pinecone")
EVERY = 17  # of the cases, one in so many is in the sample; no length of a pattern's series is a multiple of it


@pytest.fixture(scope="module")
def double() -> Iterator[PineconeDouble]:
    with PineconeDouble() as running:
        yield running


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with running_server() as running:
        yield running


@pytest.fixture(scope="module")
def asked(request: pytest.FixtureRequest) -> list[Asked]:
    every = [Asked(held.name, case) for held in load_coverage() for case in held.cases]
    if request.config.getoption("--all-cases"):
        return every
    return [one for place, one in enumerate(every) if place % EVERY == 0 or one.case.corpus]


@pytest.fixture(scope="module")
def placed(
    tmp_path_factory: pytest.TempPathFactory, double: PineconeDouble, server: TestServer, asked: list[Asked]
) -> dict[str, Worlds]:
    """For each backend the settings of every corpus that a case names, indexed there."""
    home = tmp_path_factory.mktemp("three-backends")
    plain = Settings(_env_file=None, CDA_HOME=str(home), CDA_EMBEDDER="tfidf")
    local = worlds(plain, {one.case.corpus for one in asked}, lambda _: None)
    found: dict[str, Worlds] = {name: {} for name in BACKENDS}
    for name, settings in local.items():
        found["local"][name] = settings
        on_service: dict[str, dict[str, Any]] = {
            "pgvector": {"CDA_MANIFESTS": "postgres", "DATABASE_URL": server.database()},
            "pinecone": {
                "CDA_MANIFESTS": f"file:{home}/manifests-{name}",
                "CDA_PINECONE_HOST": double.host,
                "CDA_PINECONE_NAMESPACE": f"cda-{name or 'shipped'}",
                "CDA_PINECONE_INDEX": f"policies-{name or 'shipped'}",
                "PINECONE_API_KEY": double.key,
            },
        }
        for backend, given in on_service.items():
            variables = {"CDA_HOME": str(home), "CDA_STORE": str(settings.store_path), "CDA_EMBEDDER": "tfidf"}
            there = Settings(_env_file=None, CDA_VECTOR_BACKEND=backend, **variables, **given)
            assert indexed(there).promoted
            found[backend][name] = there
    return found


@pytest.fixture(scope="module")
def answers(placed: dict[str, Worlds], asked: list[Asked]) -> Iterator[dict[str, list[Record]]]:
    yield {backend: [asker.answer(one) for one in asked] for backend, asker in _askers(placed)}
    gc.collect()  # a system that nobody holds closes its connections now


def _askers(placed: dict[str, Worlds]) -> Iterator[tuple[str, Asker]]:
    for backend in BACKENDS:
        yield backend, Asker(placed[backend])


def judged(record: Record) -> Record:
    """All that a scorer reads of a record but the time that it took."""
    return replace(record, latency_s=0.0, run_id="", detail="")


@pytest.mark.promise("backends.same_suite")
@pytest.mark.parametrize("backend", ["pgvector", "pinecone"])
def test_every_case_is_decided_as_over_local_files(
    answers: dict[str, list[Record]], asked: list[Asked], backend: str
) -> None:
    assert len(answers["local"]) == len(asked) > 50
    assert {record.gate for record in answers["local"]} >= {"DETERMINE", "REFUSE", "HALT"}
    differing = [
        (here.case_id, f"{here.outcome} {here.gate}", f"{there.outcome} {there.gate}")
        for here, there in zip(answers["local"], answers[backend], strict=True)
        if judged(here) != judged(there)
    ]
    assert differing == []


@pytest.mark.promise("backends.same_suite")
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_filter_of_the_suite_admits_the_same_clauses_on_every_backend(
    placed: dict[str, Worlds], asked: list[Asked], backend: str
) -> None:
    filters = {
        (one.case.corpus, one.case.payer_id, one.case.plan_id, one.case.as_of_date): one
        for one in asked
        if _day(one.case.as_of_date)
    }
    differences, compared = [], 0
    for name, settings in placed[backend].items():
        with CorpusStore.open(settings.store_path) as store:
            metas = {clause.clause_id: meta_of(clause) for clause in store.clauses()}
            search = open_policy_search(settings, store)
            _, embedder = ensure_index(store, "tfidf", settings.index_path, local_vectors=backend == "local")
            spec = IndexSpec(POLICY, embedder.identity, embedder.dim)
            vectors = embedder.embed(["coverage criteria"])
            with closing(search.vectors.backend) as there:
                for corpus, payer, plan, day in filters:
                    if corpus != name:
                        continue
                    where = eligible(payer_id=payer or None, plan_id=plan or None, as_of=_day(day))
                    page = there.search(search.vectors.target, spec, vectors, k=1000, where=where)[0]
                    wanted = {i for i, meta in metas.items() if evaluate(where, meta)}
                    differences += sorted(wanted ^ {hit.id for hit in page.hits})
                    compared += len(wanted)
    assert differences == []
    assert compared > 400


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except (TypeError, ValueError):
        return None


@pytest.mark.promise("backends.diff_names")
def test_the_comparison_over_pinecone_names_backend_embedder_and_reranker(placed: dict[str, Worlds]) -> None:
    settings = placed["pinecone"][""]
    key = settings.pinecone_api_key.get_secret_value() if settings.pinecone_api_key else ""
    variables = {
        "PATH": os.defpath,
        "CDA_HOME": str(settings.home),
        "CDA_EMBEDDER": "tfidf",
        "CDA_RERANKER": "date_aware",
        "CDA_VECTOR_BACKEND": "pinecone",
        "CDA_MANIFESTS": str(settings.manifests),
        "CDA_PINECONE_HOST": str(settings.pinecone_host),
        "CDA_PINECONE_NAMESPACE": settings.pinecone_namespace,
        "CDA_PINECONE_INDEX": settings.pinecone_index,
        "PINECONE_API_KEY": key,
    }
    command = [sys.executable, "-c", "from cda.cli import main; main()"]
    command += ["eval", "--set", "floor", "--diff", "--concurrency", "1"]
    done = subprocess.run(command, capture_output=True, check=False, timeout=240, env=variables)
    assert done.returncode == 0, done.stderr.decode()
    told = done.stdout.decode()
    assert "NOT like for like" in told
    assert "moved backend: local -> pinecone" in told
    assert "moved embedder: minilm-int8 -> tfidf" in told
    assert "moved reranker: adaptive -> date_aware" in told
    assert "the same: lexical tantivy" in told


@pytest.mark.promise("backends.same_suite")
def test_cases_over_an_added_corpus_are_asked_of_local_files_whatever_the_service_holds(tmp_path: Path) -> None:
    given = {"CDA_HOME": str(tmp_path), "CDA_VECTOR_BACKEND": "pinecone", "CDA_LEXICAL": "pinecone"}
    found = worlds(Settings(_env_file=None, **given), {"hostile"}, lambda _: None)
    assert (found[""].vector_backend, found["hostile"].vector_backend) == ("pinecone", "local")
    assert (found[""].lexical, found["hostile"].lexical) == ("pinecone", "tantivy")
