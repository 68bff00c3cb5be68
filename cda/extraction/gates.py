"""Gates: which literal words a sentence must hold before a phrase is worth trying.

A gate is a tuple of alternatives, {"low", "hypo"}: one of each must occur in the sentence as a substring. It is read
off the phrase by a scan of its outermost parts, without parsing it, and may be too weak but never too strong.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol, Self, TypeVar

Gate = tuple[frozenset[str], ...]
_HEAD = 3
_NEST = r"\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\)"
_PART = re.compile(rf"{_NEST}\??|@\w+\??|\.\.\.?\d+|[\w']+[~*?]?|.", re.S)


class GateReader:
    """Reads gates off flattened phrases, against one set of named lists."""

    def __init__(self, lists: Mapping[str, Sequence[str]], irregular: Mapping[str, Sequence[str]]) -> None:
        self._lists = lists
        self._irregular = irregular
        self._known: dict[str, tuple[str, ...] | None] = {}

    def of(self, flat: str) -> Gate:
        """The gate of a phrase; empty when nothing certain can be said."""
        if "|" in re.sub(_NEST, "", flat):
            whole = self._any(flat.split("|")) if "(" not in flat else None
            return (frozenset(whole),) if whole else ()
        return tuple(map(frozenset, self._strongest_first(flat)))

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
        for match in _PART.finditer(flat):
            part = match[0]
            if part[0] == "(":
                inner = part[1:-1]
                found.append(None if part[-1] == "?" or "(" in inner else self._any(inner.split("|")))
            elif part[0] == "@":
                found.append(self._list(part[1:]) if len(part) > 1 and part[-1] != "?" else None)
            elif part[0].isalnum():
                found.append(self._word(part))
        return found

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
        if sign == "~":
            if pieces[-1] in self._irregular:
                return tuple(sorted({pieces[-1], *self._irregular[pieces[-1]]}))
            pieces[-1] = pieces[-1][:-1] if pieces[-1].endswith(("e", "y")) else pieces[-1]
        elif sign == "?":
            pieces[-1] = pieces[-1][:-1]
        literal = max(pieces, key=len)
        return (literal,) if literal else None


class HasGate(Protocol):
    """What can be tried on a sentence, or spared by its gate."""

    @property
    def gate(self) -> Gate:
        """The literals that a sentence must hold: one of each set."""
        ...


GatedT = TypeVar("GatedT", bound=HasGate)


class Gated(tuple[GatedT, ...]):
    """Phrases or forms in order, and which of them are worth trying on a text of which the literals are known."""

    _open: tuple[int, ...]
    _telling: Mapping[str, tuple[int, ...]]

    def __new__(cls, items: Iterable[GatedT] = ()) -> Self:
        """The items; each is found by the part of its gate that tells most."""
        group = super().__new__(cls, items)
        telling: dict[str, list[int]] = {}
        for index, item in enumerate(group):
            for literal in min(item.gate, key=_breadth, default=frozenset[str]()):
                telling.setdefault(literal, []).append(index)
        group._telling = {literal: tuple(found) for literal, found in telling.items()}
        group._open = tuple(index for index, item in enumerate(group) if not item.gate)
        return group

    def among(self, literals: Collection[str]) -> list[int]:
        """The indices, in order, of the items that may match a text holding just these literals of theirs."""
        found = set(self._open)
        for literal in self._telling.keys() & literals:
            found.update(self._telling[literal])
        return sorted(found)


class Literals:
    """A set of literals, and which of them stand in a text: one look at each run of three characters of the text."""

    def __init__(self, literals: Iterable[str]) -> None:
        heads: dict[str, list[str]] = {}
        for literal in sorted(set(literals)):
            heads.setdefault(literal[:_HEAD], []).append(literal)
        self._long = {head: tuple(found) for head, found in heads.items() if len(head) == _HEAD}
        self._short = {size: {head for head in heads if len(head) == size} for size in range(1, _HEAD)}

    def within(self, text: str) -> list[str]:
        """The literals that `text` holds."""
        found: list[str] = []
        for size, short in self._short.items():
            found += short & {text[at : at + size] for at in range(len(text) - size + 1)}
        for head in self._long.keys() & {text[at : at + _HEAD] for at in range(len(text) - _HEAD + 1)}:
            found += [literal for literal in self._long[head] if literal in text]
        return found


def _breadth(part: frozenset[str]) -> tuple[int, int]:
    return len(part), -min(map(len, part))


def _weakness(part: tuple[str, ...]) -> tuple[int, int, tuple[str, ...]]:
    """Few long literals tell most."""
    return len(part), -min(map(len, part)), part
