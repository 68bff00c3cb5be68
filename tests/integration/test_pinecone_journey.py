"""The shipped corpus with its vectors on Pinecone: the wire double, the real client library, the product's paths."""

import gzip
import json
import os
import subprocess
import sys
import time
import zlib
from base64 import b64decode
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from coverage_world import FLOOR, HMO, T1, open_system, request
from doubles.pinecone_server import Fault, PineconeDouble
from pydantic import SecretStr

from backends.errors import BackendError
from cda.errors import UnavailableError, exit_code
from cda.retrieval.embedding_cache import EmbeddingCache
from cda.retrieval.index import ensure_index
from cda.retrieval.lifecycle.goal import Goal
from cda.retrieval.lifecycle.run import LifeCycle, Report
from cda.settings import Settings, load_settings
from cda.systems.coverage.system import CoverageSystem
from cda.systems.coverage.vector_backend import configured_backend, configured_embedder, shared_files
from corpus.store import CorpusStore

KEY = "pcsk_CANARY_4711_0815"
MODELS = ("/embed", "/rerank")  # where text may go, when a setting names a model
RERANKER: Any = "bge-reranker-v2-m3"


@pytest.fixture(scope="module")
def double() -> Iterator[PineconeDouble]:
    with PineconeDouble(key=KEY) as running:
        yield running


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, double: PineconeDouble) -> Path:
    """A home whose live index is on the service."""
    root = tmp_path_factory.mktemp("pinecone-home")
    open_system(root)  # the store
    assert indexed(of(root, double)).promoted
    return root


def indexed(settings: Settings) -> Report:
    """One run of the life-cycle."""
    cache = EmbeddingCache(settings.home / "embeddings.sqlite")
    backend = configured_backend(settings, "pinecone")
    with CorpusStore.open(settings.store_path) as store, closing(cache), closing(backend):
        _, embedder = ensure_index(store, configured_embedder(settings), settings.index_path, local_vectors=False)
        goal, files = Goal.of(store, embedder), shared_files(settings)
        return LifeCycle(backend, files, goal, embedder, cache=cache, journals=settings.home / "journals").index()


@pytest.fixture
def settings(home: Path, double: PineconeDouble, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name, value in environment(home, double).items():
        monkeypatch.setenv(name, value)
    return load_settings()


@pytest.fixture(autouse=True)
def _calm(double: PineconeDouble) -> Iterator[None]:
    yield
    double.faults.clear()
    double.latency_s = 0.0
    double.key = KEY


def environment(home: Path, double: PineconeDouble) -> dict[str, str]:
    return {
        "CDA_HOME": str(home),
        "CDA_EMBEDDER": "tfidf",
        "CDA_VECTOR_BACKEND": "pinecone",
        "CDA_PINECONE_HOST": double.host,
        "PINECONE_API_KEY": KEY,
    }


def of(home: Path, double: PineconeDouble) -> Settings:
    return Settings(_env_file=None, **environment(home, double))


@pytest.fixture
def system(settings: Settings) -> CoverageSystem:
    return CoverageSystem.open(settings)


ASKED = request(HMO, "A9276", "2024-03-15", {**T1, "fingersticks_per_day": 5})


def decided(result: Any) -> dict[str, Any]:
    """Everything of a result that the backend must not change."""
    held = result.model_dump(mode="json")
    for name in ("run_id", "latency_s", "provenance", "trace_path"):
        held.pop(name, None)
    return dict(held)


@pytest.mark.promise("pinecone.same_decisions")
def test_every_floor_case_is_decided_as_over_the_local_index(system: CoverageSystem, home: Path) -> None:
    local = open_system(home)
    for _, plan, code, _, day, facts, _, _ in FLOOR:
        raw = request(plan, code, day, facts)
        assert decided(system.ask(raw)) == decided(local.ask(raw))


@pytest.mark.promise("pinecone.same_decisions")
def test_searches_find_the_same_clauses_in_the_same_order(system: CoverageSystem, home: Path) -> None:
    local = open_system(home)
    queries = ["continuous glucose monitor for gestational diabetes", "step therapy waived", "J0135"]
    for given in ({}, {"payer_id": "MHP"}, {"plan_id": HMO}):
        there, here = (tools.search_policies(queries, k=25, **given) for tools in (system.tools, local.tools))
        assert [[hit.clause.clause_id for hit in a.hits] for a in there] == [
            [hit.clause.clause_id for hit in a.hits] for a in here
        ]


@pytest.mark.promise("pinecone.same_decisions")
def test_a_result_names_its_backend(system: CoverageSystem) -> None:
    assert system.ask(ASKED).provenance.backend == "pinecone"


@pytest.mark.promise("pinecone.round_trips")
def test_opening_waits_for_two_round_trips_and_a_determination_for_one(
    settings: Settings, double: PineconeDouble
) -> None:
    double.latency_s = 0.3
    before = len(double.seen)
    system = CoverageSystem.open(settings)
    assert double.round_trips(before) == 2
    before = len(double.seen)
    assert system.ask(ASKED).gate.state == "DETERMINE"
    assert [one.path for one in double.seen[before:]] == ["/query"] * 3
    assert double.round_trips(before) == 1


@pytest.mark.promise("pinecone.no_text")
def test_no_request_holds_any_clause_text_or_any_question(
    system: CoverageSystem, home: Path, settings: Settings, double: PineconeDouble
) -> None:
    said = "an unusual wording of nobody else: monitor xylophone 4711"
    system.ask({**ASKED, "question": said})
    words = CoverageSystem.open(settings.model_copy(update={"lexical": "pinecone", "pinecone_rerank": RERANKER}))
    words.ask({**ASKED, "question": said})
    with CorpusStore.open(home / "corpus.sqlite") as store:
        texts = [clause.text for clause in store.clauses()]
    shingles = {text[start : start + 20] for text in [*texts, said] for start in range(0, len(text) - 19, 7)}
    assert all(len(shingle) == 20 for shingle in shingles)
    to_models = [one for one in double.seen if one.path in MODELS]
    others = [one for one in double.seen if one.path not in MODELS]
    assert len(others) > 10
    assert {one.path for one in to_models} == set(MODELS)
    assert not [s for s in shingles for one in others for text in readings(one.path, one.body) if s in text]
    assert any(s in text for s in shingles for one in to_models for text in readings(one.path, one.body))


def readings(path: str, body: bytes) -> Iterator[str]:
    """A request as it is, and every way in which text could be hidden in it."""
    yield unquote(path)
    for unpacked in (body, *unpackings(body)):
        yield unpacked.decode("utf-8", "replace")
        try:
            held = json.loads(unpacked)
        except ValueError:
            continue
        yield json.dumps(held, ensure_ascii=False)
        for text in strings(held):
            if len(text) >= 24:
                try:
                    yield b64decode(text, validate=True).decode("utf-8", "replace")
                except ValueError:
                    continue


def unpackings(body: bytes) -> Iterator[bytes]:
    for unpack in (gzip.decompress, zlib.decompress):
        try:
            yield unpack(body)
        except (OSError, zlib.error, EOFError):
            continue


def strings(held: Any) -> Iterator[str]:
    if isinstance(held, str):
        yield held
    elif isinstance(held, dict):
        for key, value in held.items():
            yield from strings(key)
            yield from strings(value)
    elif isinstance(held, list):
        for value in held:
            yield from strings(value)


@pytest.mark.promise("pinecone.no_text")
def test_the_readings_would_find_text() -> None:
    hidden = "this clause covers monitors for members"
    for body in (
        json.dumps({"metadata": {"t": hidden}}).encode(),
        gzip.compress(json.dumps({"t": hidden}).encode()),
        json.dumps({"t": "dGhpcyBjbGF1c2UgY292ZXJzIG1vbml0b3JzIGZvciBtZW1iZXJz"}).encode(),
    ):
        assert any(hidden in reading for reading in readings("/", body))
    assert any(hidden in reading for reading in readings("/?q=this%20clause%20covers%20monitors%20for%20members", b""))


@pytest.mark.promise("pinecone.canary")
def test_the_key_is_in_no_trace_no_file_and_no_result(system: CoverageSystem, home: Path, settings: Settings) -> None:
    result = system.ask(ASKED)
    assert KEY not in result.model_dump_json()
    assert KEY not in repr(settings)
    traces = [file for file in home.rglob("*") if file.is_file()]
    assert any("traces" in str(file) for file in traces)
    assert not [file for file in traces if KEY.encode() in file.read_bytes()]


@pytest.mark.promise("pinecone.access")
def test_a_service_that_fails_after_the_start_is_a_review_with_its_reason(
    system: CoverageSystem, double: PineconeDouble
) -> None:
    double.faults.append(Fault("status", path="/", times=999, status=401))
    result = system.ask(ASKED)
    assert result.gate.state == "REVIEW"
    assert "search_unavailable" in " ".join(result.gate.reasons)


@pytest.mark.promise("pinecone.access")
def test_without_a_key_nothing_is_asked(home: Path, double: PineconeDouble) -> None:
    before = len(double.seen)
    with pytest.raises(UnavailableError, match="PINECONE_API_KEY") as caught:
        CoverageSystem.open(of(home, double).model_copy(update={"pinecone_api_key": None}))
    assert exit_code(caught.value) == 3
    assert len(double.seen) == before


@pytest.mark.promise("pinecone.access")
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pinecone_api_key": SecretStr("another")}, "PINECONE_API_KEY"),
        ({"pinecone_index": "never-made"}, "no target .* check its settings"),
        ({"pinecone_namespace": "elsewhere"}, "no target"),
    ],
)
def test_the_wrong_key_index_or_namespace_is_one_clear_error(
    home: Path, double: PineconeDouble, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(BackendError, match=words) as caught:
        CoverageSystem.open(of(home, double).model_copy(update=changes))
    assert exit_code(caught.value) == 3
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.promise("pinecone.access")
def test_another_embedder_than_the_index_was_made_with_is_refused_before_a_request(
    home: Path, double: PineconeDouble
) -> None:
    before = len(double.seen)
    with pytest.raises(BackendError, match="was built with embedder") as caught:
        CoverageSystem.open(of(home, double).model_copy(update={"embedder": "minilm-int8"}))
    assert exit_code(caught.value) == 3
    assert len(double.seen) == before


@pytest.mark.promise("pinecone.access")
def test_the_command_line_answers_over_the_service_and_names_what_is_wrong_with_it(
    home: Path, double: PineconeDouble
) -> None:
    for key, code in ((KEY, 0), ("another", 3)):
        variables = environment(home, double) | {"PINECONE_API_KEY": key, "PATH": os.defpath}
        command = [sys.executable, "-W", "error", "-c", "from cda.cli import main; main()"]
        command += ["search", "glucose monitor", "--payer", "MHP", "--json"]
        done = subprocess.run(command, capture_output=True, check=False, timeout=120, env=variables)
        assert done.returncode == code, done.stderr.decode()
        if code == 0:
            assert json.loads(done.stdout)["hits"]
        else:
            assert done.stdout == b""
            assert done.stderr.decode().count("\n") == 1
            assert "PINECONE_API_KEY" in done.stderr.decode()


@pytest.mark.promise("pinecone.second_run")
def test_a_second_identical_run_writes_and_embeds_nothing(home: Path, double: PineconeDouble) -> None:
    before = len(double.seen)
    report = indexed(of(home, double))
    assert (report.embedded, report.upserted, report.deleted, report.failed) == (0, 0, 0, ())
    assert not [one for one in double.seen[before:] if one.path in ("/vectors/upsert", "/vectors/delete", "/embed")]


@pytest.mark.promise("pinecone.hosted")
def test_a_hosted_embedder_and_reranker_answer_and_are_named(
    tmp_path: Path, home: Path, double: PineconeDouble
) -> None:
    hosted = {"home": tmp_path, "store": home / "corpus.sqlite", "pinecone_index": "hosted"}
    hosted |= {"pinecone_model": "llama-text-embed-v2", "pinecone_dimension": 384}
    settings = of(tmp_path, double).model_copy(update=hosted)
    report = indexed(settings)
    assert report.promoted
    assert indexed(settings).embedded == 0
    plain = CoverageSystem.open(settings)
    reranked = CoverageSystem.open(settings.model_copy(update={"pinecone_rerank": "bge-reranker-v2-m3"}))
    double.latency_s = 0.3
    before = len(double.seen)
    answer = plain.ask(ASKED)
    assert double.round_trips(before) == 2
    assert (answer.provenance.embedder, answer.provenance.reranker) == ("llama-text-embed-v2", "adaptive")
    assert [one.path for one in double.seen[before:]] == ["/embed", "/query", "/query", "/query"]
    before = len(double.seen)
    again = reranked.ask(ASKED)
    assert double.round_trips(before) == 3
    assert again.provenance.reranker == "adaptive+bge-reranker-v2-m3"
    assert (again.gate.state, answer.gate.state) == ("DETERMINE", "DETERMINE")


@pytest.mark.promise("pinecone.sparse")
def test_words_on_the_service_decide_every_floor_case_as_the_local_words_do(home: Path, settings: Settings) -> None:
    there = CoverageSystem.open(settings.model_copy(update={"lexical": "pinecone"}))
    local = open_system(home)
    for _, plan, code, _, day, facts, _, _ in FLOOR:
        raw = request(plan, code, day, facts)
        found, here = there.ask(raw), local.ask(raw)
        assert (found.gate.state, found.determination and found.determination.outcome) == (
            here.gate.state,
            here.determination and here.determination.outcome,
        )


@pytest.mark.promise("pinecone.sparse")
def test_words_on_the_service_find_under_the_filter_alone(home: Path, settings: Settings) -> None:
    there = CoverageSystem.open(settings.model_copy(update={"lexical": "pinecone"}))
    for day, version in (("2024-06-30", "v1"), ("2024-07-01", "v2")):
        given: dict[str, Any] = {"payer_id": "MHP", "as_of": date.fromisoformat(day)}
        answer = there.tools.search_policies(["continuous glucose monitor criteria"], k=25, **given)[0]
        assert any(hit.legs.lexical_rank for hit in answer.hits)
        assert all(hit.clause.payer_id == "MHP" for hit in answer.hits)
        assert {hit.clause.version for hit in answer.hits if hit.clause.policy_id == "MHP-MP-0142"} == {version}


@pytest.mark.promise("pinecone.round_trips")
@pytest.mark.parametrize(
    "changes",
    [{}, {"lexical": "pinecone"}, {"lexical": "pinecone", "pinecone_model": "llama-text-embed-v2"}],
    ids=["vectors alone", "words too", "words too and a hosted embedder"],
)
def test_with_100_ms_a_request_a_determination_of_three_questions_waits_for_two_round_trips_at_most(
    tmp_path: Path, home: Path, double: PineconeDouble, changes: dict[str, Any]
) -> None:
    given = {"home": home} | changes
    if "pinecone_model" in changes:
        given |= {"home": tmp_path, "store": home / "corpus.sqlite"}
        given |= {"pinecone_index": "hosted-too", "pinecone_dimension": 384}
    settings = of(given["home"], double).model_copy(update=given)
    if "pinecone_model" in changes:
        assert indexed(settings).promoted
    system = CoverageSystem.open(settings)
    system.ask(ASKED)  # connections are opened by the first question
    double.latency_s = 0.1
    before, began = len(double.seen), time.monotonic()
    answer = system.ask(ASKED)
    took = time.monotonic() - began
    asked = double.seen[before:]
    assert answer.gate.state == "DETERMINE"
    assert len([one for one in asked if one.path == "/query"]) == 3 * (2 if "lexical" in changes else 1)
    assert len([one for one in asked if one.path == "/embed"]) == len(changes)
    # Requests one after another would take at least 0.1 s each; those in flight together take it once.
    assert double.round_trips(before) <= 2
    assert took < 0.1 * len(asked) or len(asked) <= 3


@pytest.mark.promise("pinecone.hosted")
def test_whoever_opens_hosted_pieces_is_told_first_which_texts_leave(
    home: Path, settings: Settings, double: PineconeDouble
) -> None:
    heard: list[tuple[str, int]] = []
    before = len(double.seen)
    changes: dict[str, Any] = {"lexical": "pinecone", "pinecone_rerank": RERANKER, "pinecone_namespace": "cda"}
    CoverageSystem.open(
        settings.model_copy(update=changes), say=lambda text: heard.append((text, len(double.seen) - before))
    )
    told = [text for text, asked in heard if asked == 0]
    assert [text for text in told if "clause texts and questions" in text and "CDA_LEXICAL" in text]
    assert [text for text in told if "texts of the clauses found" in text and "CDA_PINECONE_RERANK" in text]
    heard.clear()
    CoverageSystem.open(settings, say=lambda text: heard.append((text, 0)))
    assert not [text for text, _ in heard if "sent" in text]


@pytest.mark.promise("pinecone.access")
@pytest.mark.parametrize("changes", [{"lexical": "pinecone"}, {"pinecone_rerank": RERANKER}])
def test_a_hosted_piece_without_a_key_is_refused_and_never_left_out(home: Path, changes: dict[str, Any]) -> None:
    settings = Settings(_env_file=None, CDA_HOME=str(home), CDA_EMBEDDER="tfidf").model_copy(update=changes)
    with pytest.raises(UnavailableError, match="PINECONE_API_KEY") as caught:
        CoverageSystem.open(settings)
    assert exit_code(caught.value) == 3


@pytest.mark.promise("pinecone.access")
def test_words_that_fail_after_the_start_are_a_review_and_no_search_without_them(
    settings: Settings, double: PineconeDouble
) -> None:
    system = CoverageSystem.open(settings.model_copy(update={"lexical": "pinecone"}))
    double.faults.append(Fault("status", path="/embed", times=999, status=401))
    result = system.ask(ASKED)
    assert result.gate.state == "REVIEW"
    assert "search_unavailable" in " ".join(result.gate.reasons)
