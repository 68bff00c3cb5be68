"""Authored YAML keeps words as words and knows its lines."""

from typing import Any

import pytest

from corpus.yaml_lines import Lined, documents

pytestmark = pytest.mark.promise("corpus.plain_words")


def one(text: str) -> Any:
    ((value, faults),) = documents(text)
    assert faults == []
    return value


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("00100", "00100"),
        ("0501T", "0501T"),
        ("95249", 95249),
        ("'95249'", "95249"),
        ("yes", "yes"),
        ("off", "off"),
        ("true", True),
        ("null", None),
        ("~", None),
        ("'null'", "null"),
        ("", None),
        ("8.0", 8.0),
        ("-3", -3),
        ("1e3", "1e3"),
        ("12:30", "12:30"),
        ("2024-01-01", "2024-01-01"),
        ("0x1F", "0x1F"),
    ],
)
def test_a_plain_scalar_is_what_a_reader_takes_it_for(written: str, read: Any) -> None:
    value = one(f"key: {written}\n")["key"]
    assert value == read
    assert type(value) is type(read)


def test_a_key_is_always_text() -> None:
    assert list(one("{on: 1, true: 2, 95249: 3}")) == ["on", "true", "95249"]


def test_every_key_knows_its_line() -> None:
    value = one("a: 1\nb:\n  - c: 2\n    d: 3\n")
    assert value.lines == {"a": 1, "b": 2}
    inner = value["b"][0]
    assert isinstance(inner, Lined)
    assert (inner.line, inner.lines) == (3, {"c": 3, "d": 4})


def test_lines_go_on_through_several_documents_and_empty_ones_are_skipped() -> None:
    read = list(documents("a: 1\n---\n---\nb: 2\n"))
    assert [(value.lines, faults) for value, faults in read] == [({"a": 1}, []), ({"b": 4}, [])]


def test_documents_before_a_broken_one_are_kept() -> None:
    read = list(documents("a: 1\n---\nb: [\n"))
    assert read[0][0] == {"a": 1}
    assert read[1][0] is None
    assert "not YAML" in read[1][1][0][1]


def test_an_alias_within_its_own_anchor_ends() -> None:
    ((value, faults),) = documents("a: &x [1, *x]\n")
    assert value == {"a": [1, None]}
    assert len(faults) == 1
