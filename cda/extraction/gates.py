"""Gates and openings: which literal words a sentence must hold before a phrase is worth trying, and where.

A gate is a tuple of alternatives, {"low", "hypo"}: one of each must occur in the sentence as a substring. An opening is
a set of literals with one of which, at the beginning of a word, every match begins. Both are read off the phrase by a
scan, without parsing it, and may be too weak but never too strong.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

Gate = tuple[frozenset[str], ...]
_NEST = r"\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\)"
_PART = re.compile(rf"{_NEST}\??|@\w+\??|\.\.\.?\d+|[\w']+[~*?]?|.", re.S)


class GateReader:
    """Reads gates off flattened phrases, against one set of named lists."""

    def __init__(self, lists: Mapping[str, Sequence[str]], irregular: Mapping[str, Sequence[str]]) -> None:
        self._lists = lists
        self._irregular = irregular
        self._known: dict[str, tuple[str, ...] | None] = {}
        self._opened: dict[str, frozenset[str] | None] = {}
        # The phrases of the lexicons are made of few parts: each is read once, which halves the time that gates take.
        self._read: dict[str, tuple[str, ...] | None] = {}
        self._starts: dict[str, tuple[str, ...] | None] = {}

    def of(self, flat: str) -> Gate:
        """The gate of a phrase; empty when nothing certain can be said."""
        if "|" in flat and "|" in re.sub(_NEST, "", flat):
            whole = self._any(flat.split("|")) if "(" not in flat else None
            return (frozenset(whole),) if whole else ()
        return tuple(map(frozenset, self._strongest_first(flat)))

    def opening(self, flat: str) -> frozenset[str] | None:
        """How every match of a phrase begins; None when nothing certain can be said."""
        try:
            return frozenset(self._openings(flat))
        except _Unsure:
            return None

    def long_words(self, text: str) -> frozenset[str]:
        """The words of five letters or more in a text and in the lists it names, for the repair of scanning slips."""
        found = set(re.findall(r"(?<![@\w])[a-z]{5,}", text))
        for name in re.findall(r"@(\w+)", text):
            found.update(re.findall(r"(?<![@\w])[a-z]{5,}", " ".join(self._lists.get(name, ()))))
        return frozenset(found)

    def _strongest_first(self, flat: str) -> list[tuple[str, ...]]:
        return sorted({part for part in self._parts(flat) if part}, key=_weakness)

    def _parts(self, flat: str) -> list[tuple[str, ...] | None]:
        found = []
        for part in _PART.findall(flat):
            if part[0] in "(@" or part[0].isalnum():
                if part not in self._read:
                    self._read[part] = self._part(part)
                found.append(self._read[part])
        return found

    def _part(self, part: str) -> tuple[str, ...] | None:
        """What a sentence must hold one of for this part; None when it may be missing or tells nothing certain."""
        if part[0] == "(":
            inner = part[1:-1]
            return None if part[-1] == "?" or "(" in inner else self._any(inner.split("|"))
        if part[0] == "@":
            return self._list(part[1:]) if len(part) > 1 and part[-1] != "?" else None
        return self._word(part)

    def _any(self, alternatives: Sequence[str]) -> tuple[str, ...] | None:
        """One literal of each alternative, or None when an alternative has none."""
        best: set[str] = set()
        for alternative in alternatives:
            certain = [part for part in self._parts(alternative) if part]
            if not certain:
                return None
            best.update(sorted(certain, key=_weakness)[0])
        return tuple(sorted(best))

    def _list(self, name: str) -> tuple[str, ...] | None:
        if name not in self._known:
            self._known[name] = None
            gates = [self.of(item) for item in self._lists.get(name, ("",))]
            if all(gates):
                self._known[name] = tuple(sorted({literal for gate in gates for literal in gate[0]}))
        return self._known[name]

    def _word(self, part: str) -> tuple[str, ...] | None:
        word = part.rstrip("~*?")
        sign = part[len(word) :]
        pieces = word.split("_")
        if sign == "?" and not pieces[-1]:
            return None  # `a_?`: the sign is the whole word's
        if sign == "~":
            if pieces[-1] in self._irregular:
                return tuple(sorted({pieces[-1], *map(_longest_word, self._irregular[pieces[-1]])}))
            pieces[-1] = pieces[-1][:-1] if pieces[-1].endswith(("e", "y")) else pieces[-1]
        elif sign == "?":
            pieces[-1] = pieces[-1][:-1]
        literal = max(pieces, key=len)
        return (literal,) if literal else None

    def _openings(self, flat: str) -> Iterator[str]:
        """Raises _Unsure where a match may begin with anything but a word of the phrase."""
        for alternative in _alternatives(flat):
            for match in _PART.finditer(alternative):
                part = match[0]
                if part == " ":
                    continue
                may_be_missing = part[-1] == "?" and part[0] in "(@"
                yield from self._begun(part.rstrip("?") if may_be_missing else part)
                if alternative.startswith("?", match.end()):
                    raise _Unsure
                if not may_be_missing:
                    break
            else:
                raise _Unsure

    def _begun(self, part: str) -> tuple[str, ...]:
        if part not in self._starts:
            self._starts[part] = self._beginnings(part)
        if (found := self._starts[part]) is None:
            raise _Unsure
        return found

    def _beginnings(self, part: str) -> tuple[str, ...] | None:
        """How a match of this part begins; None when nothing certain can be said."""
        try:
            if part[0] == "(":
                return tuple(self._openings(part[1:-1]))
            if part[0] == "@":
                return tuple(self._list_opening(part[1:]))
            return tuple(self._word_openings(part)) if part[0].isalnum() else None
        except _Unsure:
            return None

    def _list_opening(self, name: str) -> frozenset[str]:
        if name not in self._opened:
            self._opened[name] = None
            openings = [self.opening(item) for item in self._lists.get(name, ("",))]
            if openings and None not in openings:
                self._opened[name] = frozenset[str]().union(*(o for o in openings if o))
        if (found := self._opened[name]) is None:
            raise _Unsure
        return found

    def _word_openings(self, part: str) -> Iterator[str]:
        word = part.rstrip("~*?")
        sign = part[len(word) :]
        first, joint, _ = word.partition("_")
        if joint or not sign or sign == "*":
            literals = [first]
        elif sign == "~" and word in self._irregular:
            literals = [word, *(form.partition(" ")[0] for form in self._irregular[word])]
        elif sign == "~":
            literals = [word[:-1] if word.endswith(("e", "y")) else word]
        else:
            literals = [word[:-1]]
        if word.endswith("_") or not all(literal and literal[0].isalnum() for literal in literals):
            raise _Unsure
        yield from literals


class _Unsure(Exception):
    """It cannot be said for certain how a phrase begins."""


def _longest_word(text: str) -> str:
    return max(text.split(), key=len)


def _alternatives(flat: str) -> list[str]:
    """The parts between the bars that stand in no bracket; the phrase itself when there are none."""
    if "|" not in flat:
        return [flat]
    cuts = [match.start() for match in re.finditer(rf"{_NEST}|\|", flat) if match[0] == "|"]
    return [flat[a + 1 : b] for a, b in pairwise([-1, *cuts, len(flat)])]


def _weakness(part: tuple[str, ...]) -> tuple[int, int, tuple[str, ...]]:
    """Few long literals tell most."""
    return len(part), -min(map(len, part)), part
