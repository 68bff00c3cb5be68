"""Gates: which literal words a sentence must hold before a phrase is worth trying.

A gate is a tuple of alternatives, ("low", "hypo"): one of each must occur in the sentence as a substring. It is read
off the phrase by a scan of its outermost parts, without parsing it, and may be too weak but never too strong.
"""

import re
from collections.abc import Mapping, Sequence

Gate = tuple[tuple[str, ...], ...]
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
            return (whole,) if whole else ()
        found = {part for part in self._parts(flat) if part}
        return tuple(sorted(found, key=_weakness))

    def long_words(self, text: str) -> frozenset[str]:
        """The words of five letters or more in a text and in the lists it names, for the repair of scanning slips."""
        found = set(re.findall(r"(?<![@\w])[a-z]{5,}", text))
        for name in re.findall(r"@(\w+)", text):
            found.update(re.findall(r"(?<![@\w])[a-z]{5,}", " ".join(self._lists.get(name, ()))))
        return frozenset(found)

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


def _weakness(part: tuple[str, ...]) -> tuple[int, int, tuple[str, ...]]:
    """Few long literals tell most."""
    return len(part), -min(map(len, part)), part
