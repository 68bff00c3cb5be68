"""The life-cycle where writes lag, get lost and are answered in part: over Pinecone's wire double."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from doubles.pinecone_server import Fault, PineconeDouble
from doubles.pinecone_store import Delay
from lifecycle_world import World, corpus
from pydantic import SecretStr

from backends.errors import BackendUnavailable
from backends.pinecone import PineconeBackend
from backends.pinecone_config import PineconeConfig


@pytest.fixture
def double() -> Iterator[PineconeDouble]:
    with PineconeDouble() as running:
        yield running


@pytest.fixture
def world(double: PineconeDouble, tmp_path: Path) -> Iterator[World]:
    config = PineconeConfig(SecretStr(double.key), "policies", "cda", host=double.host, write_deadline_s=5.0)
    backend = PineconeBackend(config)
    made = World(tmp_path, corpus(), backend)
    yield made
    made.cache.close()
    backend.close()


def held(double: PineconeDouble) -> tuple[str, Any]:
    """The namespace of the one target, and the double's index."""
    index = double.store.indexes["policies"]
    (name,) = index.namespaces
    return name, index


@pytest.mark.promise("pinecone.lifecycle")
def test_one_lost_one_stale_one_orphan_and_one_foreign_vector_are_found_by_name(
    double: PineconeDouble, world: World
) -> None:
    assert world.cycle().index().promoted
    name, index = held(double)
    space = index.namespaces[name]
    lost, stale = "P-3.v1.C1", "P-4.v1.C1"
    old = {**space.fetched.vectors[stale], "metadata": space.fetched.vectors[stale]["metadata"] | {"record_hash": "x"}}
    orphan = {**space.fetched.vectors["P-5.v1.C1"], "id": "P-99.v1.C1"}
    double.store.upsert(index, name, [old, orphan, {"id": "%who", "values": [1.0] * 32, "metadata": {}}])
    space.write("delete", [lost], double.store.delay)
    report = world.cycle().verify()
    assert (report.missing, report.stale, report.orphans, report.foreign) == (
        (lost,),
        (stale,),
        ("P-99.v1.C1",),
        ("%who",),
    )
    assert not report.promotable


@pytest.mark.promise("pinecone.lifecycle")
def test_a_vector_that_is_lost_without_a_word_keeps_a_run_from_being_promoted(
    double: PineconeDouble, world: World
) -> None:
    double.store.lose.add("P-3.v1.C1")
    report = world.cycle().index()
    assert (report.state, report.promoted) == ("drifted", False)
    assert report.verification is not None
    assert report.verification.missing == ("P-3.v1.C1",)
    assert world.cycle().index(take_over=True).promoted


@pytest.mark.promise("pinecone.lifecycle")
def test_a_batch_that_is_counted_in_part_is_sent_again(double: PineconeDouble, world: World) -> None:
    def after(step: str, _done: int, _of: int) -> None:
        if step == "ensure":
            double.store.count_short = 1

    report = world.cycle(after).index()
    assert (report.promoted, report.failed) == (True, ())


@pytest.mark.promise("pinecone.lifecycle")
def test_writes_that_lag_are_waited_for_and_writes_that_never_show_are_not_promoted(
    double: PineconeDouble, world: World
) -> None:
    double.store.delay = Delay(queries=2, fetches_too=True)
    assert world.cycle().index().promoted
    double.store.delay = Delay(forever=True, fetches_too=True)
    assert not world.holding(corpus(words="never seen")).cycle().index().promoted


@pytest.mark.promise("pinecone.lifecycle")
def test_an_increment_costs_what_changed(double: PineconeDouble, world: World) -> None:
    assert world.cycle().index().upserted == 12
    before = len(double.asked("/vectors/upsert"))
    report = world.holding(corpus(words="another word")).cycle().index()
    assert (report.upserted, report.embedded, report.promoted) == (1, 1, True)
    assert len(double.asked("/vectors/upsert")) == before + 1


@pytest.mark.promise("pinecone.lifecycle")
def test_an_outage_in_the_middle_is_gone_on_from(double: PineconeDouble, world: World) -> None:
    def after(step: str, _done: int, _of: int) -> None:
        if step == "ensure":
            double.faults.append(Fault("status", path="/vectors/upsert", times=10**6, status=503))

    with pytest.raises(BackendUnavailable, match="did not upsert in time"):
        world.cycle(after).index()
    double.faults.clear()
    report = world.cycle().index(take_over=True)
    assert (report.promoted, report.embedded, report.upserted) == (True, 0, 12)


KILLED = """
import sys
sys.path[:0] = sys.argv[4:]
from pathlib import Path
from pydantic import SecretStr
from lifecycle_world import World, corpus, killed_after
from backends.pinecone import PineconeBackend
from backends.pinecone_config import PineconeConfig
backend = PineconeBackend(PineconeConfig(SecretStr("the-key"), "policies", "cda", host=sys.argv[2]))
World(Path(sys.argv[1]), corpus(), backend).cycle(killed_after(sys.argv[3])).index()
"""


@pytest.mark.promise("pinecone.lifecycle")
@pytest.mark.parametrize("step", ["claim", "ensure", "upsert", "visible", "verify", "manifest", "promote"])
def test_a_run_that_is_killed_is_finished_by_the_next(
    double: PineconeDouble, world: World, tmp_path: Path, step: str
) -> None:
    paths = [path for path in sys.path if "retrieval" in path]
    command = [sys.executable, "-c", KILLED, str(tmp_path), double.host, step, *paths]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert done.returncode == 137, done.stderr.decode()
    report = world.cycle().index(take_over=True)
    name, index = held(double)
    assert {*index.namespaces[name].queried.vectors} == {f"P-{n}.v1.C1" for n in range(12)} | {"%target"}
    assert (report.state, report.failed) == ("live", ())
    assert world.cycle().verify().promotable
    if step not in ("claim", "ensure"):
        assert report.embedded == 0
