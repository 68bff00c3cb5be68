"""Old targets go by age and count; what is in use, what is being written to and what is not known stays."""

from pathlib import Path

import pytest
from lifecycle_world import World, corpus

from backends.base import IndexSpec
from cda.errors import UsageError
from cda.retrieval.lifecycle.collect import Collection, collect, collection_of
from cda.retrieval.lifecycle.goal import Goal
from cda.retrieval.lifecycle.manifest import Building, building_name
from cda.retrieval.lifecycle.rollback import roll_back
from cda.retrieval.lifecycle.shared_files import IndexBusy

pytestmark = pytest.mark.promise("lifecycle.collect")

DAY = 86_400


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Six generations, of which the last is live; each was verified in the second of the epoch."""
    made = World(tmp_path, corpus())
    for _ in range(6):
        made.cycle().index(fresh=True)
    return made


def names(world: World) -> list[str]:
    make = world.backend.targets()[0].rpartition("-g")[0]
    return [f"{make}-g{n}" for n in range(1, 7)]


def planned(world: World, keep: int = 2, older_than_days: float = 30, now: float = 31 * DAY) -> Collection:
    return collection_of(world.backend, world.files, "policy", keep=keep, older_than_days=older_than_days, now=now)


def test_the_live_and_the_previous_target_are_never_collected(world: World) -> None:
    plan = planned(world, keep=0, older_than_days=0)
    *old, previous, live = names(world)
    assert (plan.live, plan.previous, plan.collected) == (live, previous, tuple(old))
    collect(world.backend, world.files, "policy", plan)
    assert world.backend.targets() == (previous, live)
    assert world.cycle().verify().state == "verified"
    assert roll_back(world.backend, world.files, "policy").target == previous


def test_the_newest_are_kept_by_count_and_the_young_by_age(world: World) -> None:
    first, second, third, fourth, *_ = names(world)
    by_count = planned(world)
    assert (by_count.collected, by_count.kept) == ((first, second), (third, fourth))
    assert planned(world, keep=0, now=29 * DAY).collected == ()
    assert planned(world, keep=9).collected == ()


def test_a_target_that_a_run_writes_to_stays(world: World) -> None:
    target = names(world)[0]
    plan = planned(world, keep=0)
    claim = Building(target, "a corpus", "a run", 1).encoded()
    world.files.write(building_name("local", target), claim, expect=None)
    with pytest.raises(IndexBusy, match="in the meantime"):
        collect(world.backend, world.files, "policy", plan)
    after = planned(world, keep=0)
    assert (after.building, target in after.collected, target in world.backend.targets()) == ((target,), False, True)


def test_a_target_that_became_previous_after_the_plan_stays(world: World) -> None:
    plan = planned(world, keep=0)
    roll_back(world.backend, world.files, "policy")
    *old, previous, live = names(world)
    stale = Collection(plan.live, plan.previous, (), (), (*old, previous, live), ())
    collect(world.backend, world.files, "policy", stale)
    assert world.backend.targets() == (previous, live)
    assert world.files.names("building/local") == []


def test_a_target_that_no_document_knows_is_named_and_left_alone(world: World) -> None:
    goal = Goal.of(world.store, world.embedder)
    stranger = "policy-0123456789ab-g1"
    world.backend.ensure(stranger, IndexSpec(goal.spec.schema, "another", 4))
    plan = planned(world, keep=0)
    assert (plan.unknown, stranger in plan.collected) == ((stranger,), False)
    collect(world.backend, world.files, "policy", plan)
    assert stranger in world.backend.targets()


@pytest.mark.parametrize("step", ["claim", "manifest", "drop"])
def test_a_collection_that_was_cut_short_is_gone_on_with(world: World, step: str) -> None:
    class Stop(Exception):
        pass

    def stop(done: str) -> None:
        if done == step:
            raise Stop

    with pytest.raises(Stop):
        collect(world.backend, world.files, "policy", planned(world), after=stop)
    again = planned(world)
    assert names(world)[0] in again.collected
    collect(world.backend, world.files, "policy", again)
    assert world.backend.targets() == tuple(names(world)[2:])
    assert world.files.names("building/local") == []
    assert planned(world).collected == ()


def test_a_rollback_to_a_target_that_is_gone_is_refused(world: World) -> None:
    world.backend.drop(names(world)[-2])
    with pytest.raises(UsageError, match="collected"):
        roll_back(world.backend, world.files, "policy")
