"""The local backend: the conformance suite, and what only files can get wrong."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conformance.backend import DIM, SPEC, BackendConformance, X, put, record

from backends.base import VectorBackend
from backends.errors import BackendError, IndexMismatch
from backends.filters import All, Eq, Everything, In, Where
from backends.local import LocalBackend
from backends.schema import POLICY


class TestLocal(BackendConformance):
    @pytest.fixture
    def make_backend(self, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], VectorBackend]:
        return lambda: LocalBackend(tmp_path_factory.mktemp("local"))


@pytest.mark.promise("backends.round_trip")
def test_another_process_reads_what_this_one_wrote(tmp_path: Path) -> None:
    put(LocalBackend(tmp_path), [record("a"), record("b", (0, 1, 0, 0))])
    hits = LocalBackend(tmp_path).search("t", SPEC, X, k=5, where=Everything())[0].hits
    assert [hit.id for hit in hits] == ["a", "b"]


@pytest.mark.promise("backends.pinned")
@pytest.mark.parametrize(
    "where",
    [
        Eq(POLICY["payer_id"], "P3"),
        In(POLICY["payer_id"], ("P1", "P4", "nobody")),
        In(POLICY["payer_id"], ()),
        All((In(POLICY["payer_id"], ("P1", "P2")), Eq(POLICY["payer_id"], "P2"))),
    ],
)
def test_a_pinned_partition_gives_what_a_full_scan_gives(tmp_path: Path, where: Where) -> None:
    random = np.random.default_rng(3)
    rows = [record(f"r{i:03}", random.normal(size=DIM), payer_id=f"P{i % 5}") for i in range(100)]
    backend = LocalBackend(tmp_path)
    put(backend, rows)
    full = {hit.id: hit.score for hit in backend.search("t", SPEC, X, k=100, where=Everything())[0].hits}
    payers = {row.id: row.meta["payer_id"] for row in rows}
    bound = {"P3"} if isinstance(where, Eq) else {"P2"} if isinstance(where, All) else set(where.values)  # type: ignore[union-attr]
    expected = {name: score for name, score in full.items() if payers[name] in bound}
    page = backend.search("t", SPEC, X, k=100, where=where)[0]
    assert {hit.id: hit.score for hit in page.hits} == pytest.approx(expected, abs=1e-6)


@pytest.mark.promise("backends.whole_or_nothing")
def test_a_crash_before_the_last_step_leaves_the_old_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = LocalBackend(tmp_path)
    put(backend, [record("old")])

    def power_cut(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez", power_cut)
    with pytest.raises(OSError, match="no space"):
        put(backend, [record("new")])
    fresh = LocalBackend(tmp_path)
    assert [hit.id for hit in fresh.search("t", SPEC, X, k=5, where=Everything())[0].hits] == ["old"]
    assert len(os.listdir(tmp_path / "t")) == 2


@pytest.mark.promise("backends.mismatch")
@pytest.mark.parametrize("damage", ["not json", '{"format": 99}', "[]", "{}"])
def test_a_damaged_manifest_is_told_apart_from_an_absent_one(tmp_path: Path, damage: str) -> None:
    put(LocalBackend(tmp_path), [record("a")])
    (tmp_path / "t" / "manifest.json").write_text(damage, encoding="utf-8")
    with pytest.raises(IndexMismatch, match="build the index again"):
        LocalBackend(tmp_path).search("t", SPEC, X, k=1, where=Everything())


@pytest.mark.promise("backends.mismatch")
def test_vectors_that_are_not_those_of_the_manifest_are_refused(tmp_path: Path) -> None:
    put(LocalBackend(tmp_path), [record("a"), record("b")])
    manifest = tmp_path / "t" / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text("utf-8")) | {"count": 3}), encoding="utf-8")
    with pytest.raises(IndexMismatch, match="does not hold"):
        LocalBackend(tmp_path).search("t", SPEC, X, k=1, where=Everything())


@pytest.mark.promise("backends.whole_or_nothing")
def test_what_a_killed_writer_left_behind_is_gone_after_the_next_write(tmp_path: Path) -> None:
    put(LocalBackend(tmp_path), [record("a")])
    (tmp_path / "t" / "half-written").mkdir()
    put(LocalBackend(tmp_path), [record("b")])
    assert len(os.listdir(tmp_path / "t")) == 2


@pytest.mark.promise("backends.incremental")
def test_a_reader_that_is_open_sees_the_next_write(tmp_path: Path) -> None:
    reader, writer = LocalBackend(tmp_path), LocalBackend(tmp_path)
    put(writer, [record("a")])
    assert reader.search("t", SPEC, X, k=5, where=Everything())[0].eligible == 1
    put(writer, [record("b")])
    assert reader.search("t", SPEC, X, k=5, where=Everything())[0].eligible == 2


@pytest.mark.promise("backends.scan")
def test_a_write_between_two_pages_of_a_scan_is_told(tmp_path: Path) -> None:
    backend = LocalBackend(tmp_path)
    put(backend, [record("a"), record("b")])
    page = backend.scan("t", SPEC, limit=1)
    put(backend, [record("c")])
    with pytest.raises(BackendError, match="during the scan"):
        backend.scan("t", SPEC, after=page.after, limit=1)


@pytest.mark.promise("backends.offline")
def test_the_local_backend_opens_no_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr("socket.socket", refused)
    backend = LocalBackend(tmp_path)
    put(backend, [record("a")])
    backend.delete("t", SPEC, ["b"])
    assert backend.scan("t", SPEC).records[0].id == "a"
    assert backend.search("t", SPEC, X, k=1, where=Everything())[0].hits[0].id == "a"
