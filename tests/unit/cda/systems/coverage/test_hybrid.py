from pathlib import Path
from typing import Any

import pytest
from coverage_world import HMO, open_system, request
from doubles.messages_actor import Body, Said, data_of

from cda.contracts.decision import GateState, Outcome
from cda.llm.scripted import ScriptedClient
from cda.systems.coverage.system import CoverageSystem

CHART = "Type 1 diabetes. No hypoglycemia unawareness. Checks fingersticks 5 times a day."
STICKS = {"fact": "fingersticks_per_day", "value": "5", "unit": "", "quote": "Checks fingersticks 5 times a day"}
TYPE = {"fact": "diabetes_type", "value": "type_1", "unit": "", "quote": "Type 1 diabetes"}
AWARE = {
    "fact": "hypoglycemia_unawareness",
    "value": "false",
    "unit": "",
    "quote": "No hypoglycemia unawareness",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hybrid")
    open_system(path)
    return path


def told(home: Path, *answers: list[dict[str, Any]], chart: str = CHART, passes: int = 1) -> tuple[Any, list[Body]]:
    """The result when the model gives these facts, one list a call."""
    bodies: list[Body] = []

    def script(body: Body) -> Said:
        bodies.append(body)
        return Said(answer={"facts": answers[min(len(bodies), len(answers)) - 1]})

    from coverage_world import settings

    world = settings(home, CDA_REASONER="hybrid", CDA_HYBRID_PASSES=passes)
    system = CoverageSystem.open(world, say=lambda _: None, model_client=ScriptedClient(script))
    return system.ask(request(HMO, narrative=chart)), bodies


@pytest.mark.promise("models.disagrees")
def test_two_readings_alike_are_determined_in_one_call(home: Path) -> None:
    result, bodies = told(home, [STICKS, TYPE, AWARE])
    assert (result.determination.outcome, result.gate.state) == (Outcome.COVERED, GateState.DETERMINE)
    assert len(bodies) == 1


@pytest.mark.promise("models.disagrees")
@pytest.mark.parametrize(
    "facts",
    [
        [{**STICKS, "value": "2"}, TYPE, AWARE],
        [TYPE, AWARE],
        [{**STICKS, "quote": "Tests often"}, TYPE, AWARE],
        [],
    ],
)
def test_a_deciding_fact_read_otherwise_is_a_review_that_shows_both(home: Path, facts: list[dict[str, Any]]) -> None:
    result, _ = told(home, facts)
    assert result.gate.state is GateState.REVIEW
    assert any(reason.startswith("model_disagrees: ") for reason in result.gate.reasons)
    shown = [c.text for c in result.determination.noted_conflicts if "fingersticks_per_day" in c.text]
    assert len(shown) == 1
    assert "the rules: 5 in" in shown[0]


@pytest.mark.promise("models.disagrees")
def test_what_only_the_model_finds_is_a_case_for_a_person_and_never_an_approval(home: Path) -> None:
    chart = "Type 1 diabetes. No hypoglycemia unawareness. The lancet comes out 5 times between dawn and bed."
    quote = "The lancet comes out 5 times between dawn and bed"
    result, _ = told(home, [{**STICKS, "quote": quote}, TYPE, AWARE], chart=chart)
    assert (result.determination.outcome, result.gate.state) == (Outcome.INSUFFICIENT_EVIDENCE, GateState.REVIEW)
    assert any("with the model's it is COVERED" in c.text for c in result.determination.noted_conflicts)
    refused, _ = told(home, [TYPE, AWARE], chart=chart)
    assert refused.gate.state is GateState.REFUSE


@pytest.mark.promise("models.disagrees")
def test_a_second_pass_asks_only_what_decides_and_must_say_the_same(home: Path) -> None:
    same, bodies = told(home, [STICKS, TYPE, AWARE], passes=2)
    assert same.gate.state is GateState.DETERMINE
    assert len(bodies) == 2
    first, second = ({row["fact"] for row in data_of(body)["facts"]} for body in bodies)
    assert second <= first
    other, _ = told(home, [STICKS, TYPE, AWARE], [{**STICKS, "value": ">=5"}, TYPE, AWARE], passes=2)
    assert other.gate.state is GateState.REVIEW


@pytest.mark.promise("models.data")
def test_a_request_without_a_chart_asks_no_model(home: Path) -> None:
    result, bodies = told(home, [], chart="")
    assert bodies == []
    assert result.input_tokens == 0
