"""The laws of strong Kleene logic."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cda.criteria.truth import Truth, at_least, conjunction, disjunction, negation

pytestmark = pytest.mark.promise("criteria.kleene")

truths = st.sampled_from(Truth)
several = st.lists(truths, max_size=5)
SETTLED = (Truth.MET, Truth.NOT_MET)


def readings(values: list[Truth]) -> list[list[Truth]]:
    """Every way in which the unknowns could turn out."""
    return [list(way) for way in product(*(SETTLED if v is Truth.UNKNOWN else (v,) for v in values))]


@given(several)
def test_de_morgan_holds(values: list[Truth]) -> None:
    assert negation(conjunction(values)) is disjunction([negation(v) for v in values])


@given(several, st.randoms(use_true_random=False))
def test_order_does_not_matter(values: list[Truth], random: object) -> None:
    shuffled = sorted(values, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert (conjunction(shuffled), disjunction(shuffled)) == (conjunction(values), disjunction(values))


@given(several, st.integers(1, 5))
def test_at_least_is_settled_exactly_when_every_reading_of_the_unknowns_agrees(values: list[Truth], n: int) -> None:
    counts = {sum(v is Truth.MET for v in way) >= n for way in readings(values)}
    expected = Truth.UNKNOWN if len(counts) == 2 else Truth.MET if counts == {True} else Truth.NOT_MET
    assert at_least(n, values) is expected


@given(several)
def test_and_and_or_are_the_extremes_of_at_least(values: list[Truth]) -> None:
    if values:
        assert conjunction(values) is at_least(len(values), values)
        assert disjunction(values) is at_least(1, values)


@given(truths)
def test_not_leaves_unknown_open(value: Truth) -> None:
    assert negation(negation(value)) is value
    assert (negation(value) is Truth.UNKNOWN) == (value is Truth.UNKNOWN)


def test_unknown_is_not_false() -> None:
    assert conjunction([Truth.MET, Truth.UNKNOWN]) is Truth.UNKNOWN
    assert disjunction([Truth.NOT_MET, Truth.UNKNOWN]) is Truth.UNKNOWN
    assert conjunction([Truth.NOT_MET, Truth.UNKNOWN]) is Truth.NOT_MET
    assert disjunction([Truth.MET, Truth.UNKNOWN]) is Truth.MET


def test_truths_are_written_as_the_contracts_write_them() -> None:
    assert [t.word for t in (Truth.MET, Truth.NOT_MET, Truth.UNKNOWN)] == ["met", "not_met", "unknown"]
