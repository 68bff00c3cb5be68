"""The Pinecone backend over the wire double: the conformance suite, and what only a network can get wrong."""

import ast
import json
import logging
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conformance.backend import SPEC, BackendConformance, X, put, record
from doubles.pinecone_server import Fault, PineconeDouble
from doubles.pinecone_store import Delay
from pydantic import SecretStr

from backends.base import Record, VectorBackend, WriteReport
from backends.errors import AccessRefused, BackendError, BackendUnavailable, IndexAbsent, IndexMismatch, InvalidRecord
from backends.filters import Everything
from backends.pinecone import PineconeBackend
from backends.pinecone_config import PineconeConfig


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


@pytest.fixture
def backend(double: PineconeDouble) -> Iterator[PineconeBackend]:
    made = opened(double)
    yield made
    made.close()


def found(backend: PineconeBackend, k: int = 50) -> list[str]:
    return [hit.id for hit in backend.search("t", SPEC, X, k=k, where=Everything())[0].hits]


# what a network gets wrong


@pytest.mark.promise("pinecone.passing_failures")
@pytest.mark.parametrize(
    "fault",
    [
        Fault("status", times=2, status=429, headers={"Retry-After": "0.05"}),
        Fault("status", times=2, status=503),
        Fault("page", times=1, status=502),
        Fault("drop", times=2),
        Fault("lose_answer", times=1),
        Fault("cut", times=1),
    ],
    ids=lambda fault: fault.kind,
)
@pytest.mark.parametrize("path", ["/vectors/upsert", "/query", "/vectors/list", "/indexes/"])
def test_a_failure_that_passes_is_not_noticed(double: PineconeDouble, fault: Fault, path: str) -> None:
    backend = opened(double)
    backend.ensure("t", SPEC)
    if path == "/indexes/":
        backend.close()
        backend = opened(double)
    double.faults.append(replace(fault, path=path))
    put(backend, [record("a"), record("b")])
    assert found(backend) == ["a", "b"]
    assert [one.id for one in backend.scan("t", SPEC).records] == ["a", "b"]
    assert double.faults[-1].times == 0
    backend.close()


@pytest.mark.promise("pinecone.deadline")
@pytest.mark.parametrize(
    "fault",
    [Fault("status", path="/query", times=999, status=503), Fault("stall", path="/query", times=9, seconds=5.0)],
)
def test_a_service_that_does_not_answer_is_an_error_when_the_deadline_is_over(
    double: PineconeDouble, fault: Fault
) -> None:
    backend = opened(double, read_deadline_s=1.0)
    put(backend, [record("a")])
    double.faults.append(fault)
    began = time.monotonic()
    with pytest.raises(BackendUnavailable, match="did not query in time"):
        found(backend)
    assert time.monotonic() - began < 3.0
    backend.close()


@pytest.mark.promise("pinecone.deadline")
def test_an_outage_during_an_upsert_ends_it_and_reports_what_was_written_before(double: PineconeDouble) -> None:
    backend = opened(double, write_deadline_s=0.8)
    backend.ensure("t", SPEC)
    double.faults.append(Fault("status", path="/vectors/upsert", times=999, status=503))
    heard: list[WriteReport] = []

    def records() -> Iterator[Record]:
        yield from (record(f"r{i:05}") for i in range(20_000))
        raise AssertionError("the source was drained into an outage")

    with pytest.raises(BackendUnavailable, match="did not upsert in time"):
        backend.upsert("t", SPEC, records(), on_batch=heard.append)
    assert heard == []
    backend.close()


@pytest.mark.promise("pinecone.twice")
def test_an_upsert_whose_answer_was_lost_is_applied_twice_and_stored_once(
    double: PineconeDouble, backend: PineconeBackend
) -> None:
    backend.ensure("t", SPEC)
    before = len(double.asked("/vectors/upsert"))
    double.faults.append(Fault("lose_answer", path="/vectors/upsert"))
    report = put(backend, [record("a"), record("b")])
    assert len(double.asked("/vectors/upsert")) == before + 2
    assert report.accepted == ("a", "b")
    assert found(backend) == ["a", "b"]


@pytest.mark.promise("pinecone.partial")
def test_a_batch_that_the_service_does_not_count_whole_has_failed(
    double: PineconeDouble, backend: PineconeBackend
) -> None:
    backend.ensure("t", SPEC)
    double.store.count_short = 1
    report = backend.upsert("t", SPEC, [record("a"), record("b")])
    assert report.accepted == ()
    assert [(one.id, one.code, one.retryable) for one in report.failed] == [
        ("a", "not_all_counted", True),
        ("b", "not_all_counted", True),
    ]
    assert put(backend, [record("a"), record("b")]).failed == ()


@pytest.mark.promise("pinecone.partial")
def test_a_vector_that_is_lost_without_a_word_is_missing_from_a_scan(
    double: PineconeDouble, backend: PineconeBackend
) -> None:
    double.store.lose.add("b")
    report = put(backend, [record("a"), record("b"), record("c")])
    assert report.accepted == ("a", "b", "c")
    assert [one.id for one in backend.scan("t", SPEC).records] == ["a", "c"]


# read after write


@pytest.mark.promise("pinecone.visible")
def test_a_write_is_waited_for_by_its_log_position(double: PineconeDouble, backend: PineconeBackend) -> None:
    backend.ensure("t", SPEC)
    double.store.delay = Delay(queries=3)
    token = backend.upsert("t", SPEC, [record("a")]).token
    asked = len(double.asked("/query"))
    assert backend.wait_visible("t", token, deadline_s=30).confirmed
    assert len(double.asked("/query")) == asked + 3
    assert found(backend) == ["a"]


@pytest.mark.promise("pinecone.visible")
def test_a_deletion_is_waited_for_as_well(double: PineconeDouble, backend: PineconeBackend) -> None:
    put(backend, [record("a"), record("b")])
    double.store.delay = Delay(queries=3)
    token = backend.delete("t", SPEC, ["a"]).token
    assert found(backend) == ["a", "b"]
    assert backend.wait_visible("t", token, deadline_s=30).confirmed
    assert found(backend) == ["b"]


@pytest.mark.promise("pinecone.visible")
def test_an_insertion_and_a_deletion_that_leave_the_count_are_not_taken_for_seen(
    double: PineconeDouble, backend: PineconeBackend
) -> None:
    put(backend, [record("a"), record("b")])
    double.store.delay = Delay(forever=True)
    backend.upsert("t", SPEC, [record("c")])
    token = backend.delete("t", SPEC, ["a"]).token
    seen = backend.wait_visible("t", token, deadline_s=0.2)
    assert not seen.confirmed
    assert "log position 2 after 0.2 s, the write is at" in seen.why


@pytest.mark.promise("pinecone.visible")
def test_a_write_without_a_position_is_never_confirmed(backend: PineconeBackend) -> None:
    put(backend, [record("a")])
    assert not backend.wait_visible("t", "-1", deadline_s=5).confirmed


# limits


@pytest.mark.promise("pinecone.batches")
def test_requests_are_cut_by_their_bytes(double: PineconeDouble, backend: PineconeBackend) -> None:
    spec = replace(SPEC, dim=1024)
    random = np.random.default_rng(5)
    rows = [replace_vector(record(f"r{i:03}"), random.normal(size=1024)) for i in range(300)]
    backend.ensure("t", spec)
    heard: list[WriteReport] = []
    report = backend.upsert("t", spec, rows, on_batch=heard.append)
    sizes = [len(one.body) for one in double.asked("/vectors/upsert")[1:]]
    assert len(report.accepted) == 300
    assert len(heard) == len(sizes) == 2
    assert max(sizes) <= 2_000_000
    assert max(sizes) > 1_950_000


@pytest.mark.promise("pinecone.batches")
def test_requests_are_cut_by_their_count(double: PineconeDouble, backend: PineconeBackend) -> None:
    report = put(backend, [record(f"r{i:04}") for i in range(2001)])
    counts = [len(json.loads(one.body)["vectors"]) for one in double.asked("/vectors/upsert")[1:]]
    assert sorted(counts) == [1, 1000, 1000]
    assert len(report.accepted) == 2001


@pytest.mark.promise("pinecone.batches")
def test_a_record_that_is_too_large_is_named_and_the_others_land(backend: PineconeBackend) -> None:
    codes = tuple(f"C{i:05}" for i in range(6_000))
    report = put(backend, [record("a"), record("wide", codes=codes), record("b")])
    assert report.accepted == ("a", "b")
    assert [(one.id, one.code, one.retryable) for one in report.failed] == [("wide", "fields_too_large", False)]


@pytest.mark.promise("pinecone.batches")
@pytest.mark.parametrize(("length", "kept"), [(56, True), (57, False)])
def test_an_id_may_be_as_long_as_its_ascii_form_allows(backend: PineconeBackend, length: int, kept: bool) -> None:
    name = "漢" * length + "x" * 8
    if kept:
        put(backend, [record(name)])
        assert found(backend) == [name]
    else:
        backend.ensure("t", SPEC)
        with pytest.raises(InvalidRecord, match="pinecone keeps 512"):
            backend.upsert("t", SPEC, [record(name)])


# whose index it is


@pytest.mark.promise("pinecone.access")
def test_a_wrong_key_is_one_clear_error(double: PineconeDouble) -> None:
    backend = opened(double, api_key=SecretStr("another"))
    with pytest.raises(AccessRefused, match="PINECONE_API_KEY"):
        backend.search("t", SPEC, X, k=1, where=Everything())
    backend.close()


@pytest.mark.promise("pinecone.access")
@pytest.mark.parametrize("key", ["with blank at the end ", "two\nlines", "ключ"])
def test_a_key_that_is_none_is_refused_without_a_request(double: PineconeDouble, key: str) -> None:
    with pytest.raises(AccessRefused, match="no key has"):
        opened(double, api_key=SecretStr(key))
    assert double.seen == []


@pytest.mark.promise("backends.mismatch")
def test_a_missing_index_is_named_with_what_makes_it(double: PineconeDouble, backend: PineconeBackend) -> None:
    with pytest.raises(IndexAbsent, match=r"no Pinecone index 'policies'.*CDA_PINECONE_INDEX"):
        backend.search("t", SPEC, X, k=1, where=Everything())
    assert [one.path for one in double.seen] == ["/indexes/policies"]


@pytest.mark.promise("backends.mismatch")
def test_an_index_of_another_dimension_is_refused_before_anything_is_written(
    double: PineconeDouble, backend: PineconeBackend
) -> None:
    put(backend, [record("a")])
    written = len(double.asked("/vectors/upsert"))
    with pytest.raises(IndexMismatch, match="dimension 4, this run has 8; set CDA_PINECONE_INDEX"):
        backend.ensure("t8", replace(SPEC, dim=8))
    assert len(double.asked("/vectors/upsert")) == written


@pytest.mark.promise("backends.mismatch")
def test_vectors_of_strangers_are_not_taken_over(double: PineconeDouble, backend: PineconeBackend) -> None:
    backend.ensure("t", SPEC)
    stranger = {"id": "x", "values": [1.0, 0.0, 0.0, 0.0], "metadata": {}}
    double.store.upsert(double.store.indexes["policies"], "cda.t2", [stranger])
    with pytest.raises(IndexMismatch, match="CDA_PINECONE_NAMESPACE"):
        backend.ensure("t2", SPEC)


@pytest.mark.promise("pinecone.strangers")
def test_strangers_in_a_target_are_named_and_never_found(double: PineconeDouble, backend: PineconeBackend) -> None:
    put(backend, [record("a", (0, 1, 0, 0))])
    fields = {"payer_id": "AAA"}
    strangers = [{"id": f"%{i:03}", "values": [1.0, 0.0, 0.0, 0.0], "metadata": fields} for i in range(60)]
    strangers.append({"id": "own-looking", "values": [1.0, 0.0, 0.0, 0.0], "metadata": fields})
    double.store.upsert(double.store.indexes["policies"], "cda.t", strangers)
    assert found(backend, k=1) == ["a"]
    page = backend.scan("t", SPEC)
    assert [one.id for one in page.records] == ["a"]
    assert sorted(page.foreign) == sorted(stranger["id"] for stranger in strangers)
    backend.delete("t", SPEC, [], foreign=page.foreign)
    assert backend.scan("t", SPEC).foreign == ()


@pytest.mark.promise("pinecone.strangers")
def test_a_target_that_others_removed_is_an_error_and_no_empty_answer(
    double: PineconeDouble, backend: PineconeBackend
) -> None:
    put(backend, [record("a")])
    assert found(backend) == ["a"]
    del double.store.indexes["policies"].namespaces["cda.t"]
    with pytest.raises(IndexAbsent, match="'t'"):
        found(backend)


@pytest.mark.promise("pinecone.creation")
def test_the_index_is_made_as_the_settings_say_and_waited_for(double: PineconeDouble) -> None:
    double.describes_until_ready = 2
    backend = opened(
        double, cloud="gcp", region="europe-west4", tags={"team": "policy"}, deletion_protection=True, index="made"
    )
    backend.ensure("t", SPEC)
    (sent,) = [json.loads(one.body) for one in double.seen if (one.method, one.path) == ("POST", "/indexes")]
    place = sent["deployment"] if "deployment" in sent else sent["spec"]["serverless"]  # pinecone 10, pinecone 9
    assert (place["cloud"], place["region"]) == ("gcp", "europe-west4")
    assert sent["deletion_protection"] == "enabled"
    assert sent["tags"] == {"team": "policy", "made-by": "cda"}
    backend.close()


# concurrency and clients


@pytest.mark.promise("pinecone.round_trips")
def test_several_vectors_cost_the_waiting_of_one(double: PineconeDouble, backend: PineconeBackend) -> None:
    put(backend, [record("a")])
    fresh = opened(double)
    double.latency_s = 0.4
    for trips in (2, 1):  # the first search also asks where the index is
        before = len(double.seen)
        fresh.search("t", SPEC, np.tile(X, (3, 1)), k=5, where=Everything())
        assert double.round_trips(before) == trips
    fresh.close()


@pytest.mark.promise("backends.closed")
def test_opening_and_closing_leaves_no_thread_behind(double: PineconeDouble, backend: PineconeBackend) -> None:
    put(backend, [record("a")])
    before = {thread.ident for thread in threading.enumerate() if thread.name.startswith("pinecone")}
    for _ in range(10):
        another = opened(double)
        found(another)
        another.close()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        left = {thread.ident for thread in threading.enumerate() if thread.name.startswith("pinecone")} - before
        if not left:
            break
        time.sleep(0.02)
    assert left == set()


@pytest.mark.promise("pinecone.canary")
def test_the_key_is_in_no_repr_no_error_and_no_log(double: PineconeDouble, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    canary = "pcsk_CANARY_0123456789"
    double.key = canary
    backend = opened(double, read_deadline_s=0.5)
    put(backend, [record("a")])
    said = [repr(vars(backend)), repr(vars(backend._service)), repr(backend._service.config)]
    for fault in (
        Fault("status", path="/query", times=99, status=503),
        Fault("drop", path="/query", times=99),
        Fault("status", path="/query", times=99, status=401),
        Fault("status", path="/query", times=99, status=400),
        Fault("page", path="/query", times=99, status=403),
    ):
        double.faults[:] = [fault]
        with pytest.raises(BackendError) as caught:
            found(backend)
        said += traceback.format_exception(caught.value)
        said.append(repr(caught.value.__context__))
    assert canary.encode() in json.dumps([dict(one.headers) for one in double.seen]).encode()
    assert canary not in "".join(said) + caplog.text
    backend.close()


@pytest.mark.promise("pinecone.double")
def test_the_double_shares_no_code_with_the_product() -> None:
    for file in (Path(__file__).parents[2] / "doubles").glob("pinecone_*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.split(".")[0] for name in names} & {"backends", "cda", "corpus", "evals", "pinecone"}


@pytest.mark.promise("pinecone.double")
def test_the_double_can_be_started_by_hand() -> None:
    tests = Path(__file__).parents[2]
    command = [sys.executable, "-m", "doubles.pinecone_server", "--port", "0", "--key", "k"]
    with subprocess.Popen(command, cwd=tests, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            host = process.stdout.readline().split()[0].removeprefix("CDA_PINECONE_HOST=")
            backend = PineconeBackend(PineconeConfig(SecretStr("k"), "policies", "cda", host=host))
            put(backend, [record("a")])
            assert found(backend) == ["a"]
            backend.close()
        finally:
            process.kill()


def replace_vector(row: Record, vector: Any) -> Record:
    return Record(row.id, np.asarray(vector, dtype=np.float32), row.meta, row.content_hash)
