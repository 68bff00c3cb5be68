import json
from typing import Any

import pytest
from eval_world import case
from pydantic import BaseModel
from scripted_model import ScriptedModel

from cda.agents.judge import INSTRUCTIONS, Opinion
from cda.contracts.model_client import FailureKind, ModelFailure, ModelRequest, UnlimitedMeter
from cda.systems.coverage.system import CoverageSystem
from evals.case_files import load_coverage
from evals.opinions import opinions
from evals.record import Record, record_of


@pytest.fixture(scope="module")
def records(system: CoverageSystem) -> list[Record]:
    cases = load_coverage(("floor",))[0].cases[:6]
    return [
        record_of(one, "floor", system.ask(one.request()), family="f", fetch=lambda _: None, repeat=repeat)
        for one in cases
        for repeat in (1, 2)
    ]


def kind(_: ModelRequest) -> BaseModel:
    return Opinion(reasoning=4, clarity=5, hedging=3, reason="Follows.")


def heard(records: list[Record], model: ScriptedModel) -> dict[str, Any]:
    return opinions(records, model, UnlimitedMeter(), concurrency=3, say=lambda _: None)


@pytest.mark.promise("judge.blind")
def test_the_judge_sees_no_label_no_id_no_reason_of_the_gate_and_no_trace(records: list[Record]) -> None:
    model = ScriptedModel(kind)
    heard(records, model)
    assert len(model.requests) == 12
    cases = {one.case_id: one for one in load_coverage(("floor",))[0].cases}
    hidden = {record.run_id for record in records} | set(cases)
    hidden |= {gold for one in cases.values() for gold in one.gold_clause_ids}
    hidden |= {one.rationale for one in cases.values()}
    for request in model.requests:
        assert request.static == INSTRUCTIONS
        sent = request.turns[0].content  # type: ignore[union-attr]
        shown = json.loads(sent)
        assert set(shown) == {"question", "outcome", "summary", "claims", "gap"}
        assert all(set(claim) == {"text", "clause", "quote", "status", "chart"} for claim in shown["claims"])
        assert not [word for word in hidden if word in sent]


@pytest.mark.promise("judge.figures")
def test_scores_have_means_counts_and_the_lowest_answers_with_their_reasons(records: list[Record]) -> None:
    said = iter(range(12))

    def varied(_: ModelRequest) -> BaseModel:
        first = next(said) == 0
        return Opinion(reasoning=1 if first else 5, clarity=5, hedging=5, reason="low" if first else "good")

    found = heard(records, ScriptedModel(varied))
    assert found["judged"] == 12
    assert found["scores"]["reasoning"]["counts"] == {"1": 1, "2": 0, "3": 0, "4": 0, "5": 11}
    assert found["scores"]["reasoning"]["mean"] == round(56 / 12, 3)
    low, high = found["scores"]["reasoning"]["interval"]
    assert low <= found["scores"]["reasoning"]["mean"] <= high
    assert found["lowest"][0]["reason"] == "low"


@pytest.mark.promise("judge.figures")
def test_a_call_that_fails_is_counted_by_kind_and_is_no_score(records: list[Record]) -> None:
    found = heard(records, ScriptedModel(lambda request: ModelFailure(FailureKind.TRUNCATED, request.role)))
    assert (found["judged"], found["failed"], found["scores"]) == (0, {"model_truncated": 12}, {})


@pytest.mark.promise("judge.figures")
def test_an_answer_without_a_determination_is_not_judged() -> None:
    model = ScriptedModel(kind)
    from eval_world import record

    assert heard([record(case().case_id)], model)["judged"] == 0
    assert model.requests == []
