"""Words and codes: what a text is searched by."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cda.retrieval.codes import all_forms, codes_in, forms
from cda.retrieval.words import has_words, stems


@pytest.mark.promise("retrieval.negation_words")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("not covered", ["not", "cover"]),
        ("No exceptions, unless approved", ["no", "except", "unless", "approv"]),
        ("isn't covered", ["is", "not", "cover"]),
        ("it can’t be; cannot, won't", ["it", "can", "not", "be", "can", "not", "will", "not"]),
        ("ＮＯＴ co\u00advered", ["not", "cover"]),
    ],
)
def test_negation_is_kept(text: str, expected: list[str]) -> None:
    assert stems(text) == expected


@pytest.mark.promise("retrieval.bad_query")
@pytest.mark.parametrize("text", ["", "   ", "\u200b", "\u200b \n\t", "?!", "—"])
def test_a_text_without_words_is_told(text: str) -> None:
    assert not has_words(text)
    assert stems(text) == []


@pytest.mark.promise("retrieval.code_forms")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("code A9276.", ["A9276"]),
        ("E10.65 or K50.90", ["E10.65", "E1065", "K50.90", "K5090"]),
        ("95249-59", ["95249", "95249-59", "MOD:59"]),
        ("modifier 59", ["MOD:59"]),
        ("J1743-J1745", ["J1743", "J1744", "J1745"]),
        ("95249 through 95251", ["95249", "95250", "95251"]),
        ("0501T", ["0501T"]),
        ("MHP-MP-0142.v2.C1", ["MHP-MP-0142.V2.C1"]),
        ("95251-95249", ["95249", "95251"]),
        ("J0135-95251", ["95251", "J0135"]),
        ("10000-99999", ["10000", "99999"]),
        ("on 2024-07-01 at 120/80, A1c 8.6, 1234567", []),
    ],
)
def test_codes_are_found_in_every_form(text: str, expected: list[str]) -> None:
    assert codes_in(text) == sorted(expected)


@pytest.mark.promise("retrieval.code_forms")
def test_similar_ids_do_not_meet() -> None:
    assert not set(codes_in("MHP-MP-0142")) & set(codes_in("MHP-MP-1042"))


@pytest.mark.promise("retrieval.code_forms")
@given(st.lists(st.sampled_from(["a9276 ", "95249-59", "e11.65", "MHP-MP-0142.v2.C1"]), max_size=4))
def test_given_codes_reach_what_a_text_with_them_reaches(codes: list[str]) -> None:
    held = set(all_forms(codes))
    assert set(codes_in(" ".join(codes).upper())) <= held
    assert {code.strip().upper() for code in codes if "." not in code or "-" not in code} <= held
    assert forms("e11.65") == ["E11.65", "E1165"]
