"""Which phrases are worth trying on a note: each of its words is looked up once, and names the phrases it can be in.

A phrase is tried in a sentence that holds one literal of every part of its gate, and, when it is known how it begins
(`opening`), at the words that begin so and nowhere else. Both are read off the phrase's text and may be too weak, never
too strong: what is spared could not have matched (tests hold this against trying everything everywhere).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from cda.extraction.gates import Gate

_WORD = re.compile(r"[\w']+")
_WORD_START = re.compile(r"(?<!\w)\w")
_WHOLE_WORD = re.compile(r"[\w']+\Z")
_HEAD = 3
# A note's words are mostly those of the notes before it. Longer ones are noise, and not worth their memory.
_KEPT_WORDS, _LONGEST_KEPT = 20_000, 40


class Tried(Protocol):
    """What can be tried on a sentence, or spared."""

    @property
    def gate(self) -> Gate:
        """The literals that a sentence must hold: one of each set."""
        ...

    @property
    def opening(self) -> frozenset[str] | None:
        """The literals with one of which, at the beginning of a word, every match begins; None: it may begin anyhow."""
        ...


TriedT = TypeVar("TriedT", bound=Tried)
Place = tuple[int, int]  # a word's offset in the note, and the number of its sentence


class Worth(NamedTuple, Generic[TriedT]):
    """An item worth trying: its place in its group, its sentences as a bit mask, and the places where it may begin."""

    item: TriedT
    place: int
    mask: int
    places: Sequence[Place] | None


class Sighting(NamedTuple):
    """What one word says: the parts of gates it satisfies, and the openings it begins with, each with the offset of
    that beginning in the word ("o'clock" has two)."""

    parts: tuple[int, ...]
    openings: tuple[tuple[int, int], ...]


class _Watch(NamedTuple):
    """An item that waits for a part or an opening to be seen, and what else its sentence must hold."""

    group: int
    place: int
    item: Any
    others: tuple[int, ...]


class Prefilter:
    """The phrases and forms of some groups, found by the words of a note. Groups are known by their identity."""

    def __init__(self, groups: Iterable[tuple[Any, ...]]) -> None:
        self._groups = list({id(group): group for group in groups}.values())
        parts: dict[frozenset[str], int] = {}
        openings: dict[frozenset[str], int] = {}
        self._by_part: dict[int, list[_Watch]] = {}
        self._by_opening: list[list[_Watch]] = []
        self._ungated: list[_Watch] = []
        for group in self._groups:
            for place, item in enumerate(group):
                gate = sorted(item.gate, key=_breadth)
                numbers = tuple(parts.setdefault(part, len(parts)) for part in gate)
                if item.opening is not None:
                    opening = openings.setdefault(item.opening, len(openings))
                    if opening == len(self._by_opening):
                        self._by_opening.append([])
                    self._by_opening[opening].append(_Watch(id(group), place, item, numbers))
                elif numbers:
                    rest = _Watch(id(group), place, item, numbers[1:])
                    self._by_part.setdefault(numbers[0], []).append(rest)
                else:
                    self._ungated.append(_Watch(id(group), place, item, ()))
        self._words = _Words(parts, openings)
        self._parts = len(parts)

    def among(self, norm: str, bounds: Sequence[tuple[int, int]]) -> Mapping[int, list[Worth[Any]]]:
        """By the identity of its group, what is worth trying on the sentences [start, end) of `norm`, in order."""
        held = [0] * self._parts  # by part, its sentences as bits
        begun: dict[int, list[Place]] = {}
        sighting = self._words.sighting
        for number, (start, end) in enumerate(bounds):
            bit = 1 << number
            for match in _WORD.finditer(norm, start, end):
                parts, openings = sighting(match[0])
                for part in parts:
                    held[part] |= bit
                for opening, offset in openings:
                    begun.setdefault(opening, []).append((match.start() + offset, number))
        found: dict[int, list[Worth[Any]]] = {id(group): [] for group in self._groups}
        for watches, woken, places in self._woken(held, begun, len(bounds)):
            for group, place, item, others in watches:
                mask = woken
                for part in others:
                    mask &= held[part]
                if mask:
                    found[group].append(Worth(item, place, mask, places))
        for worth in found.values():
            worth.sort(key=_place)
        return found

    def _woken(
        self, held: Sequence[int], begun: Mapping[int, list[Place]], sentences: int
    ) -> Iterator[tuple[list[_Watch], int, list[Place] | None]]:
        """The items whose first sign is seen, with the sentences it is seen in and the places where they may begin."""
        for opening, places in begun.items():
            mask = 0
            for _, number in places:
                mask |= 1 << number
            yield self._by_opening[opening], mask, places
        for part, watches in self._by_part.items():
            if held[part]:
                yield watches, held[part], None
        yield self._ungated, (1 << sentences) - 1, None


class _Words:
    """Looks words up: which literals stand in a word, and with which it begins."""

    def __init__(self, parts: Mapping[frozenset[str], int], openings: Mapping[frozenset[str], int]) -> None:
        self._literals = _numbers_by_literal(parts)
        self._openings = _numbers_by_literal(openings)
        heads: dict[str, list[str]] = {}
        for literal in sorted(self._literals):
            heads.setdefault(literal[:_HEAD], []).append(literal)
        self._heads = heads
        self._short = any(len(head) < _HEAD for head in heads)
        self._longest = max(map(len, self._openings), default=0)
        self._known: dict[str, Sighting] = {}

    def sighting(self, word: str) -> Sighting:
        """What a word (letters, digits and apostrophes) says; the same for the same word, wherever it stands."""
        if (known := self._known.get(word)) is None:
            known = Sighting(self._parts(word), tuple(self._begun(word)))
            if len(word) <= _LONGEST_KEPT:
                if len(self._known) >= _KEPT_WORDS:
                    self._known.clear()
                self._known[word] = known
        return known

    def _parts(self, word: str) -> tuple[int, ...]:
        found: set[int] = set()
        for size in range(1 if self._short else _HEAD, _HEAD + 1):
            for at in range(len(word) - size + 1):
                for literal in self._heads.get(word[at : at + size], ()):
                    if len(literal) == size or (size == _HEAD and word.startswith(literal, at)):
                        found.update(self._literals[literal])
        return tuple(sorted(found))

    def _begun(self, word: str) -> Iterator[tuple[int, int]]:
        for start in _WORD_START.finditer(word):
            at = start.start()
            found = {
                number
                for end in range(at + 1, min(len(word), at + self._longest) + 1)
                for number in self._openings.get(word[at:end], ())
            }
            yield from ((number, at) for number in sorted(found))


def _numbers_by_literal(sets: Mapping[frozenset[str], int]) -> dict[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for literals, number in sets.items():
        for literal in literals:
            if not _WHOLE_WORD.match(literal):
                raise ValueError(f"a literal of a gate is a word or a piece of one, not {literal!r}")
            found.setdefault(literal, []).append(number)
    return {literal: tuple(numbers) for literal, numbers in found.items()}


def _breadth(part: frozenset[str]) -> tuple[int, int, list[str]]:
    """Few long literals tell most."""
    return len(part), -min(map(len, part)), sorted(part)


def _place(worth: Worth[Any]) -> int:
    return worth.place
