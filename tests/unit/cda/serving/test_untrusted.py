"""Text from people, cleaned."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cda.serving.untrusted import clean, clean_all

pytestmark = pytest.mark.promise("kernel.clean")


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("plain text, 5 mg", "plain text, 5 mg"),
        ("a\x00b\x1b[31mc\x7f", "ab[31mc"),
        ("a\u200bb\u200d\ufeffc", "abc"),
        ("\u202eabc\u2066d\u2069", "abcd"),
        ("a\U000e0041\U000e0042b", "ab"),
        ("a\u2028b\u2029c\u0085d\r\ne\rf", "a\nb\nc\nd\ne\nf"),
        ("\ud800x\udfff", "x"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("Zoë 王 😀", "Zoë 王 😀"),
    ],
)
def test_what_is_not_shown_goes_and_the_rest_stays(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=80), st.integers(1, 50))
def test_nothing_hidden_is_left_and_the_limit_holds(text: str, limit: int) -> None:
    cleaned = clean(text, limit)

    assert len(cleaned) <= limit
    assert not [sign for sign in cleaned if unicodedata.category(sign)[0] == "C" and sign not in "\n\t"]
    assert clean(cleaned, limit) == cleaned


def test_every_string_of_an_answer_is_cleaned() -> None:
    assert clean_all({"a\u200b": ["\x07b", {"c": "d\u202e"}], "n": 1, "z": None}) == {
        "a": ["b", {"c": "d"}],
        "n": 1,
        "z": None,
    }
