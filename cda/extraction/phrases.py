"""The phrase language of the lexicons, compiled to regular expressions on first use.

A phrase is words; a blank (or - / : =) matches blanks and any of - / : = and full stop. Further signs:

    check~      check, checks, checked, checking; (check|test)~ inflects each      gluc*  any word with this beginning
    (a|b c)     one of these                            (a)?     may be missing
    meals?      the last letter may be missing
    a_b         the joint may be missing                #        a number in digits
    a ..3 b     up to 3 other words between, no comma   ...3     the same, commas allowed
    ^ $         the sentence begins here, ends here
    @name       a named list (lists: in language.yaml)  {q}      the quantity (forms only)

Everything is matched against the note's normalised text: lower case, one sentence a line (see note.py). Most phrases of
a lexicon never meet a note that holds their words, so a phrase is parsed only when gates.py lets it through.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cda.extraction.gates import Gate, GateReader
from cda.patterns import compiled

JOINT = r"[ \x00/.:=\-]+"
_TIGHT, _LOOSE = r"""[ \x00/.\-()'":=*+&@]+""", r"""[ \x00/.\-()'":=,*+&@]+"""
_HEAD, _TAIL = r"(?<![^\n])[ \x00\"']*", r"(?=[ \x00.;:!,)]*(?:\n|$))"
_WORD = r"[\w%'+=<>≥≤~#&]+"
_TOKEN = re.compile(r"\.\.\.?\d+|@\w+|[\w']+|[ ]+|.", re.S)
_ALONE = ("(?<!\\w)(?:", ")(?!\\w)")
_LAST_GAP = re.compile(r"\s*(\.\.\.?)(\d+)$")
_VOWELS = "aeiou"


class Phrase:
    """One phrase: `source` as authored; `gate` and `opening` say where it may match; `regex` is made on first use."""

    def __init__(self, source: str, flat: str, compiler: "PhraseCompiler", frame: tuple[str, str]) -> None:
        self.source = source
        self._flat = flat
        self._compiler = compiler
        self._frame = frame

    @cached_property
    def gate(self) -> Gate:
        """The literals that a sentence must hold to match: one of each tuple."""
        return self._compiler.gates.of(self._flat)

    @cached_property
    def opening(self) -> frozenset[str] | None:
        """The literals with which words begin where a match may begin; None: anywhere."""
        return self._compiler.gates.opening(self._flat) if self._frame == _ALONE else None

    @cached_property
    def pattern(self) -> str:
        """The regular expression. Raises ValueError on an unknown list or an open bracket."""
        return self._compiler.body(self._flat).join(self._frame)

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The compiled pattern."""
        return compiled(self.pattern)

    def check(self) -> None:
        """Compile now. Raises ValueError on a fault, also when every part of the phrase may be missing."""
        if self.regex.fullmatch(""):
            raise ValueError(f"phrase {self.source!r}: every part of it may be missing")

    @cached_property
    def spoken(self) -> frozenset[str]:
        """The words that the phrase itself may hold; a cue made of them is part of the phrase."""
        return frozenset(re.findall(r"[a-z][a-z']*|/|(?<![\w{])0", self.pattern.replace("\\w", " ")))


@dataclass(frozen=True, slots=True)
class _Item:
    """One part of a phrase: a word or group, perhaps optional, or a gap of up to `gap[0]` words."""

    body: str
    spaced: bool = False
    optional: bool = False
    gap: tuple[int, str] | None = None


class PhraseCompiler:
    """Compiles phrases against one set of named lists. `lists` maps a name to phrases; lists may name lists."""

    def __init__(self, lists: Mapping[str, Sequence[str]], irregular: Mapping[str, Sequence[str]]) -> None:
        self._lists = lists
        self._irregular = irregular
        self._expanded: dict[str, str] = {}
        self.gates = GateReader({name: [_flat(text) for text in texts] for name, texts in lists.items()}, irregular)

    def phrase(self, source: str) -> Phrase:
        """A phrase that stands alone."""
        return Phrase(source, _flat(source), self, _ALONE)

    def before(self, source: str) -> Phrase:
        """The part of a form before its quantity: it must end where the quantity starts."""
        flat = _flat(source)
        tail = f"{_TIGHT[:-1]}*"
        if gap := _LAST_GAP.search(flat):
            flat, sep = flat[: gap.start()], _LOOSE if gap[1] == "..." else _TIGHT
            tail = rf"{sep}(?:{_WORD}{sep}){{0,{gap[2]}}}?"
        return Phrase(source, flat, self, ("(?<!\\w)(?:", f"){tail}$"))

    def after(self, source: str) -> Phrase:
        """The part of a form after its quantity: it must start where the quantity ends."""
        return Phrase(source, _flat(source), self, (f"{_TIGHT[:-1]}*(?:", ")(?!\\w)"))

    def body(self, flat: str) -> str:
        """The regular expression of a flattened phrase."""
        tokens = _TOKEN.findall(flat)
        body, rest = self._alternatives(tokens, 0)
        if rest != len(tokens):
            raise ValueError(f"phrase {flat!r}: a bracket is not closed or not opened")
        return body

    def _alternatives(self, tokens: list[str], at: int) -> tuple[str, int]:
        bodies: list[str] = []
        while True:
            body, at = self._sequence(tokens, at)
            bodies.append(body)
            if at >= len(tokens) or tokens[at] != "|":
                return "|".join(bodies), at
            at += 1

    def _sequence(self, tokens: list[str], at: int) -> tuple[str, int]:
        items: list[_Item] = []
        spaced = False
        while at < len(tokens) and tokens[at] not in {"|", ")"}:
            token = tokens[at]
            at += 1
            if token.isspace():
                spaced = bool(items)
            elif token.startswith(".."):
                items.append(_Item("", gap=(int(token.lstrip(".")), _LOOSE if token.startswith("...") else _TIGHT)))
            else:
                body, at = self._element(token, tokens, at)
                optional = at < len(tokens) and tokens[at] == "?"
                at += optional
                items.append(_Item(body, spaced, optional))
                spaced = False
        return _joined(items), at

    def _element(self, token: str, tokens: list[str], at: int) -> tuple[str, int]:
        if token == "(":  # noqa: S105 - a sign, not a secret
            body, at = self._alternatives(tokens, at)
            if at >= len(tokens):
                raise ValueError(f"phrase {''.join(tokens)!r}: a bracket is not closed")
            return f"(?:{body})", at + 1
        if token[0] == "@":
            return (f"(?:{self._list(token[1:])})", at) if len(token) > 1 else ("@", at)
        if not (token[0].isalnum() or token[0] == "_") or token == "_":  # noqa: S105
            signs = {"#": r"\d+(?:[.,]\d+)?", "_": f"(?:{JOINT})?", ",": " ?, ?", "^": _HEAD, "$": _TAIL}
            return signs.get(token, re.escape(token)), at
        head, joint, last = token.rpartition("_")
        body, at = self._word(last, tokens[at] if at < len(tokens) else "", at) if last else ("", at)
        return rf"(?:{JOINT})?".join([*map(re.escape, head.split("_")), body]) if joint else body, at

    def _word(self, word: str, following: str, at: int) -> tuple[str, int]:
        match following:
            case "~":
                return f"(?:{'|'.join(self._inflect(word))})", at + 1
            case "*":
                return rf"{re.escape(word)}\w*", at + 1
            case "?":
                return f"{re.escape(word)}?", at + 1
        return re.escape(word), at

    def _list(self, name: str) -> str:
        if name not in self._expanded:
            if name not in self._lists:
                raise ValueError(f"no list named @{name}")
            self._expanded[name] = self.body("|".join(map(_flat, self._lists[name])))
        return self._expanded[name]

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


def _flat(source: str) -> str:
    """The source in one form: joints as blanks, blanks out of optional groups, `~` on each word of a group."""
    flat = re.sub(r"\s\?", " ", re.sub(r"[/:=-]", " ", source.lower().strip()))
    if ")~" in flat:
        flat = re.sub(r"\(([\w'|]+)\)~", lambda m: f"({m[1].replace('|', '~|')}~)", flat)
    return re.sub(r"\(\s+", " (", re.sub(r"\s+\)\?\s*", ")? ", flat)).strip()


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
