"""Charts from a scripted model, labels from authored patterns, gates from validation."""

import json
from typing import Any

import pytest
from pydantic import BaseModel
from scripted_model import ScriptedModel

from cda.agents.adversary import INSTRUCTIONS, Chart, ToldFact
from cda.contracts.model_client import FailureKind, ModelFailure, ModelRequest, UnlimitedMeter
from evals.corpus_view import shipped
from evals.expand import Pattern, read_patterns
from evals.generate import DIFFICULTIES, Proposals, case_of, generate, tasks, told_faults
from evals.validate import proposed_findings


def asked_of(request: ModelRequest) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(request.turns[0].content)  # type: ignore[union-attr]
    return shown


def worded(fact: dict[str, Any]) -> str:
    label, value = fact["label"], fact["value"]
    if value in (True, False):
        return f"{label}: {'yes, seen' if value else 'no, never seen'}"
    return f"{label}: {str(value).replace('_', ' ')}"


def honest(request: ModelRequest) -> Chart:
    """States each fact in a sentence of its own, in the words that the request gives."""
    shown = asked_of(request)
    told = [ToldFact(fact=fact["name"], words=worded(fact)) for fact in shown["stated"]]
    note = ". ".join(["Seen today", *(one.words for one in told), shown["difficulty"][:30]])
    return Chart(narrative=f"{note}.", question=f"Is {shown['codes'][0]} in order?", told=told)


def proposals(answer: Any, *, count: int = 24, seed: int = 3, only: str = "") -> tuple[Proposals, ScriptedModel]:
    patterns = [one for one in read_patterns() if not only or one.pattern == only]
    model = ScriptedModel(answer)
    asked = tasks(patterns, shipped(), count=count, seed=seed)
    found = generate(asked, shipped(), model, UnlimitedMeter(), name="proposed.json", say=lambda _: None)
    return found, model


@pytest.mark.promise("generate.gates")
def test_the_batch_that_is_written_passes_every_gate_and_the_rest_has_reasons() -> None:
    found, model = proposals(honest)
    assert len(model.requests) == 24
    entries = [case.model_dump(mode="json", exclude_defaults=True) for case in found.cases]
    assert len(found.cases) >= 12
    assert proposed_findings({"any.json": entries})[1] == ()
    gone = {row["case_id"] for row in found.rejected}
    assert len(found.cases) + len(gone) == 24
    assert not gone & {case.case_id for case in found.cases}


@pytest.mark.promise("generate.labels")
def test_labels_are_the_patterns_and_the_model_is_shown_none_of_them() -> None:
    found, model = proposals(honest)
    patterns = {one.pattern: one for one in read_patterns()}
    for case in found.cases:
        pattern = patterns[case.origin]
        labels = [(one.outcome, one.gate, one.gold, one.reasons) for one in pattern.answers]
        assert (case.expected_outcome, case.expected_gate, case.gold_clause_ids, case.expected_reasons) in labels
        assert case.labelled_facts == pattern.facts
    golds = {gold for one in patterns.values() for answer in one.answers for gold in answer.gold}
    for request in model.requests:
        assert request.static == INSTRUCTIONS
        sent = request.turns[0].content  # type: ignore[union-attr]
        assert not [gold for gold in golds if gold in sent]
        assert set(asked_of(request)) == {"stated", "open", "codes", "as_of", "difficulty", "language"}
        assert not any(word in sent for word in ("NOT_COVERED", "DETERMINE", "REFUSE", "rationale"))


def leaking(request: ModelRequest) -> Chart:
    chart = honest(request)
    return chart.model_copy(update={"narrative": f"{chart.narrative} This is NOT_COVERED."})


@pytest.mark.promise("generate.gates")
def test_a_chart_that_gives_its_answer_away_is_rejected_by_that_gate() -> None:
    found, _ = proposals(leaking, count=5)
    assert found.cases == []
    assert {row["rule"] for row in found.rejected} >= {"leak_label"}


@pytest.mark.promise("generate.gates")
def test_a_second_proposal_of_a_probe_that_is_there_is_rejected() -> None:
    task = tasks(read_patterns(), shipped(), count=1, seed=3)[0]
    found = generate([task, task], shipped(), ScriptedModel(honest), UnlimitedMeter(), name="p", say=lambda _: None)
    assert {row["rule"] for row in found.rejected} >= {"id_twice"}


@pytest.mark.promise("generate.gates")
def test_a_call_that_fails_is_a_rejection_with_its_reason() -> None:
    def refusing(request: ModelRequest) -> BaseModel | ModelFailure:
        return ModelFailure(FailureKind.REFUSED, request.role)

    found, _ = proposals(refusing, count=3)
    assert [row["rule"] for row in found.rejected] == ["model"] * 3


FACTS = {
    "csdmard_trial_months": 4,
    "hypoglycemia_unawareness": False,
    "diabetes_type": "type_1",
    "insulin_therapy": None,
}
NOTE = "MTX for 4 months. Denies unawareness. Type 1. On insulin."


def chart(**changes: str) -> Chart:
    told = {
        "csdmard_trial_months": "for 4 months",
        "hypoglycemia_unawareness": "Denies unaware",
        "diabetes_type": "Type 1",
    }
    return Chart(
        narrative=NOTE,
        question="?",
        told=[ToldFact(fact=name, words=words) for name, words in (told | changes).items()],
    )


@pytest.mark.promise("generate.told")
@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"diabetes_type": "Type 2"}, "diabetes_type is not stated in words of the chart"),
        ({"csdmard_trial_months": "months"}, "csdmard_trial_months is 4, and its words do not say so"),
        (
            {"hypoglycemia_unawareness": "awareness"},
            "hypoglycemia_unawareness is False, and its words do not negate it",
        ),
        ({"insulin_therapy": "On insulin"}, "insulin_therapy is to be left open, and words state it"),
        ({"a1c_percent": "Type 1"}, "a1c_percent is no fact of the pattern"),
    ],
)
def test_a_chart_must_state_each_fact_in_words_that_say_it(changes: dict[str, str], fault: str) -> None:
    assert list(told_faults(FACTS, chart())) == []
    assert fault in list(told_faults(FACTS, chart(**changes)))


@pytest.mark.promise("generate.tasks")
def test_the_same_seed_asks_for_the_same_charts_and_every_difficulty_occurs() -> None:
    patterns = read_patterns()
    first, second = (tasks(patterns, shipped(), count=60, seed=seed) for seed in (1, 2))
    assert first == tasks(patterns, shipped(), count=60, seed=1)
    assert first != second
    assert {task.difficulty for task in first} == set(DIFFICULTIES)


@pytest.mark.promise("generate.labels")
def test_a_case_has_the_words_of_the_model_and_nothing_else_of_it() -> None:
    task = tasks(read_patterns(), shipped(), count=1, seed=3)[0]
    pattern: Pattern = task.pattern
    case = case_of(task, chart())
    assert (case.narrative, case.question) == (NOTE, "?")
    assert (case.payer_id, case.procedure_codes, case.rationale) == (pattern.payer_id, pattern.codes, pattern.why)
