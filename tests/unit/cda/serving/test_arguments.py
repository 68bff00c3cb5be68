from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from cda.serving.arguments import Arguments, Refused

pytestmark = pytest.mark.promise("server.strict")


class Sample(Arguments):
    name: Annotated[str, Field(max_length=5)]
    count: Annotated[int, Field(ge=1, le=9)] = 1
    tags: list[str] = Field(default_factory=list)
    note: str | SkipJsonSchema[None] = None


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        ({}, "name: is required"),
        ({"name": 5}, "name: must be a string"),
        ({"name": "abcdef"}, "name: must have at most 5 characters"),
        ({"name": "a", "count": "2"}, "count: must be a whole number"),
        ({"name": "a", "count": 2.0}, "count: must be a whole number"),
        ({"name": "a", "count": True}, "count: must be a whole number"),
        ({"name": "a", "count": 10}, "count: must be at most 9"),
        ({"name": "a", "tags": "x"}, "tags: must be a list"),
        ({"name": "a", "tags": ["x", 1]}, "tags[1]: must be a string"),
        ({"name": "a", "note": 1}, "note: must be a string"),
        ({"name": "a", "other": 1}, "unknown argument; known are count, name, note, tags"),
        ({"name": None}, "name: must be a string"),
        ({"name": "a", "other": None}, "unknown argument; known are count, name, note, tags"),
        ({"name": 1, "count": 0}, "name: must be a string; count: must be at least 1"),
    ],
)
def test_a_refusal_names_the_field_and_the_rule(sent: dict[str, object], text: str) -> None:
    with pytest.raises(Refused) as refused:
        Sample.read(sent)
    assert str(refused.value) == text
    assert refused.value.__cause__ is None


def test_null_for_an_optional_argument_is_its_default() -> None:
    assert Sample.read({"name": "a", "count": None, "note": None, "tags": None}) == Sample(name="a")


def test_the_schema_says_what_is_checked_and_no_more() -> None:
    assert Sample.input_schema() == {
        "type": "object",
        "additionalProperties": False,
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "maxLength": 5},
            "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 1},
            "tags": {"type": "array", "items": {"type": "string"}},
            "note": {"type": "string"},
        },
    }


MARKED = st.sampled_from(["Q7Q7Q7", "Q7Q7Q7" * 50, "", "\x00Q7Q7Q7", "2024-Q7Q7Q7"])
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | MARKED,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(MARKED, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["name", "count", "tags", "note", "Q7Q7Q7"]), ANY_JSON))
def test_whatever_is_sent_the_refusal_is_made_of_our_own_words(sent: dict[str, object]) -> None:
    refusal = ""
    try:
        Sample.read(sent)
    except Refused as refused:
        refusal = str(refused)
    assert "Q7Q7Q7" not in refusal
    assert "http" not in refusal
    assert refusal.isascii()
    assert len(refusal) < 400
