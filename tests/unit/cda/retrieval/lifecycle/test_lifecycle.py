"""The life-cycle of an index, from an empty service to a rolled-back one."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from lifecycle_world import STEPS, World, corpus
from retrieval_world import HashingEmbedder

from backends.base import Record
from backends.errors import IndexAbsent, IndexMismatch
from cda.errors import UsageError
from cda.retrieval.lifecycle.goal import Goal, found_in
from cda.retrieval.lifecycle.manifest import Pointer, held, live, manifest_name, pointer_name
from cda.retrieval.lifecycle.rollback import roll_back
from cda.retrieval.lifecycle.shared_files import IndexBusy
from cda.retrieval.lifecycle.verify import Verification

HERE = Path(__file__).parent
SPEC_OF = {"collection": "policy", "backend": "local"}


def live_target(world: World) -> str:
    goal = Goal.of(world.store, world.embedder)
    return live(world.files, **SPEC_OF, spec=goal.spec, corpus_digest=goal.corpus_digest)[0]


@pytest.mark.promise("lifecycle.plan")
def test_a_plan_names_all_that_will_be_done_and_does_none_of_it(tmp_path: Path) -> None:
    world = World(tmp_path, corpus())

    plan = world.cycle().plan()

    assert (len(plan.added), plan.changed, plan.unchanged, plan.orphaned) == (12, (), 0, ())
    assert (plan.embed, plan.bytes > 0, plan.requests > 0) == (12, True, True)
    assert world.backend.targets() == ()
    assert world.embedder.texts == 0
    assert world.files.names("building/local") == []


@pytest.mark.promise("lifecycle.incremental")
def test_only_what_changed_is_embedded_and_written(tmp_path: Path) -> None:
    World(tmp_path, corpus()).cycle().index()
    world = World(tmp_path, corpus(words="not covered"))
    world.embedder.texts = 0

    report = world.cycle().index()

    assert (report.state, report.promoted, report.embedded, report.upserted) == ("live", True, 1, 1)
    assert report.plan.changed == ("P-11.v1.C1",)


@pytest.mark.promise("lifecycle.incremental")
def test_a_second_identical_run_does_nothing_at_all(tmp_path: Path) -> None:
    World(tmp_path, corpus()).cycle().index()
    world = World(tmp_path, corpus())

    report = world.cycle().index(prune=True)

    assert (report.state, report.embedded, report.upserted, report.deleted) == ("live", 0, 0, 0)
    assert world.embedder.texts == 0


@pytest.mark.promise("lifecycle.resume")
@pytest.mark.parametrize("step", STEPS)
def test_a_run_killed_after_any_step_is_finished_by_the_next(tmp_path: Path, step: str) -> None:
    World(tmp_path, corpus(12)).cycle().index()
    command = [sys.executable, str(HERE / "lifecycle_world.py"), str(tmp_path), "excluded"]
    path = {"PYTHONPATH": f"{HERE.parent}:{HERE.parents[4]}"}

    killed = subprocess.run([*command, step], env=path, capture_output=True, text=True, timeout=120, check=False)
    resumed = subprocess.run([*command, "never"], env=path, capture_output=True, text=True, timeout=120, check=False)

    assert killed.returncode == 137, killed.stderr
    assert resumed.returncode == 0, resumed.stderr
    world = World(tmp_path, corpus(10, "excluded"))
    found = world.cycle().verify()
    assert (found.state, found.root) == ("verified", Goal.of(world.store, world.embedder).root)
    assert live_target(world)
    assert world.files.names("building/local") == []


@pytest.mark.promise("lifecycle.resume")
def test_no_text_is_embedded_twice_by_a_run_that_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, str(HERE / "lifecycle_world.py"), str(tmp_path), "excluded", "upsert"]
    path = {"PYTHONPATH": f"{HERE.parent}:{HERE.parents[4]}"}
    subprocess.run(command, env=path, capture_output=True, timeout=120, check=False)
    world = World(tmp_path, corpus(10, "excluded"))

    report = world.cycle().index()

    assert report.embedded == 0


@pytest.mark.promise("lifecycle.verify")
def test_what_is_lost_stale_orphaned_or_foreign_is_found_by_name(tmp_path: Path) -> None:
    world = World(tmp_path, corpus())
    world.cycle().index()
    target, goal = live_target(world), Goal.of(world.store, world.embedder)
    stale = goal.records["P-3.v1.C1"]
    vector = world.embedder.embed([stale.text])[0]
    world.backend.delete(target, goal.spec, ["P-2.v1.C1"])
    world.backend.upsert(
        target,
        goal.spec,
        [
            Record(stale.id, vector, stale.meta, "another hash"),
            Record("P-4.v1.C1", vector, {**stale.meta, "plan_id": "OTHER"}, goal.records["P-4.v1.C1"].content_hash),
            Record("GONE.v1.C1", vector, stale.meta, "a hash"),
        ],
    )

    found = world.cycle().verify()

    assert found.state == "drifted"
    assert (found.missing, found.stale, found.orphans) == (("P-2.v1.C1",), ("P-3.v1.C1", "P-4.v1.C1"), ("GONE.v1.C1",))
    assert (found.expected, found.found) == (12, 11)


@pytest.mark.promise("lifecycle.verify")
def test_a_record_whose_vector_is_another_does_not_find_itself(tmp_path: Path) -> None:
    world = World(tmp_path, corpus())
    world.cycle().index()
    goal = Goal.of(world.store, world.embedder)
    right, other = goal.records["P-5.v1.C1"], goal.records["P-6.v1.C1"]
    swapped = Record(right.id, world.embedder.embed([other.text])[0], right.meta, right.content_hash)
    world.backend.upsert(live_target(world), goal.spec, [swapped])

    found = world.cycle().verify()

    assert (found.state, found.unconfirmed) == ("drifted", ("P-5.v1.C1",))


@pytest.mark.promise("lifecycle.verify")
def test_a_drifted_index_is_mended_by_running_the_step_again(tmp_path: Path) -> None:
    world = World(tmp_path, corpus())
    world.cycle().index()
    world.backend.delete(live_target(world), Goal.of(world.store, world.embedder).spec, ["P-2.v1.C1"])

    report = world.cycle().index()

    assert (report.state, report.upserted, report.embedded) == ("live", 1, 0)
    assert world.cycle().verify().state == "verified"


@pytest.mark.promise("lifecycle.verify")
def test_an_index_that_was_never_built_is_absent(tmp_path: Path) -> None:
    assert World(tmp_path, corpus()).cycle().verify().state == "absent"


@pytest.mark.promise("lifecycle.manifest")
def test_queries_refuse_an_index_of_another_corpus_or_embedder(tmp_path: Path) -> None:
    world = World(tmp_path, corpus())
    with pytest.raises(IndexAbsent, match="cda corpus index"):
        live_target(world)
    world.cycle().index()
    goal = Goal.of(world.store, world.embedder)

    with pytest.raises(IndexMismatch, match="corpus"):
        live(world.files, **SPEC_OF, spec=goal.spec, corpus_digest="another")
    with pytest.raises(IndexMismatch, match="embedder"):
        live(world.files, **SPEC_OF, spec=replace(goal.spec, embedder="another"), corpus_digest=goal.corpus_digest)


@pytest.mark.promise("lifecycle.manifest")
def test_an_embedder_that_gives_other_vectors_under_the_same_name_is_found_out(tmp_path: Path) -> None:
    world = World(tmp_path, corpus())
    world.cycle().index()
    changed = HashingEmbedder(32, "another model")
    changed.identity = world.embedder.identity
    changed.embed = HashingEmbedder(32, "another model").embed  # type: ignore[method-assign]
    world.embedder = changed

    with pytest.raises(IndexMismatch, match="gives other vectors"):
        world.cycle().verify()


@pytest.mark.promise("lifecycle.manifest")
def test_a_lost_manifest_is_written_again_by_verify(tmp_path: Path) -> None:
    world = World(tmp_path, corpus())
    world.cycle().index()
    target = live_target(world)
    name = manifest_name("local", target)
    world.files.remove(name, expect=world.files.read(name) or b"")
    with pytest.raises(IndexAbsent, match="verify-index"):
        live_target(world)

    assert world.cycle().verify().state == "verified"
    assert live_target(world) == target


@pytest.mark.promise("lifecycle.prune")
def test_orphans_stay_until_they_are_pruned_and_only_they_go(tmp_path: Path) -> None:
    World(tmp_path, corpus(12)).cycle().index()
    world = World(tmp_path, corpus(10))

    kept = world.cycle().index()
    pruned = world.cycle().index(prune=True)

    assert (kept.state, kept.deleted, kept.plan.orphaned) == ("live", 0, ("P-10.v1.C1", "P-11.v1.C1"))
    assert (pruned.deleted, world.cycle().verify().state) == (2, "verified")


@pytest.mark.promise("lifecycle.prune")
def test_a_prune_of_more_than_a_fifth_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    World(tmp_path, corpus(12)).cycle().index()
    world = World(tmp_path, corpus(4))

    with pytest.raises(UsageError, match="8 of 12 records"):
        world.cycle().index(prune=True)

    goal = Goal.of(World(tmp_path, corpus(12)).store, world.embedder)
    assert found_in(world.backend, world.backend.targets()[0], goal.spec).root == goal.root
    assert world.cycle().index(prune=True, prune_limit=0.9).deleted == 8


@pytest.mark.promise("lifecycle.promote")
def test_nothing_is_promoted_that_was_not_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, corpus())
    wrong = Verification("t", expected=12, found=11, missing=("P-2.v1.C1",))
    monkeypatch.setattr("cda.retrieval.lifecycle.run.verify", lambda *_args, **_more: wrong)

    report = world.cycle().index()

    assert (report.state, report.promoted) == ("drifted", False)
    with pytest.raises(IndexAbsent):
        live_target(world)


@pytest.mark.promise("lifecycle.promote")
def test_of_two_operators_one_wins_and_the_other_is_told(tmp_path: Path) -> None:
    world, rival = World(tmp_path, corpus()), World(tmp_path, corpus())

    def meanwhile(step: str, _done: int, _of: int) -> None:
        if step == "verify":
            rival.cycle().index()

    with pytest.raises(IndexBusy, match="in the meantime"):
        world.cycle(meanwhile).index()

    assert live_target(rival)


@pytest.mark.promise("lifecycle.promote")
def test_of_two_promotions_at_once_the_second_is_told(tmp_path: Path) -> None:
    World(tmp_path, corpus()).cycle().index()
    world, rival = World(tmp_path, corpus()), World(tmp_path, corpus())

    def meanwhile(step: str, _done: int, _of: int) -> None:
        if step == "release":
            rival.cycle().index(fresh=True)

    with pytest.raises(IndexBusy):
        world.cycle(meanwhile).index(fresh=True)


@pytest.mark.promise("lifecycle.promote")
def test_a_run_towards_another_corpus_is_not_written_over_unasked(tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    def stop(step: str, _done: int, _of: int) -> None:
        if step == "upsert":
            raise Stop

    with pytest.raises(Stop):
        World(tmp_path, corpus(12)).cycle(stop).index()
    world = World(tmp_path, corpus(9))

    with pytest.raises(IndexBusy, match="--take-over"):
        world.cycle().index()
    assert world.cycle().index(take_over=True).state == "live"


@pytest.mark.promise("lifecycle.promote")
def test_a_target_that_is_not_promoted_is_gone_on_with_and_promoted_later(tmp_path: Path) -> None:
    world = World(tmp_path, corpus())

    ready = world.cycle().index(promote=False)
    later = world.cycle().index()

    assert (ready.state, later.state, later.promoted, later.upserted) == ("verified", "live", True, 0)
    assert later.plan.target == ready.plan.target


@pytest.mark.promise("lifecycle.rollback")
def test_a_fresh_generation_can_be_rolled_back(tmp_path: Path) -> None:
    world = World(tmp_path, corpus())
    first = world.cycle().index().plan.target
    second = world.cycle().index(fresh=True).plan.target
    assert (first != second, live_target(world)) == (True, second)

    back = roll_back(world.backend, world.files, "policy", clock=lambda: 2.0)

    assert (back.target, back.previous_target, live_target(world)) == (first, second, first)


@pytest.mark.promise("lifecycle.rollback")
def test_a_target_changed_in_place_cannot_be_rolled_back(tmp_path: Path) -> None:
    World(tmp_path, corpus()).cycle().index()
    world = World(tmp_path, corpus(words="not covered"))
    world.cycle().index()

    with pytest.raises(UsageError, match="changed in place"):
        roll_back(world.backend, world.files, "policy")


@pytest.mark.promise("lifecycle.manifest")
def test_a_damaged_pointer_is_named(tmp_path: Path) -> None:
    world = World(tmp_path, corpus())
    world.cycle().index()
    name = pointer_name(**SPEC_OF)
    world.files.write(name, b"{}", expect=world.files.read(name))

    with pytest.raises(IndexMismatch, match=r"pointer/policy-local\.json is damaged"):
        held(world.files, name, Pointer)
