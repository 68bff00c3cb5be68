"""Fact definitions are checked before anything reads them."""

from typing import Any

import pytest

from cda.contracts.definitions import definitions_from_data
from cda.contracts.facts import FactType
from cda.errors import CriterionError

pytestmark = pytest.mark.promise("extraction.definitions")


def test_an_authored_definition_becomes_a_fact_definition() -> None:
    raw = {"kind": {"type": "class", "values": ["a", "b"], "presume": "a", "dx": {"a": ["E10*"]}, "examples": []}}

    (definition,) = definitions_from_data(raw).values()

    assert (definition.type, definition.values, definition.presume) == (FactType.CLASS, ("a", "b"), "a")
    assert definition.dx == {"a": ("E10*",)}
    assert definition.label == "kind"


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"type": "bool", "colour": "red"}, "unknown key 'colour'"),
        ({"type": "boolean"}, "type is one of"),
        ({}, "type is one of"),
        ({"type": "class", "values": ["a"]}, "at least two values"),
        ({"type": "status", "values": ["confirmed", "absent"]}, "confirmed, suspected, absent"),
        ({"type": "bool", "values": ["a", "b"]}, "only a class or a status"),
        ({"type": "bool", "presume": 0}, "presume"),
        ({"type": "count", "presume": True}, "presume"),
        ({"type": "class", "values": ["a", "b"], "dx": {"c": ["E10*"]}}, "dx names a value"),
        ({"type": "class", "values": ["a", "b"], "dx": {"a": "E10*"}}, "list of diagnosis patterns"),
        ({"type": "bool", "derive": [{"when": True}]}, "when and value"),
        ({"type": "bool", "label": 4}, "label is text"),
    ],
)
def test_a_definition_of_another_shape_names_the_fact_and_the_rule(raw: dict[str, Any], words: str) -> None:
    with pytest.raises(CriterionError, match=f"fact odd: .*{words}"):
        definitions_from_data({"odd": raw})
