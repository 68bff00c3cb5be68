"""Ids in ASCII: one form an id, one id a form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.asciiids import decoded, encoded
from backends.errors import InvalidRecord
from backends.pinecone_records import MARKER

pytestmark = pytest.mark.promise("pinecone.ids")

IDS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1)


@given(IDS)
def test_every_id_comes_back_from_its_form(record_id: str) -> None:
    kept = encoded(record_id)
    assert kept.isascii()
    assert kept.isprintable()
    assert " " not in kept
    assert kept != MARKER
    assert decoded(kept) == record_id


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E)))
def test_a_form_that_no_id_has_is_no_id(kept: str) -> None:
    found = decoded(kept)
    assert found is None or encoded(found) == kept


@pytest.mark.parametrize("kept", [MARKER, "100%", "%4a", "%41", "a b", "é", "%FF"])
def test_forms_of_strangers_are_told_apart(kept: str) -> None:
    assert decoded(kept) is None


def test_ordinary_clause_ids_stay_as_they_are() -> None:
    assert encoded("MHP-MP-0142.v2.C1") == "MHP-MP-0142.v2.C1"


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(InvalidRecord, match="surrogate"):
        encoded("a\ud800")
