"""A record as it is sent and as it comes back."""

from typing import Any

import numpy as np
import pytest
from conformance.backend import SPEC, meta, record
from hypothesis import given
from hypothesis import strategies as st

from backends.base import Record
from backends.errors import IndexMismatch, InvalidRecord
from backends.pinecone_records import HASH, MARKER, marker, scanned, shortest, size, stored, told_by
from backends.schema import POLICY


@pytest.mark.promise("backends.round_trip")
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=50))
def test_fewest_digits_are_the_same_numbers(values: list[float]) -> None:
    vector = np.asarray(values, dtype=np.float32)
    assert (np.asarray(shortest(vector), dtype=np.float32) == vector).all()


@pytest.mark.promise("backends.round_trip")
def test_a_record_comes_back_from_what_the_service_makes_of_it() -> None:
    row = record("é 1", codes=("J0135", "A9276"))
    sent = stored(row)
    kept = {name: float(value) if type(value) is int else value for name, value in sent["metadata"].items()}
    back = scanned(sent["id"], kept, POLICY)
    assert back is not None
    assert (back.id, back.content_hash) == (row.id, row.content_hash)
    assert back.meta == {**row.meta, "codes": ("A9276", "J0135")}


@pytest.mark.promise("pinecone.strangers")
@pytest.mark.parametrize(
    "change", [{"text": "t"}, {"payer_id": 5}, {"codes": "A"}, {"effective_end_i": 20240630.5}, {HASH: None}, {HASH: 1}]
)
def test_metadata_off_the_schema_is_no_record(change: dict[str, Any]) -> None:
    assert scanned("a", stored(record("a"))["metadata"] | change, POLICY) is None


@pytest.mark.promise("backends.schema")
def test_a_field_without_a_value_is_refused_before_it_is_sent() -> None:
    hollow = Record("a", record("a").vector, meta(plan_id=None), "h")
    with pytest.raises(InvalidRecord, match="without a value"):
        stored(hollow)


@pytest.mark.promise("pinecone.batches")
def test_sizes_are_those_of_the_wire() -> None:
    assert size({"a": "é", "b": [1, 2.5]}) == len('{"a":"é","b":[1,2.5]}'.encode())


@pytest.mark.promise("backends.mismatch")
def test_a_marker_tells_what_its_target_was_made_with_and_a_damaged_one_is_refused() -> None:
    made = marker(SPEC)
    assert (made["id"], len(made["values"])) == (MARKER, SPEC.dim)
    info = told_by(made["metadata"], "t", 7)
    assert (info.embedder, info.dim, info.schema_digest, info.count) == (SPEC.embedder, SPEC.dim, POLICY.digest, 7)
    for name in ("cda_format", "cda_embedder", "cda_dim", "cda_schema"):
        with pytest.raises(IndexMismatch, match="build the index again"):
            told_by({key: value for key, value in made["metadata"].items() if key != name}, "t", 0)
