"""The life-cycle over a real Postgres, with its documents in the same database."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from embedded_server import TestServer
from lifecycle_world import World, corpus

from backends.base import IndexSpec, Record
from backends.errors import BackendUnavailable
from backends.pgdocuments import PgDocuments
from backends.pgvector import PgVectorBackend
from backends.postgres import Database
from cda.retrieval.lifecycle.document_files import DocumentFiles
from cda.retrieval.lifecycle.goal import Goal

pytestmark = pytest.mark.promise("pgvector.lifecycle")


@pytest.fixture
def url(postgres_server: TestServer) -> Iterator[str]:
    address = postgres_server.database()
    yield address
    postgres_server.give_back(address)


@pytest.fixture
def world(url: str, tmp_path: Path) -> Iterator[World]:
    database, documents = Database(url), Database(url)
    made = World(tmp_path, corpus(), PgVectorBackend(database))
    made.files = DocumentFiles(PgDocuments(documents))  # type: ignore[assignment]
    yield made
    made.cache.close()
    made.backend.close()
    documents.close()


KILLED = """
import sys
sys.path[:0] = sys.argv[4:]
from pathlib import Path
from lifecycle_world import World, corpus, killed_after
from backends.pgdocuments import PgDocuments
from backends.pgvector import PgVectorBackend
from backends.postgres import Database
from cda.retrieval.lifecycle.document_files import DocumentFiles
world = World(Path(sys.argv[1]), corpus(), PgVectorBackend(Database(sys.argv[2])))
world.files = DocumentFiles(PgDocuments(Database(sys.argv[2])))
world.cycle(killed_after(sys.argv[3])).index()
"""


@pytest.mark.parametrize(
    "step", ["plan", "claim", "ensure", "upsert", "visible", "verify", "manifest", "release", "promote"]
)
def test_a_run_that_is_killed_is_finished_by_the_next(url: str, world: World, tmp_path: Path, step: str) -> None:
    paths = [path for path in sys.path if "retrieval" in path]
    command = [sys.executable, "-c", KILLED, str(tmp_path), url, step, *paths]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert done.returncode == 137, done.stderr.decode()

    report = world.cycle().index()

    assert (report.state, report.failed) == ("live", ())
    found = world.cycle().verify()
    assert (found.state, found.root) == ("verified", Goal.of(world.store, world.embedder).root)
    assert world.files.names("building/pgvector") == []
    if step not in ("plan", "claim", "ensure"):
        assert report.embedded == 0


def test_one_lost_one_stale_and_one_orphan_are_found_by_name(world: World) -> None:
    target = world.cycle().index().plan.target
    goal = Goal.of(world.store, world.embedder)
    spec, right = goal.spec, goal.records["P-4.v1.C1"]
    vector = world.embedder.embed([right.text])[0]
    world.backend.delete(target, spec, ["P-3.v1.C1"])
    others = [Record(right.id, vector, right.meta, "x"), Record("P-99.v1.C1", vector, right.meta, "y")]
    world.backend.upsert(target, spec, others)

    found = world.cycle().verify()

    assert (found.missing, found.stale, found.orphans) == (("P-3.v1.C1",), ("P-4.v1.C1",), ("P-99.v1.C1",))
    assert world.cycle().index().state == "live"
    assert world.cycle().verify().orphans == ("P-99.v1.C1",)


def test_a_database_that_dies_in_the_middle_promotes_nothing(
    postgres_server: TestServer, world: World, url: str
) -> None:
    def after(step: str, _done: int, _of: int) -> None:
        if step == "ensure":
            postgres_server.stop()

    try:
        with pytest.raises(BackendUnavailable, match="does not answer"):
            world.cycle(after).index()
    finally:
        postgres_server.start()
    report = world.cycle().index()
    assert (report.state, report.promoted, report.upserted) == ("live", True, 12)


def test_targets_of_two_services_in_one_place_do_not_meet(world: World, tmp_path: Path) -> None:
    local = World(tmp_path, corpus())
    local.files = world.files
    assert world.cycle().index().plan.target == local.cycle().index().plan.target
    for one in (world, local):
        assert one.cycle().index(prune=True).note == "nothing to do"
    local.cache.close()


def test_a_target_of_another_size_under_the_name_is_refused_and_leaves_no_claim(world: World) -> None:
    target = world.cycle().plan().target
    spec = Goal.of(world.store, world.embedder).spec
    world.backend.ensure(target, IndexSpec(spec.schema, spec.embedder, 8))
    with pytest.raises(Exception, match="dimension"):
        world.cycle().index()
    assert world.files.names("building/pgvector") == []
