"""Explanations: paths, words, presumptions and what lifts a requirement."""

from datetime import date
from typing import Any

import pytest
from criteria_world import define, state

from cda.contracts.facts import Fact, FactState, Interval
from cda.criteria.evaluate import Context, Node, Presumption, evaluate, truth_of
from cda.criteria.expression import Waivable, Waived
from cda.criteria.parse import ExpressionReader
from cda.criteria.truth import Truth

pytestmark = pytest.mark.promise("criteria.explanation")

FACTS = {
    "sticks": define("sticks", type="rate", unit="per_day", label="fingersticks per day"),
    "weeks": define("weeks", type="duration", unit="week", label="conservative therapy"),
    "flag": define("flag", type="bool", label="insulin therapy"),
    "kind": define("kind", type="class", values=("type_1", "type_2"), label="diabetes type"),
    "born": define("born", type="date", label="date of birth"),
    "prior": define("prior", type="bool", label="sleep test in the prior 12 months", presume=False),
    "count": define("count", type="count", unit="unit", label="sensor units", presume=0),
}
STICKS = {"fact": "sticks", "op": ">=", "value": 4}
FLAG = {"fact": "flag", "op": "=", "value": True}
PRIOR = {"fact": "prior", "op": "=", "value": False}


def read(data: Any) -> Any:
    reader = ExpressionReader(FACTS)
    expression = reader.read(data, "covers_if")
    assert reader.faults == []
    return expression


def explain(data: Any, dx: tuple[str, ...] = (), **facts: Any) -> Node:
    expression = read(data) if isinstance(data, dict | bool) else data
    context = Context(state(FACTS, facts), FACTS, dx, date(2024, 6, 1))
    node = evaluate(expression, context)
    assert truth_of(expression, context) is node.truth
    return node


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (STICKS, "fingersticks per day at least 4"),
        ({"fact": "weeks", "op": "<", "value": 6}, "conservative therapy less than 6 weeks"),
        ({"fact": "weeks", "op": ">", "value": 1}, "conservative therapy more than 1 week"),
        (FLAG, "insulin therapy: yes"),
        ({"fact": "flag", "op": "!=", "value": True}, "insulin therapy: no"),
        ({"fact": "kind", "op": "in", "value": ["type_1", "type_2"]}, "diabetes type is type 1 or type 2"),
        ({"fact": "born", "op": "<=", "value": "2024-01-01"}, "date of birth on or before 2024-01-01"),
        (
            {"elapsed_since": "born", "op": ">=", "value": 18, "unit": "year"},
            "time since date of birth at least 18 years",
        ),
        ({"diagnosis": ["E10.*", "E11.*", "O24.*"]}, "a diagnosis code among E10.*, E11.* or O24.*"),
        ({"all": [FLAG, STICKS]}, "all of: insulin therapy: yes; fingersticks per day at least 4"),
        ({"any": [FLAG], "named": "step_one"}, "step one"),
        ({"not": FLAG}, "not: insulin therapy: yes"),
        ({"at_least": 2, "of": [FLAG, STICKS]}, "at least 2 of: insulin therapy: yes; fingersticks per day at least 4"),
        ({"fact": "count", "op": "<=", "value": 31}, "sensor units at most 31"),
    ],
)
def test_a_node_says_in_plain_words_what_it_asks(data: Any, words: str) -> None:
    assert explain(data).label == words


def test_every_node_has_its_path_and_the_tree_has_the_shape_of_the_criterion() -> None:
    node = explain({"all": [FLAG, {"any": [STICKS, {"not": PRIOR}]}, {"at_least": 1, "of": [FLAG]}]}, flag=True)
    assert [(n.path, n.kind) for n in node.walk()] == [
        ("covers_if", "all"),
        ("covers_if.all.0", "leaf"),
        ("covers_if.all.1", "any"),
        ("covers_if.all.1.any.0", "leaf"),
        ("covers_if.all.1.any.1", "not"),
        ("covers_if.all.1.any.1.not", "leaf"),
        ("covers_if.all.2", "at_least"),
        ("covers_if.all.2.of.0", "leaf"),
    ]


def test_an_open_leaf_says_why_it_is_open() -> None:
    assert explain(STICKS).why == "nothing stated"
    assert explain(STICKS, sticks=Interval(2, 6)).why == "the chart gives 2 to 6"
    doubt = Fact.unknown("sticks", why="hedged: 'maybe 4 a day'")
    assert explain(STICKS, sticks=doubt).why == "hedged: 'maybe 4 a day'"


@pytest.mark.promise("criteria.presumption")
def test_a_presumption_is_used_only_when_nothing_is_stated_and_never_over_a_conflict() -> None:
    silent = explain(PRIOR)
    assert (silent.truth, silent.presumption) == (Truth.MET, Presumption.DECLARED)
    stated = explain(PRIOR, prior=True)
    assert (stated.truth, stated.presumed) == (Truth.NOT_MET, False)
    conflict = explain(PRIOR, prior=Fact("prior", FactState.CONFLICT, why="two notes disagree"))
    assert (conflict.truth, conflict.presumed, conflict.why) == (Truth.UNKNOWN, False, "two notes disagree")


@pytest.mark.promise("criteria.presumption")
@pytest.mark.parametrize(
    ("data", "facts", "presumed"),
    [
        ({"all": [FLAG, PRIOR]}, {"flag": True}, True),
        ({"all": [FLAG, PRIOR]}, {"flag": False}, False),
        ({"any": [FLAG, PRIOR]}, {"flag": True}, False),
        ({"any": [FLAG, PRIOR]}, {"flag": False}, True),
        ({"any": [FLAG, PRIOR]}, {}, True),
        ({"not": PRIOR}, {}, True),
        ({"at_least": 1, "of": [FLAG, PRIOR]}, {"flag": True}, False),
        ({"all": [STICKS, PRIOR]}, {}, False),
    ],
)
def test_a_composite_is_presumed_exactly_when_it_would_be_open_without_presumptions(
    data: Any, facts: dict[str, Any], presumed: bool
) -> None:
    assert explain(data, **facts).presumed is presumed


def test_a_waivable_requirement_names_the_clause_that_lifts_it_only_where_it_does() -> None:
    waivable = Waivable(read(STICKS), "P.C2", read(FLAG))
    lifted = explain(waivable, sticks=1, flag=True)
    assert (lifted.truth, lifted.waived_by, lifted.kind) == (Truth.MET, "P.C2", "waivable")
    kept = explain(waivable, sticks=5, flag=True)
    assert (kept.truth, kept.waived_by) == (Truth.MET, None)
    assert explain(waivable, sticks=1).truth is Truth.UNKNOWN
    assert explain(waivable, sticks=1, flag=False).truth is Truth.NOT_MET


def test_a_waived_requirement_is_met_and_still_shows_what_it_was() -> None:
    node = explain(Waived(read(STICKS), "R.C1"), sticks=1)
    assert (node.truth, node.waived_by, node.presumed) == (Truth.MET, "R.C1", False)
    assert node.children[0].truth is Truth.NOT_MET


def test_diagnosis_codes_are_tested_as_codes_and_none_leaves_the_test_open() -> None:
    assert explain({"diagnosis": ["E10.*"]}, dx=("E11.9", "E10.65")).truth is Truth.MET
    assert explain({"diagnosis": ["E10.*"]}, dx=("E11.9",)).truth is Truth.NOT_MET
    assert explain({"diagnosis": ["E10.*"]}).truth is Truth.UNKNOWN


def test_age_is_counted_from_the_birth_date_to_the_as_of_date() -> None:
    adult = {"elapsed_since": "born", "op": ">=", "value": 18, "unit": "year"}
    assert explain(adult, born=date(2006, 6, 1)).truth is Truth.MET
    assert explain(adult, born=date(2006, 6, 2)).truth is Truth.NOT_MET
    assert explain(adult).truth is Truth.UNKNOWN


def test_constants_are_settled() -> None:
    assert (explain(True).truth, explain(False).truth) == (Truth.MET, Truth.NOT_MET)
