"""The phrase language of the lexicons, compiled to regular expressions with a cheap gate.

A phrase is words; a blank (or - / : =) matches blanks and any of - / : = and full stop. Further signs:

    check~      check, checks, checked, checking; (check|test)~ inflects each      gluc*  any word with this beginning
    (a|b c)     one of these                            (a)?     may be missing
    meals?      the last letter may be missing
    a_b         the joint may be missing                #        a number in digits
    a ..3 b     up to 3 other words between, no comma   ...3     the same, commas and colons allowed
    @name       a named list (lists: in language.yaml)  {q}      the quantity (forms only)

Everything is matched against the note's normalised text: lower case, one sentence a line (see note.py).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

JOINT = r"[ \x00/.:=\-]+"
_TIGHT, _LOOSE = r"""[ \x00/.\-()'":=*+&@]+""", r"""[ \x00/.\-()'":=,*+&@]+"""
_WORD = r"[\w%'+=<>≥≤~#&]+"
_TOKEN = re.compile(r"\.\.\.?\d+|@\w+|[\w']+|[ ]+|.", re.S)
_VOWELS = "aeiou"


@dataclass(frozen=True, slots=True)
class Phrase:
    """One compiled phrase: `source` as authored, `gate` literals of which one must occur, `pattern` to search with."""

    source: str
    gate: tuple[str, ...]
    pattern: str

    def spoken(self) -> frozenset[str]:
        """The words that the phrase itself may hold; a cue made of them is part of the phrase."""
        return _spoken(self.pattern)

    def regex(self) -> re.Pattern[str]:
        """The compiled pattern; compiled on first use, since most phrases never meet their gate."""
        return _compiled(self.pattern)

    def find(self, norm: str, start: int = 0, end: int | None = None) -> Iterator[re.Match[str]]:
        """Every match in `norm`, left to right; no work at all when no gate literal occurs."""
        if self.gate and not any(literal in norm for literal in self.gate):
            return iter(())
        return self.regex().finditer(norm, start, len(norm) if end is None else end)


@lru_cache(maxsize=8192)
def _spoken(pattern: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z][a-z']*|/", pattern.replace("\\w", " ")))


@dataclass(frozen=True, slots=True)
class _Item:
    """One part of a phrase: a word or group, perhaps optional, or a gap of up to `gap[0]` words."""

    body: str
    gate: tuple[str, ...]
    spaced: bool = False
    optional: bool = False
    gap: tuple[int, str] | None = None


def _joined(items: list[_Item]) -> str:
    """The regular expression of a sequence; what stands after its last fixed part may be missing as a whole."""
    fixed = [i for i, item in enumerate(items) if not item.optional and not item.gap]
    last = fixed[-1] if fixed else -1
    out: list[str] = []
    parted = True  # a separator was just consumed, or the phrase begins here
    for index, item in enumerate(items[: last + 1]):
        if item.gap:
            out.append(("" if parted else item.gap[1]) + rf"(?:{_WORD}{item.gap[1]}){{0,{item.gap[0]}}}?")
            parted = True
            continue
        out.append(JOINT if item.spaced and not parted else "")
        parted = False
        if item.optional and (items[index + 1].spaced or items[index + 1].gap):
            out.append(f"(?:{item.body}{JOINT})?")
            parted = True
        else:
            out.append(f"(?:{item.body})?" if item.optional else item.body)
    return "".join(out) + _tail(items[last + 1 :], parted)


def _tail(items: list[_Item], parted: bool) -> str:
    out: list[str] = []
    lead = ""
    for item in items:
        if item.gap:
            lead = rf"{item.gap[1]}(?:{_WORD}{item.gap[1]}){{0,{item.gap[0]}}}?"
        else:
            joint = lead or (JOINT if item.spaced and not (parted and not out) else "")
            out.append(f"(?:{joint}{item.body})?")
            lead = ""
    return "".join(out)


@lru_cache(maxsize=8192)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


class PhraseCompiler:
    """Compiles phrases against one set of named lists. `lists` maps a name to phrases; lists may name lists."""

    def __init__(self, lists: Mapping[str, Sequence[str]], irregular: Mapping[str, Sequence[str]]) -> None:
        self._lists = lists
        self._irregular = irregular
        self._expanded: dict[str, tuple[str, tuple[str, ...]]] = {}

    def phrase(self, source: str) -> Phrase:
        """Compile a phrase that stands alone. Raises ValueError on an unknown list or an unclosed group."""
        body, gate = self._parse_whole(source)
        if not body or re.fullmatch(body, ""):
            raise ValueError(f"phrase {source!r}: every part of it may be missing")
        return Phrase(source, gate, rf"(?<!\w)(?:{body})(?!\w)")

    def before(self, source: str) -> Phrase:
        """Compile the part of a form before its quantity: it must end where the quantity starts."""
        body, gate = self._parse_whole(source)
        return Phrase(source, gate, rf"(?<!\w)(?:{body}){_TIGHT[:-1]}*$")

    def after(self, source: str) -> Phrase:
        """Compile the part of a form after its quantity: it must start where the quantity ends."""
        body, gate = self._parse_whole(source)
        return Phrase(source, gate, rf"{_TIGHT[:-1]}*(?:{body})(?!\w)")

    def words(self, source: str) -> set[str]:
        """The literal words of five letters or more in a phrase, for the repair of scanning slips."""
        return {w for w in re.findall(r"[a-z]{5,}", self._parse_whole(source)[0])}

    def _parse_whole(self, source: str) -> tuple[str, tuple[str, ...]]:
        flat = re.sub(r"\s\?", " ", re.sub(r"[/:=-]", " ", source.lower().strip()))
        flat = re.sub(r"\(([\w'|]+)\)~", lambda m: f"({m[1].replace('|', '~|')}~)", flat)
        outward = re.sub(r"\(\s+", " (", re.sub(r"\s+\)\?\s*", ")? ", flat))
        tokens = _TOKEN.findall(outward)
        body, gate, rest = self._alternatives(tokens, 0)
        if rest != len(tokens):
            raise ValueError(f"phrase {source!r}: a bracket is not closed or not opened")
        return body, gate

    def _alternatives(self, tokens: list[str], at: int) -> tuple[str, tuple[str, ...], int]:
        bodies: list[str] = []
        gates: list[tuple[str, ...]] = []
        while True:
            body, gate, at = self._sequence(tokens, at)
            bodies.append(body)
            gates.append(gate)
            if at >= len(tokens) or tokens[at] != "|":
                break
            at += 1
        merged = tuple(sorted({g for gate in gates for g in gate})) if all(gates) else ()
        return "|".join(bodies), merged, at

    def _sequence(self, tokens: list[str], at: int) -> tuple[str, tuple[str, ...], int]:
        items: list[_Item] = []
        spaced = False
        while at < len(tokens) and tokens[at] not in {"|", ")"}:
            token = tokens[at]
            at += 1
            if token.isspace():
                spaced = bool(items)
            elif token.startswith(".."):
                items.append(_Item("", (), gap=(int(token.lstrip(".")), _LOOSE if token.startswith("...") else _TIGHT)))
            else:
                body, gate, at = self._element(token, tokens, at)
                optional = at < len(tokens) and tokens[at] == "?"
                at += optional
                items.append(_Item(body, () if optional else gate, spaced, optional))
                spaced = False
        gates = [item.gate for item in items if item.gate]
        best = min(gates, key=lambda g: (len(g) > 4, -min(map(len, g)), len(g), g)) if gates else ()
        return _joined(items), best, at

    def _element(self, token: str, tokens: list[str], at: int) -> tuple[str, tuple[str, ...], int]:
        if token == "(":
            body, gate, at = self._alternatives(tokens, at)
            if at >= len(tokens):
                raise ValueError(f"phrase {''.join(tokens)!r}: a bracket is not closed")
            return f"(?:{body})", gate, at + 1
        if token.startswith("@"):
            body, gate = self._list(token[1:])
            return f"(?:{body})", gate, at
        if token == "#":
            return r"\d+(?:[.,]\d+)?", (), at
        if token == "_":
            return f"(?:{JOINT})?", (), at
        if not (token[0].isalnum() or token[0] == "_"):
            return rf" ?{re.escape(token)} ?" if token == "," else re.escape(token), (), at
        if "_" in token:
            head, _, last = token.rpartition("_")
            body, gate, at = self._element(last, tokens, at) if last else ("", (), at)
            parts = [*map(re.escape, head.split("_")), body]
            longest = max(head.split("_"), key=len)
            return rf"(?:{JOINT})?".join(parts), (longest,) if len(longest) > 1 else gate, at
        following = tokens[at] if at < len(tokens) else ""
        if following == "~":
            return f"(?:{'|'.join(self._inflect(token))})", (self._stem(token),) if self._stem(token) else (), at + 1
        if following == "*":
            return rf"{re.escape(token)}\w*", (token,), at + 1
        if following == "?":
            return f"{re.escape(token)}?", (token[:-1],) if len(token) > 2 else (), at + 1
        return re.escape(token), (token,) if len(token) > 1 else (), at

    def _list(self, name: str) -> tuple[str, tuple[str, ...]]:
        if name not in self._expanded:
            if name not in self._lists:
                raise ValueError(f"no list named @{name}")
            self._expanded[name] = self._parse_whole("|".join(self._lists[name]))
        return self._expanded[name]

    def _stem(self, word: str) -> str:
        if word in self._irregular:
            return ""
        return word[:-1] if word.endswith(("e", "y")) else word

    def _inflect(self, word: str) -> list[str]:
        if word in self._irregular:
            return [word, *self._irregular[word]]
        if word.endswith("e"):
            return [word, word + "s", word + "d", word[:-1] + "ing"]
        if word.endswith("y") and word[-2] not in _VOWELS:
            return [word, word[:-1] + "ies", word[:-1] + "ied", word + "ing"]
        if word.endswith(("s", "sh", "ch", "x", "z")):
            return [word, word + "es", word + "ed", word + "ing"]
        return [word, word + "s", word + "ed", word + "ing"]
