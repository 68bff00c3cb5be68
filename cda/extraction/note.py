"""A note prepared for reading: same length as the text given, so that every offset stays verbatim.

`norm` is the text in lower case with one sentence a line ("\\n" ends a sentence and nothing else does), scanning slips
in long words repaired and fenced spans blanked. A repaired word that became shorter is padded with NUL, which phrases
read as a joint.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from cda.extraction.language import Language

_PLAIN = str.maketrans(
    {
        "’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "−": "-", "‑": "-", "\u00a0": " ", "\t": " ",
        "\r": " ", "×": "x", "•": "\n", "·": "\n", "▪": "\n", "|": "\n", "…": "\n", "➔": "→", "\u2009": " ",
        "\u202f": " ", "☑": "\x02", "☒": "\x02", "✓": "\x02", "✔": "\x02", "☐": "\x03", "□": "\x03",
    }
)  # fmt: skip
_BOX = re.compile(r"\[\s*([xX*✓+])\s*\]|\(\s*([xX])\s*\)|\[(\s*|_+|-)\]|\(\s*\)")
_END = re.compile(r"[.!?]+(?=[\"')\]]*(?:\s|$))|\n")
_LAST_WORD = re.compile(r"[\w./'&-]+$")
_TOKEN = re.compile(r"\w[\w']*(?:/\w+)*|[^\w\s]|[\x02\x03]")
_LIST_ITEM = re.compile(r"\s*(?:[-*>+\x02\x03]|\d{1,2}[.)]\s|[a-z][.)]\s|[\w /&()-]{2,40}:|\[)")
_LONG = re.compile(r"[a-z01|5]{5,}")
_DIGITS_OF_SCANS = re.compile(r"(?<![\w.])(?=[oils|.]*\d|[oils|]\.)[\doils|]{1,3}(?:\.[\doils|]{1,2})?(?=\s?(?:%|x\b|times|weeks?\b|wks?\b|months?\b|days?\b|years?\b|percent|/\s?day))")  # fmt: skip # noqa: E501
_SCAN_DIGITS = str.maketrans("oils|", "01151")


@dataclass(frozen=True, slots=True)
class Token:
    """One word or sign of a sentence, with its place in the note."""

    text: str
    start: int
    end: int


@dataclass(slots=True)
class Sentence:
    """One sentence: its place, the mood its section sets, and its tokens (made when first asked for)."""

    start: int
    end: int
    mood: str | None = None
    _tokens: list[Token] | None = field(default=None, repr=False)

    def tokens(self, norm: str) -> list[Token]:
        """The words and signs of the sentence, in order."""
        if self._tokens is None:
            self._tokens = [Token(m[0], m.start(), m.end()) for m in _TOKEN.finditer(norm, self.start, self.end)]
        return self._tokens


class Note:
    """A text made ready for the phrases and scope rules. `ignore` spans [start, end) are never read."""

    def __init__(
        self, text: str, language: Language, vocabulary: Collection[str], ignore: Sequence[tuple[int, int]] = ()
    ) -> None:
        self.text = text
        self._language = language
        plain = text
        for start, end in sorted(ignore):
            width = max(0, min(end, len(text)) - max(start, 0))
            plain = plain[: max(start, 0)] + "\n" * width + plain[max(start, 0) + width :]
        plain = plain.translate(_PLAIN)
        plain = _BOX.sub(lambda m: ("\x02" if m[1] or m[2] else "\x03").ljust(len(m[0])), plain)
        plain = (
            self._language.capitals.sub(lambda m: self._language.capital_forms[m[0]], plain)
            if re.search("[a-z]", plain)
            else plain
        )
        low = plain.lower()
        if len(low) != len(plain):
            low = "".join(c.lower() if len(c.lower()) == 1 else c for c in plain)
        self.norm = self._repair(self._split(plain, low), vocabulary)

    @cached_property
    def sentences(self) -> list[Sentence]:
        """All sentences in order; section headers give them their mood."""
        found: list[Sentence] = []
        at = 0
        standing: str | None = None
        for line in self.norm.split("\n"):
            if line.strip():
                mood, is_block, is_header = self._header(line, at)
                if is_header and is_block:
                    standing = mood
                if standing == "payer" and self._language.own_case.match(line):
                    standing = None
                found.append(Sentence(at, at + len(line), mood if is_header else standing))
            at += len(line) + 1
        self._spread_inline(found)
        return found

    def sentence_at(self, offset: int) -> Sentence:
        """The sentence that holds `offset`."""
        import bisect

        index = bisect.bisect_right(self.sentences, offset, key=lambda s: s.start) - 1
        return self.sentences[max(index, 0)]

    def _header(self, line: str, at: int) -> tuple[str | None, bool, bool]:
        """The mood of the section that this line opens; whether it stands as a block; whether it is a header at all."""
        match = self._language.header.match(line)
        if not match or not (match["colon"] or not line[match.end("name") :].strip()):
            return None, False, False
        starts_line = at == 0 or self.text[at - 1 : at] in {"\n", "\r"} or not self.text[:at].strip()
        return self._language.sections[" ".join(match["name"].split())], starts_line, True

    def _spread_inline(self, sentences: list[Sentence]) -> None:
        """A header inside a running paragraph holds to the end of its line."""
        held: str | None = None
        for index, sentence in enumerate(sentences):
            fresh = index == 0 or "\n" in self.text[sentences[index - 1].end : sentence.start]
            _, block, header = self._header(self.norm[sentence.start : sentence.end], sentence.start)
            if header and not block:
                held = sentence.mood or "none"
            elif fresh or header:
                held = None
            elif held:
                sentence.mood = None if held == "none" else held

    def _split(self, plain: str, low: str) -> str:
        """Mark sentence ends with a newline and turn every other newline into a blank."""
        out = list(low)
        for match in _END.finditer(plain):
            at = match.start()
            if plain[at] == "\n":
                out[at] = "\n" if self._breaks(plain, at) else " "
            elif self._ends_sentence(plain, at, match.end()):
                for i in range(at, match.end()):
                    out[i] = "\n"
        return "".join(out)

    def _ends_sentence(self, plain: str, at: int, after: int) -> bool:
        if plain[at] == "?" and re.match(r"\s*(?:yes|no|y|n|none|never)(?!\w)", plain[after : after + 8], re.I):
            return False
        if plain[at] != ".":
            return not re.match(r"\s*[a-z]", plain[after : after + 3]) or plain[at] == "!"
        following = plain[after : after + 40].lstrip(" \"')]")[:40]
        word = _LAST_WORD.search(plain, max(0, at - 20), at)
        last = word[0].lower() if word else ""
        if following[:1] == "\n" or not following:
            return last not in self._language.never_end or not following[1:2].islower()
        if last in self._language.never_end:
            return False
        first = re.match(r"[\w']+", following)
        if last in self._language.may_end or (len(last) == 1 and last.isalpha()):
            return bool(first) and first[0].lower() in self._language.openers and first[0][0].isupper()
        return True

    @staticmethod
    def _breaks(plain: str, at: int) -> bool:
        """True unless the newline at `at` only wraps a running sentence."""
        line_start = plain.rfind("\n", 0, at) + 1
        line = plain[line_start:at].rstrip()
        line_end = plain.find("\n", at + 1)
        rest = plain[at + 1 : len(plain) if line_end < 0 else line_end]
        if not line.strip() or not rest.strip() or line[-1] in ".:;!?" or _LIST_ITEM.match(rest.lower()):
            return True
        first = rest.lstrip()[0]
        return not (first.islower() and len(line) >= 25) and not (len(line) >= 55)

    def _repair(self, norm: str, vocabulary: Collection[str]) -> str:
        """Undo scanning slips (0/o, 1/l/i, 5/s, rn/m) in words of five letters or more and in numbers beside a unit."""
        known = {_shape(word): word for word in sorted(vocabulary)}
        for match in reversed(list(_LONG.finditer(norm))):
            word = match[0]
            if word in vocabulary or (right := known.get(_shape(word))) is None or len(right) > len(word):
                continue
            norm = norm[: match.start()] + right.ljust(len(word), "\x00") + norm[match.end() :]
        return _DIGITS_OF_SCANS.sub(
            lambda m: m[0].translate(_SCAN_DIGITS) if not m[0].replace(".", "").isdigit() else m[0], norm
        )


_SHAPES = str.maketrans({"0": "o", "1": "l", "i": "l", "|": "l", "5": "s"})


def _shape(word: str) -> str:
    return word.translate(_SHAPES).replace("rn", "m")
