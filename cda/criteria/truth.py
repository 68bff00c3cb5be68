"""Strong Kleene logic: the three truth values and the connectives over them.

MET and NOT_MET are what the chart settles; UNKNOWN is what it leaves open, and is never read as NOT_MET. Ordering the
values NOT_MET < UNKNOWN < MET makes conjunction the minimum and disjunction the maximum.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Literal


class Truth(IntEnum):
    """Whether a requirement is satisfied by what is known."""

    NOT_MET = 0
    UNKNOWN = 1
    MET = 2

    @property
    def word(self) -> Literal["not_met", "unknown", "met"]:
        """The value as the contracts write it."""
        return _WORDS[self]


def negation(truth: Truth) -> Truth:
    """NOT: swaps MET and NOT_MET, leaves UNKNOWN."""
    return _OPPOSITE[truth]


_WORDS: tuple[Literal["not_met"], Literal["unknown"], Literal["met"]] = ("not_met", "unknown", "met")
_OPPOSITE = (Truth.MET, Truth.UNKNOWN, Truth.NOT_MET)


def conjunction(truths: Sequence[Truth]) -> Truth:
    """AND: one NOT_MET settles it, whatever else is unknown; MET of nothing."""
    return min(truths, default=Truth.MET)


def disjunction(truths: Sequence[Truth]) -> Truth:
    """OR: one MET settles it, whatever else is unknown; NOT_MET of nothing."""
    return max(truths, default=Truth.NOT_MET)


def at_least(count: int, truths: Sequence[Truth]) -> Truth:
    """MET when `count` are MET, NOT_MET when even every unknown turning out MET would not reach it."""
    met = truths.count(Truth.MET)
    if met >= count:
        return Truth.MET
    return Truth.NOT_MET if met + truths.count(Truth.UNKNOWN) < count else Truth.UNKNOWN
