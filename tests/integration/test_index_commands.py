"""The index commands of the command line, over Pinecone's wire double and over a real Postgres."""

import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from doubles.pinecone_server import Fault, PineconeDouble
from embedded_server import TestServer, running_server
from s3_server import running_bucket

from backends.base import IndexSpec, Record
from backends.schema import POLICY
from cda.cli import main
from cda.settings import Settings
from cda.systems.coverage.index_progress import IndexProgress
from cda.systems.coverage.index_run import index_run
from cda.systems.coverage.vector_backend import configured_backend
from corpus.store_writer import write_store
from corpus.synth import synthesize

KEY = "pcsk_CANARY_4711_0815"
MENDS = "run `cda corpus index --backend"


@dataclass
class Place:
    """A home, and the service that its settings name."""

    name: str
    home: Path
    variables: dict[str, str]
    double: PineconeDouble | None = None

    @property
    def settings(self) -> Settings:
        return Settings(_env_file=None, **self.variables)  # type: ignore[arg-type]


@dataclass
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return dict(json.loads(self.out))


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    """A server of this module's own: it is stopped and started."""
    with running_server() as running:
        yield running


@pytest.fixture
def double() -> Iterator[PineconeDouble]:
    with PineconeDouble(key=KEY) as running:
        yield running


@pytest.fixture(params=["pinecone", "pgvector"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, server: TestServer, double: PineconeDouble
) -> Iterator[Place]:
    yield made(request.param, tmp_path, server, double)
    gc.collect()  # what nobody holds closes its connections now, and a warning would fail this test


@pytest.fixture
def on_pinecone(tmp_path: Path, double: PineconeDouble) -> Place:
    return made("pinecone", tmp_path, None, double)


def made(name: str, root: Path, server: TestServer | None, double: PineconeDouble) -> Place:
    variables = {"CDA_HOME": str(root / "home"), "CDA_EMBEDDER": "minilm-int8", "CDA_VECTOR_BACKEND": name}
    if name == "pgvector":
        assert server is not None
        variables |= {"DATABASE_URL": server.database(), "CDA_MANIFESTS": "postgres"}
        return Place(name, root / "home", variables)
    variables |= {"CDA_PINECONE_HOST": double.host, "PINECONE_API_KEY": KEY}
    return Place(name, root / "home", variables, double)


@pytest.fixture
def cda(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """The command line in this process, with the variables of a place."""

    def run(place: Place, *words: str, **changes: str) -> Ran:
        for name, value in (place.variables | changes).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["cda", *words])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capfd.readouterr()
        return Ran(int(ended.value.code or 0), said.out, said.err)

    return run


def write(place: Place, clauses: int = 14, seed: int = 1) -> None:
    """The place's corpus: a larger one holds what a smaller one of the same seed holds."""
    place.home.mkdir(parents=True, exist_ok=True)
    write_store(synthesize(clauses, seed), place.home / "corpus.sqlite")


def one_error(ran: Ran, words: str, code: int = 3) -> None:
    assert ran.code == code, ran.err
    assert ran.out == ""
    *steps, last = ran.err.strip().split("\n")
    assert last.startswith("cda: ")
    assert words in last
    assert not [line for line in steps if line.startswith("cda: ") or "Traceback" in line]
    assert KEY not in ran.err


@pytest.mark.promise("lifecycle.commands")
def test_from_a_plan_to_a_second_run_that_does_nothing(place: Place, cda: Callable[..., Ran]) -> None:
    write(place)
    planned = cda(place, "corpus", "index", "--plan", "--json")
    assert planned.code == 0
    plan = planned.json
    assert (plan["state"], plan["added"], plan["embed"], plan["unchanged"]) == ("planned", 14, 14, 0)
    assert len(plan["ids"]["added"]) == 14
    assert min(plan["bytes"], plan["requests"], plan["seconds"]) > 0
    absent = cda(place, "corpus", "verify-index", "--json")
    assert (absent.code, absent.json["state"], len(absent.json["missing"])) == (1, "absent", 14)
    one_error(cda(place, "search", "a monitor"), MENDS)

    first = cda(place, "corpus", "index", "--json")
    assert first.code == 0, first.err
    done = first.json
    assert (done["target"], done["state"], done["promoted"]) == (plan["target"], "live", True)
    assert [done[kind] for kind in ("added", "embedded", "upserted", "deleted", "failed")] == [14, 14, 14, 0, []]
    assert "14 of 14 records written" in first.err

    seen = len(place.double.seen) if place.double else 0
    second = cda(place, "corpus", "index", "--prune", "--json")
    counts = ("added", "changed", "unchanged", "orphaned", "embedded", "upserted", "deleted")
    assert (second.code, second.json["state"], second.json["promoted"]) == (0, "live", True)
    assert [second.json[kind] for kind in counts] == [0, 0, 14, 0, 0, 0, 0]
    if place.double:
        assert not [one for one in place.double.seen[seen:] if one.path in ("/vectors/upsert", "/vectors/delete")]

    verified = cda(place, "corpus", "verify-index", "--json")
    assert (verified.code, verified.json["state"]) == (0, "verified")
    assert (verified.json["expected"], verified.json["found"], len(verified.json["manifest"])) == (14, 14, 64)
    assert json.loads(cda(place, "search", "a monitor", "--json").out)["hits"]


@pytest.mark.promise("lifecycle.commands")
def test_a_changed_corpus_is_refused_until_it_is_indexed_and_its_orphans_go_when_they_are_pruned(
    place: Place, cda: Callable[..., Ran]
) -> None:
    write(place, 14)
    assert cda(place, "corpus", "index").code == 0
    write(place, 12)
    one_error(cda(place, "search", "a monitor"), MENDS)
    kept = cda(place, "corpus", "index", "--json").json
    assert (kept["orphaned"], kept["embedded"], kept["upserted"], kept["deleted"]) == (2, 0, 0, 0)
    drifted = cda(place, "corpus", "verify-index", "--json")
    assert (drifted.code, drifted.json["state"], len(drifted.json["orphans"])) == (1, "drifted", 2)
    refused = cda(place, "corpus", "index", "--prune", "--prune-limit", "0.1")
    one_error(refused, "2 of 14 records", code=2)
    assert cda(place, "corpus", "index", "--prune", "--json").json["deleted"] == 2
    assert cda(place, "corpus", "verify-index").code == 0
    assert json.loads(cda(place, "search", "a monitor", "--json").out)["hits"]


@pytest.mark.promise("lifecycle.commands")
def test_a_fresh_target_is_promoted_rolled_back_and_collected(place: Place, cda: Callable[..., Ran]) -> None:
    write(place, 6)
    first = cda(place, "corpus", "index", "--json").json["target"]
    one_error(cda(place, "corpus", "rollback-index"), "no earlier target", code=2)
    ready = cda(place, "corpus", "index", "--fresh", "--no-promote", "--json").json
    assert (ready["state"], ready["promoted"]) == ("verified", False)
    second = cda(place, "corpus", "index", "--fresh", "--json").json["target"]
    back = cda(place, "corpus", "rollback-index", "--json")
    assert (back.code, back.json["target"], back.json["previous_target"]) == (0, first, second)
    assert first != second == ready["target"]
    assert cda(place, "search", "a monitor").code == 0
    assert cda(place, "corpus", "index", "--fresh", "--json").json["target"] == second
    third = cda(place, "corpus", "index", "--fresh", "--json").json["target"]
    young = cda(place, "corpus", "collect-index", "--keep", "0", "--json").json
    assert (young["collected"], young["kept"]) == ([], [first])
    looked = cda(place, "corpus", "collect-index", "--keep", "0", "--older-than", "0", "--plan", "--json").json
    time.sleep(1.1)  # a manifest tells whole seconds
    gone = cda(place, "corpus", "collect-index", "--keep", "0", "--older-than", "0", "--json").json
    assert (gone["live"], gone["previous"], gone["collected"]) == (third, second, [first])
    assert looked["state"] == "planned"
    with closing(configured_backend(place.settings, place.name)) as backend:  # type: ignore[arg-type]
        assert backend.targets() == (second, third)


def damage(place: Place) -> tuple[str, str, str]:
    """One vector lost, one stale, one orphan; their ids."""
    with index_run(place.settings, place.name, IndexProgress(), build=False) as run:  # type: ignore[arg-type]
        (target,), goal = run.backend.targets(), run.goal
        lost, stale = sorted(goal.records)[2:4]
        record = goal.records[stale]
        vector = [1.0] + [0.0] * (goal.spec.dim - 1)
        run.backend.delete(target, goal.spec, [lost])
        others = [Record(stale, vector, record.meta, "x"), Record("GONE.v1.C1", vector, record.meta, "y")]  # type: ignore[arg-type]
        run.backend.upsert(target, goal.spec, others)
    return lost, stale, "GONE.v1.C1"


@pytest.mark.promise("lifecycle.commands")
def test_what_is_lost_stale_or_orphaned_is_named_and_mended(place: Place, cda: Callable[..., Ran]) -> None:
    write(place, 8)
    cda(place, "corpus", "index")
    lost, stale, orphan = damage(place)
    if place.double:
        index = place.double.store.indexes["cda-policies"]
        (space,) = index.namespaces
        stranger = {"id": "%who", "values": [1.0] * index.model["dimension"], "metadata": {}}
        place.double.store.upsert(index, space, [stranger])
    found = cda(place, "corpus", "verify-index", "--json")
    assert found.code == 1
    named = [found.json[kind] for kind in ("state", "missing", "stale", "orphans")]
    assert named == ["drifted", [lost], [stale], [orphan]]
    assert found.json["foreign"] == (["%who"] if place.double else [])
    said = cda(place, "corpus", "verify-index")
    assert (said.code, f"missing: {lost}" in said.out, f"stale: {stale}" in said.out) == (1, True, True)
    mended = cda(place, "corpus", "index", "--prune", "--json")
    assert (mended.json["upserted"], mended.json["embedded"], mended.json["deleted"]) == (2, 0, 1)
    left = cda(place, "corpus", "verify-index", "--json").json
    assert [left[kind] for kind in ("missing", "stale", "orphans")] == [[], [], []]


@pytest.mark.promise("lifecycle.commands")
def test_a_lost_manifest_is_written_again_by_verify(on_pinecone: Place, cda: Callable[..., Ran]) -> None:
    write(on_pinecone, 4)
    cda(on_pinecone, "corpus", "index")
    (manifest,) = (on_pinecone.home / "manifests" / "manifests").rglob("*.json")
    manifest.unlink()
    one_error(cda(on_pinecone, "search", "a monitor"), "run `cda corpus verify-index --backend pinecone`")
    assert cda(on_pinecone, "corpus", "verify-index").code == 0
    assert cda(on_pinecone, "search", "a monitor").code == 0


@pytest.mark.promise("lifecycle.commands")
def test_two_machines_share_an_index_through_a_bucket(
    tmp_path: Path, double: PineconeDouble, cda: Callable[..., Ran]
) -> None:
    one, other = (made("pinecone", tmp_path / name, None, double) for name in ("one", "other"))
    with running_bucket() as bucket:
        for machine in (one, other):
            write(machine, 4)
            machine.variables |= {"CDA_MANIFESTS": f"s3://{bucket.name}/cda", **bucket.environment}
        assert cda(one, "corpus", "index").code == 0
        assert json.loads(cda(other, "search", "a monitor", "--json").out)["hits"]
        again = cda(other, "corpus", "index", "--json").json
        assert (again["state"], again["embedded"], again["upserted"]) == ("live", 0, 0)
        one_error(cda(one, "search", "a", CDA_MANIFESTS="s3://never-made-4711"), "does not exist")


@pytest.mark.promise("lifecycle.errors")
def test_what_is_wrong_with_pinecone_is_one_line_and_nothing_is_promoted(
    on_pinecone: Place, cda: Callable[..., Ran], double: PineconeDouble
) -> None:
    write(on_pinecone, 4)
    one_error(cda(on_pinecone, "corpus", "index", PINECONE_API_KEY="another"), "PINECONE_API_KEY")
    one_error(cda(on_pinecone, "corpus", "verify-index", PINECONE_API_KEY="another"), "PINECONE_API_KEY")
    with closing(configured_backend(on_pinecone.settings, "pinecone")) as backend:
        backend.ensure("made-by-others", IndexSpec(POLICY, "another", 8))
    one_error(cda(on_pinecone, "corpus", "index"), "has the dimension 8, this run has 384")
    double.faults.append(Fault("status", path="/", times=10**6, status=403))
    one_error(cda(on_pinecone, "corpus", "index"), "Pinecone")
    shared = on_pinecone.home / "manifests"
    assert not [*shared.glob("pointer/*.json"), *shared.glob("building/*/*.json"), *shared.glob("manifests/*/*.json")]


@pytest.mark.promise("lifecycle.errors")
def test_an_index_of_another_embedder_of_the_same_size_is_refused_and_another_target_is_made_beside_it(
    on_pinecone: Place, cda: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(on_pinecone, 4)
    first = cda(on_pinecone, "corpus", "index", "--json").json
    other = {"CDA_PINECONE_MODEL": "llama-text-embed-v2", "CDA_PINECONE_DIMENSION": "384"}
    one_error(cda(on_pinecone, "search", "a monitor", **other), "was built with embedder")
    second = cda(on_pinecone, "corpus", "index", "--json", **other).json
    assert (second["target"] != first["target"], second["added"], second["promoted"]) == (True, 4, True)
    for name in other:
        monkeypatch.delenv(name)
    one_error(cda(on_pinecone, "search", "a monitor"), "was built with embedder")


@pytest.mark.promise("lifecycle.errors")
def test_a_model_that_changed_under_its_name_is_refused_by_every_command(
    on_pinecone: Place, cda: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cda.retrieval.minilm import MiniLM

    write(on_pinecone, 4)
    cda(on_pinecone, "corpus", "index")
    write(on_pinecone, 5)
    embed = MiniLM.embed
    monkeypatch.setattr(MiniLM, "embed", lambda self, texts: embed(self, [text[::-1] for text in texts]))
    for words in (("corpus", "index"), ("corpus", "verify-index")):
        one_error(cda(on_pinecone, *words), "gives other vectors")
    write(on_pinecone, 4)
    one_error(cda(on_pinecone, "search", "a monitor"), "gives other vectors")


@pytest.mark.promise("lifecycle.errors")
def test_a_dead_database_is_one_line(tmp_path: Path, server: TestServer, double: PineconeDouble, cda: Any) -> None:
    place = made("pgvector", tmp_path, server, double)
    write(place, 4)
    server.stop()
    try:
        for command in ("index", "verify-index", "rollback-index", "collect-index"):
            one_error(cda(place, "corpus", command), "the database does not answer")
    finally:
        server.start()
    assert cda(place, "corpus", "index").code == 0
    gc.collect()


FULL = """
import resource, sys
sys.dont_write_bytecode = True
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2)
from cda.cli import main
main()
"""


@pytest.mark.promise("lifecycle.errors")
def test_a_disk_that_takes_no_more_is_one_line_and_the_next_run_goes_on(
    on_pinecone: Place, cda: Callable[..., Ran], double: PineconeDouble
) -> None:
    """The disk is a limit of the process: every write beyond it fails as on a full one."""
    write(on_pinecone, 60)
    cda(on_pinecone, "corpus", "index", "--plan")
    variables = on_pinecone.variables | {"PATH": os.defpath}
    command = [sys.executable, "-c", FULL, "20000", "corpus", "index"]
    done = subprocess.run(command, capture_output=True, check=False, timeout=120, env=variables)
    assert done.returncode == 3, done.stderr.decode()
    assert done.stdout == b""
    last = done.stderr.decode().strip().split("\n")[-1]
    assert last.startswith("cda: ")
    assert "cannot be written" in last
    assert not [*(on_pinecone.home / "manifests").glob("pointer/*")]
    report = cda(on_pinecone, "corpus", "index", "--json")
    assert (report.code, report.json["promoted"], report.json["added"]) == (0, True, 60)


def started(place: Place, *words: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", "from cda.cli import main; main()", "corpus", "index", *words]
    return subprocess.Popen(
        command, env=place.variables | {"PATH": os.defpath}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def until(condition: Callable[[], object]) -> None:
    ends = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.02)


@pytest.mark.promise("lifecycle.resume")
def test_a_command_that_is_killed_while_it_writes_is_finished_by_the_next(
    on_pinecone: Place, cda: Callable[..., Ran], double: PineconeDouble
) -> None:
    write(on_pinecone, 30)
    double.faults.append(Fault("stall", path="/vectors/upsert", times=9, seconds=3.0))
    running = started(on_pinecone)
    until(lambda: [*(on_pinecone.home / "manifests").glob("building/*/*.json")])
    running.send_signal(signal.SIGKILL)
    running.communicate(timeout=30)
    assert running.returncode == -signal.SIGKILL
    double.faults.clear()
    report = cda(on_pinecone, "corpus", "index", "--json")
    assert (report.code, report.json["state"]) == (0, "live"), report.err
    assert cda(on_pinecone, "corpus", "verify-index").code == 0


@pytest.mark.promise("lifecycle.promote")
def test_of_two_commands_at_once_one_wins_and_the_other_is_told(
    on_pinecone: Place, cda: Callable[..., Ran], double: PineconeDouble
) -> None:
    write(on_pinecone, 6)
    cda(on_pinecone, "corpus", "index", "--backend", "local")  # the embedder is loaded, so that the second is quick
    double.latency_s = 0.2
    one = started(on_pinecone)
    until(lambda: [*(on_pinecone.home / "manifests").glob("building/*/*.json")])
    one.send_signal(signal.SIGSTOP)
    double.latency_s = 0.0
    other = cda(on_pinecone, "corpus", "index", "--json")
    one.send_signal(signal.SIGCONT)
    out, err = one.communicate(timeout=120)
    assert (other.code, other.json["promoted"]) == (0, True)
    assert (one.returncode, out) == (3, b"")
    assert "another run has changed" in err.decode().strip().split("\n")[-1]
    assert cda(on_pinecone, "corpus", "verify-index").code == 0


def drained(terminal: int) -> str:
    parts = []
    with suppress(OSError):  # how a terminal says that nobody writes to it any more
        while part := os.read(terminal, 4096):
            parts.append(part)
    os.close(terminal)
    return b"".join(parts).decode()


@pytest.mark.promise("lifecycle.commands")
def test_a_person_sees_a_bar_and_a_program_one_document(on_pinecone: Place) -> None:
    write(on_pinecone, 6)
    terminal, theirs = os.openpty()
    command = [sys.executable, "-c", "from cda.cli import main; main()", "corpus", "index", "--json"]
    variables = on_pinecone.variables | {"PATH": os.defpath, "TERM": "xterm", "COLUMNS": "100"}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, env=variables, check=False, timeout=120)
    os.close(theirs)
    shown = drained(terminal)
    assert done.returncode == 0, shown
    assert json.loads(done.stdout)["state"] == "live"
    assert "records written" in shown
    assert "6/6" in shown
    assert "\u2501" in shown


@pytest.mark.promise("lifecycle.commands")
def test_the_doctor_tells_capabilities_counts_age_and_costs(place: Place, cda: Callable[..., Ran]) -> None:
    write(place, 6)
    before = cda(place, "doctor", "--json").json["findings"]
    assert [one["state"] for one in before if one["name"] == f"index ({place.name})"] == ["fail"]
    cda(place, "corpus", "index")
    found = {one["name"]: one for one in cda(place, "doctor", "--json").json["findings"]}
    assert "filtered inside it" in found[f"capabilities ({place.name})"]["detail"]
    index = found[f"index ({place.name})"]
    assert index["state"] == "ok"
    assert "6 clauses in the corpus, 6 in the manifest, 6 on the service; verified today" in index["detail"]
    assert "1 index runs, the first today: 6 texts embedded" in found[f"cost so far ({place.name})"]["detail"]
    damage(place)
    write(place, 7)
    late = {one["name"]: one for one in cda(place, "doctor", "--json").json["findings"]}[f"index ({place.name})"]
    assert (late["state"], "corpus" in late["detail"]) == ("fail", True)
    assert late["remedy"] == f"run `cda corpus index --backend {place.name}`"


@pytest.mark.promise("lifecycle.commands")
def test_the_local_index_is_planned_built_verified_and_built_anew(
    tmp_path: Path, double: PineconeDouble, cda: Callable[..., Ran]
) -> None:
    place = made("pinecone", tmp_path, None, double)
    write(place, 5)
    local = ("--backend", "local")
    plan = cda(place, "corpus", "index", *local, "--plan", "--json").json
    assert (plan["state"], plan["added"], plan["promoted"]) == ("planned", 5, False)
    assert cda(place, "corpus", "verify-index", *local, "--json").json["state"] == "absent"
    built = cda(place, "corpus", "index", *local, "--json").json
    again = cda(place, "corpus", "index", *local, "--json").json
    assert [(one["state"], one["upserted"], one["promoted"]) for one in (built, again)] == [
        ("built", 5, True),
        ("unchanged", 0, True),
    ]
    assert (built["embedded"] > 5, again["embedded"]) == (True, 0)
    assert cda(place, "corpus", "verify-index", *local).code == 0
    (titles,) = place.home.glob("index/*/titles.npz")
    titles.write_bytes(b"damage")
    anew = cda(place, "corpus", "index", *local, "--fresh", "--json").json
    assert (anew["state"], anew["manifest"]) == ("built", built["manifest"])
    assert cda(place, "corpus", "verify-index", *local).code == 0
    for words in (("index", "--no-promote"), ("index", "--take-over"), ("rollback-index",), ("collect-index",)):
        one_error(cda(place, "corpus", *words, *local), "is for an index on a service", code=2)
    assert len(double.seen) == 0
