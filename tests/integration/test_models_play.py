"""Every mode over the floor and adversarial sets, with an oracle and with bad actors in the models' place."""

import json
from typing import Any

import pytest
from coverage_world import settings
from doubles.actors import BadActor, Fabricator, Obeyer, Oracle, OverApprover, StaleCiter, Stitcher
from doubles.messages_actor import Body, Said

from cda.llm.scripted import ScriptedClient
from cda.systems.coverage.system import CoverageSystem
from evals.case_files import load_coverage
from evals.case_model import CoverageCase
from evals.shipped_corpus import worlds

CASES: list[CoverageCase] = [case for held in load_coverage(("floor", "adversarial")) for case in held.cases]
BAD: tuple[type[BadActor], ...] = (OverApprover, Fabricator, Stitcher, StaleCiter, Obeyer)
MODES = ("hybrid", "agentic")
BYTES_PER_TOKEN = 3.5  # English and JSON come to about 4: this counts on the dear side (docs/benchmarks/model.md)


class World:
    """The systems of every corpus that a case names, and what the criteria alone answer."""

    def __init__(self, home: Any) -> None:
        base = settings(home)
        self._worlds = worlds(base, {case.corpus for case in CASES}, lambda _: None)
        self._criteria = {name: CoverageSystem.open(world, say=lambda _: None) for name, world in self._worlds.items()}
        self.definitions = self._criteria[""].definitions
        self.criteria = self.answers(self._criteria)

    def played(
        self, mode: str, actor: type[Oracle], sizes: list[int] | None = None
    ) -> dict[str, tuple[str | None, str]]:
        """What each case is answered when the actor plays the mode's roles."""
        actor_ = actor(self.definitions)

        def script(body: Body) -> Said:
            if sizes is not None:
                sizes[-1] += len(json.dumps(body, ensure_ascii=False).encode())
            return actor_(body)

        client = ScriptedClient(script)
        systems = {
            name: CoverageSystem.open(
                world.model_copy(update={"reasoner": mode}), say=lambda _: None, model_client=client
            )
            for name, world in self._worlds.items()
        }
        return self.answers(systems, sizes)

    def answers(
        self, systems: dict[str, CoverageSystem], sizes: list[int] | None = None
    ) -> dict[str, tuple[str | None, str]]:
        found = {}
        for case in CASES:
            if sizes is not None:
                sizes.append(0)
            result = systems[case.corpus].ask(case.request())
            outcome = result.determination.outcome.value if result.determination else None
            found[case.case_id] = (outcome, result.gate.state.value)
        return found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("models"))


@pytest.mark.promise("models.oracle", "models.tokens")
@pytest.mark.parametrize(("mode", "most_tokens"), [("hybrid", 5_500), ("agentic", 12_000)])
def test_models_that_read_rightly_change_no_answer_and_stay_in_bounds(
    world: World, mode: str, most_tokens: int
) -> None:
    sizes: list[int] = []
    assert world.played(mode, Oracle, sizes) == world.criteria
    assert max(sizes) / BYTES_PER_TOKEN <= most_tokens


@pytest.mark.promise("models.bad_actors")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("actor", BAD)
def test_no_bad_actor_gets_a_wrong_answer_determined(world: World, mode: str, actor: type[BadActor]) -> None:
    played = world.played(mode, actor)
    determined = {name for name, (_, gate) in played.items() if gate == "DETERMINE"}
    assert {name for name in determined if played[name] != world.criteria[name]} == set()
    labels = {case.case_id: (case.expected_outcome, case.expected_gate) for case in CASES}
    assert {name: played[name] for name in determined if played[name] != labels[name]} == {}
    # Every other answer waits for a person, is refused, or could not be asked; and the actor was heard at all.
    assert {gate for _, gate in played.values()} <= {"DETERMINE", "REVIEW", "REFUSE", "HALT"}
    if (mode, actor) != ("hybrid", StaleCiter):  # who cites has no part in a mode in which models cite nothing
        assert played != world.criteria
