"""Products of rows with a vector: right, and the same bits wherever a row lies and whatever is asked beside it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.products import products

pytestmark = pytest.mark.promise("backends.products")


def made(
    count: int, dim: int
) -> tuple["np.ndarray[tuple[int, int], np.dtype[np.float32]]", "np.ndarray[tuple[int], np.dtype[np.float32]]"]:
    random = np.random.default_rng(count * 1000 + dim)
    return random.standard_normal((count, dim), dtype=np.float32), random.standard_normal(dim, dtype=np.float32)


@given(
    count=st.sampled_from([0, 1, 3, 23, 24, 25, 47, 48, 200]),
    dim=st.sampled_from([4, 96, 384, 5000]),
    ends=st.tuples(st.integers(0, 200), st.integers(0, 200)),
)
def test_every_row_asked_for_has_its_product(count: int, dim: int, ends: tuple[int, int]) -> None:
    rows, vector = made(count, dim)
    start, stop = sorted(min(end, count) for end in ends)
    found = products(rows, start, stop, vector)
    assert (found.shape, found.dtype) == ((stop - start,), np.float32)
    expected = rows[start:stop].astype(np.float64) @ vector.astype(np.float64)
    np.testing.assert_allclose(found, expected, atol=1e-3)


@given(start=st.integers(0, 150), length=st.integers(1, 150))
def test_a_product_does_not_depend_on_what_else_is_asked_for(start: int, length: int) -> None:
    rows, vector = made(150, 384)
    stop = min(150, start + length)
    assert (products(rows, start, stop, vector) == products(rows, 0, 150, vector)[start:stop]).all()
