"""Batches: nothing lost, nothing over a limit, nothing cut too early."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.batching import batches

pytestmark = pytest.mark.promise("pinecone.batches")


@given(st.lists(st.integers(1, 60), max_size=40), st.integers(61, 150), st.integers(1, 7))
def test_batches_keep_the_order_and_both_limits_and_are_as_full_as_those_allow(
    sizes: list[int], max_bytes: int, max_count: int
) -> None:
    made = list(batches(((str(i), i, size) for i, size in enumerate(sizes)), max_bytes=max_bytes, max_count=max_count))
    assert [item for batch in made for item in batch.items] == list(range(len(sizes)))
    for batch, following in zip(made, [*made, None][1:], strict=True):
        assert batch.ids == [str(item) for item in batch.items]
        assert batch.size == sum(sizes[item] + 1 for item in batch.items) <= max_bytes
        assert len(batch.items) <= max_count
        if following is not None:
            full = len(batch.items) == max_count
            assert full or batch.size + sizes[following.items[0]] + 1 > max_bytes
