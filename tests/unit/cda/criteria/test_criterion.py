"""Reading criteria: every fault at once, each in one plain sentence."""

from typing import Any

import pytest
from criteria_world import DATA, define

from cda.contracts.facts import FactDefinition
from cda.criteria.criterion import (
    AddDuty,
    AddNode,
    Beyond,
    Limit,
    ReplaceLimit,
    Routes,
    Statement,
    Waive,
    Waives,
    parse_criterion,
    validate_criterion,
)
from cda.criteria.derive import validate_definition
from cda.criteria.expression import Leaf
from cda.errors import CriterionError

pytestmark = pytest.mark.promise("criteria.faults")

FACTS = {
    "months": define("months", type="duration", unit="month"),
    "sticks": define("sticks", type="rate", unit="per_day"),
    "flag": define("flag", type="bool"),
    "kind": define("kind", type="class", values=("a", "b")),
    "disease": define("disease", type="status"),
    "born": define("born", type="date"),
}
FLAG = {"fact": "flag", "op": "=", "value": True}


def test_every_clause_of_the_synthetic_corpus_is_in_the_language(definitions: dict[str, FactDefinition]) -> None:
    found = {
        clause_id: validate_criterion(clause["criterion"], definitions)
        for version in DATA["versions"].values()
        for clause_id, clause in version["clauses"].items()
    }
    assert [fault for faults in found.values() for fault in faults] == []
    assert [fault for d in definitions.values() for fault in validate_definition(d, definitions)] == []


BROKEN: list[tuple[Any, str]] = [
    ({}, "criterion: has exactly one of scope, covers_if"),
    ("covers_if", "criterion: has exactly one of"),
    ({"covers_if": FLAG, "excludes_if": FLAG}, "criterion: has exactly one of"),
    ({"covers_if": FLAG, "when": FLAG}, "criterion: unknown key 'when'"),
    ({"covers_if": {"fact": "stick", "op": "=", "value": 1}}, "covers_if: fact 'stick' is not defined"),
    ({"covers_if": {**FLAG, "name": "x"}}, "covers_if: unknown key 'name'"),
    ({"covers_if": {**FLAG, "named": "x"}}, "covers_if: unknown key 'named'"),
    (
        {"covers_if": {"fact": "flag", "op": ">=", "value": True}},
        "covers_if: operator '>=' does not compare the bool fact",
    ),
    (
        {"covers_if": {"fact": "sticks", "op": "in", "value": [1]}},
        "operator 'in' does not compare the rate fact sticks",
    ),
    ({"covers_if": {"fact": "flag", "op": "=", "value": "yes"}}, "fact flag is true or false, not 'yes'"),
    ({"covers_if": {"fact": "flag", "op": "="}}, "covers_if: a comparison has a value"),
    ({"covers_if": {"fact": "kind", "op": "in", "value": ["a", "c"]}}, "fact kind has no value 'c'; it has a, b"),
    ({"covers_if": {"fact": "kind", "op": "in", "value": "a"}}, "operator 'in' compares with a list"),
    ({"covers_if": {"fact": "disease", "op": "=", "value": "present"}}, "it has confirmed, suspected, absent"),
    ({"covers_if": {"fact": "sticks", "op": ">=", "value": True}}, "fact sticks is a number, not True"),
    ({"covers_if": {"fact": "sticks", "op": ">=", "value": float("nan")}}, "fact sticks is a number"),
    ({"covers_if": {"fact": "sticks", "op": ">=", "value": 4, "unit": "week"}}, "unit 'week' does not convert"),
    ({"covers_if": {**FLAG, "unit": "week"}}, "the bool fact flag has no unit"),
    ({"covers_if": {"fact": "born", "op": "<=", "value": "20240101"}}, "written YYYY-MM-DD"),
    ({"covers_if": {"all": []}}, "covers_if.all: needs a list of at least one expression"),
    ({"covers_if": {"all": FLAG}}, "covers_if.all: needs a list"),
    ({"covers_if": {"all": [FLAG, {"any": [FLAG, 3]}]}}, "covers_if.all.1.any.1: an expression is a mapping"),
    ({"covers_if": {"all": [FLAG], "any": [FLAG]}}, "covers_if: an expression has exactly one of"),
    ({"covers_if": {"at_least": 3, "of": [FLAG]}}, "at_least is a whole number from 1"),
    ({"covers_if": {"at_least": True, "of": [FLAG]}}, "at_least is a whole number from 1"),
    ({"covers_if": {"all": [FLAG], "named": "flag"}}, "the name 'flag' is also a fact"),
    ({"covers_if": {"all": [FLAG], "named": 3}}, "`named` is a name"),
    ({"covers_if": {"diagnosis": ["E10.*", "10"]}}, "'10' is no ICD-10-CM pattern"),
    ({"covers_if": {"diagnosis": "E10.*"}}, "diagnosis needs a list"),
    ({"covers_if": {"elapsed_since": "flag", "op": ">=", "value": 1, "unit": "day"}}, "elapsed_since needs a date"),
    (
        {"covers_if": {"elapsed_since": "born", "op": "in", "value": 1, "unit": "day"}},
        "does not compare lengths of time",
    ),
    ({"covers_if": {"elapsed_since": "born", "op": ">", "value": 1.5, "unit": "day"}}, "whole number of units"),
    (
        {"covers_if": {"elapsed_since": "born", "op": ">", "value": 1, "unit": "hour"}},
        "counts in day, week, month, year",
    ),
    ({"covers_if": FLAG, "unless": {"meaning": "lifts", "when": FLAG}}, "unless: meaning is waives or routes"),
    (
        {"covers_if": FLAG, "unless": {"meaning": "waives", "when": FLAG, "waived": ["x"]}},
        "'x' names nothing in covers_if",
    ),
    (
        {"covers_if": FLAG, "unless": {"meaning": "waives", "when": FLAG, "waived": []}},
        "names at least one requirement",
    ),
    ({"covers_if": FLAG, "unless": {"meaning": "waives", "waived": ["flag"]}}, "says when it holds"),
    ({"covers_if": FLAG, "unless": {"meaning": "routes", "when": FLAG}}, "unless.to: is a text"),
    (
        {"covers_if": FLAG, "unless": {"meaning": "routes", "when": FLAG, "to": "1", "waived": []}},
        "unknown key 'waived'",
    ),
    ({"limit": FLAG, "beyond": "documentation"}, "limit: bounds a quantity"),
    ({"limit": {"all": [FLAG]}, "beyond": "documentation"}, "limit: is one comparison of a fact"),
    (
        {"limit": {"fact": "sticks", "op": "<=", "value": 4}, "beyond": "deny"},
        "beyond: is documentation or not_covered",
    ),
    ({"if": FLAG}, "a condition `if` has its `requires`"),
    ({"states": ""}, "states: is a text"),
    ({"states": "x", "keeps": ["stick"]}, "keeps: fact 'stick' is not defined"),
    ({"states": "x", "decides": "deny"}, "decides: is refuse"),
    ({"states": "x", "contradicts": "P.C1"}, "contradicts: is a list of names"),
    ({"scope": "x", "population": "adults"}, "population: an expression is a mapping"),
    ({"scope": "x", "not": 3}, "not: is a text"),
    ({"patch": {"waive": "x"}}, "patch.of: is a text"),
    ({"patch": {"waive": "x", "of": "P", True: "first line"}}, "quote a key that is on, off, yes or no"),
    ({"patch": {"waive": "x", "add_node": FLAG, "of": "P"}}, "patch: has exactly one of"),
    ({"patch": {"replace_limit": "flag", "with": 4, "of": "P"}}, "patch.replace_limit: bounds a quantity"),
    ({"patch": {"replace_limit": "sticks", "with": "4", "of": "P"}}, "fact sticks is a number"),
    ({"patch": {"add_duty": "a second opinion", "of": "P"}}, "the one duty known is 'prior authorization'"),
    ({"precedence": 3}, "precedence: is a text"),
]


@pytest.mark.parametrize(("data", "words"), BROKEN)
def test_a_criterion_outside_the_language_says_what_is_wrong_and_where(data: Any, words: str) -> None:
    assert any(words in fault for fault in validate_criterion(data, FACTS))


def test_all_faults_are_found_in_one_pass_and_none_twice() -> None:
    data = {
        "covers_if": {"all": [{"fact": "x", "op": "=", "value": 1}, {"fact": "flag", "op": ">", "value": True}]},
        "unless": {"meaning": "waives", "when": {"fact": "y", "op": "=", "value": 1}, "waived": ["x"]},
    }
    faults = validate_criterion(data, FACTS)
    assert [fault.split(":")[0] for fault in faults] == ["covers_if.all.0", "covers_if.all.1", "unless.when"]


def test_parsing_refuses_with_the_clause_every_fault_and_what_to_do() -> None:
    with pytest.raises(CriterionError, match=r"P\.v1\.C2: .*'x'.*'y'.*build the corpus again"):
        parse_criterion(
            {"if": {"fact": "x", "op": "=", "value": 1}, "requires": {"fact": "y", "op": "=", "value": 1}},
            FACTS,
            "P.v1.C2",
        )


def test_a_null_criterion_has_no_fault() -> None:
    assert validate_criterion(None, FACTS) == []


def test_a_constant_in_another_unit_is_stated_in_the_facts_own() -> None:
    data = {"limit": {"fact": "months", "op": "<=", "value": 26, "unit": "week"}, "beyond": "not_covered"}
    limit = parse_criterion(data, FACTS, "C")
    assert isinstance(limit, Limit)
    assert (limit.leaf.value, limit.beyond) == (6.0, Beyond.NOT_COVERED)


@pytest.mark.parametrize(
    ("patch", "kind"),
    [
        ({"waive": "x", "of": "P", "on": "first line"}, Waive),
        ({"replace_limit": "sticks", "with": 4, "of": "P"}, ReplaceLimit),
        ({"add_node": FLAG, "of": "P"}, AddNode),
        ({"add_duty": "Prior authorization in all cases", "of": "P"}, AddDuty),
    ],
)
def test_rider_patches_are_told_apart(patch: dict[str, Any], kind: type) -> None:
    assert isinstance(parse_criterion({"patch": patch}, FACTS, "R.C1"), kind)


def test_the_two_meanings_of_unless_are_kept_apart() -> None:
    waives = parse_criterion(
        {"covers_if": FLAG, "unless": {"meaning": "waives", "when": FLAG, "waived": ["flag"]}}, FACTS, "C"
    )
    routes = parse_criterion(
        {"covers_if": FLAG, "unless": {"meaning": "routes", "when": FLAG, "to": "95810"}}, FACTS, "C"
    )
    assert isinstance(getattr(waives, "unless", None), Waives)
    assert isinstance(getattr(routes, "unless", None), Routes)


def test_a_statement_can_be_words_or_a_comparison() -> None:
    words = parse_criterion({"states": "see elsewhere", "keeps": ["flag"]}, FACTS, "C")
    comparison = parse_criterion({"states": FLAG, "contradicts": ["P.C1"]}, FACTS, "C")
    assert isinstance(words, Statement)
    assert words.leaf is None
    assert isinstance(comparison, Statement)
    assert isinstance(comparison.leaf, Leaf)


@pytest.mark.parametrize(
    ("derive", "presume", "words"),
    [
        (
            [{"when": {"fact": "x", "op": "=", "value": 1}, "value": True}],
            None,
            "derive.0.when: fact 'x' is not defined",
        ),
        ([{"when": FLAG, "value": "a"}], None, "derive.0.value: fact made is true or false"),
        ([{"when": FLAG, "value": True, "then": 1}], None, "derive.0: unknown key 'then'"),
        ([], "no", "presume: 'no' is no value of a bool fact"),
    ],
)
def test_faults_of_a_fact_definition_are_found(derive: list[Any], presume: Any, words: str) -> None:
    made = define("made", type="bool", derive=derive, presume=presume)
    assert any(words in fault for fault in validate_definition(made, {**FACTS, "made": made}))
