"""A note prepared for reading: same length as the text given, so that every offset stays verbatim.

`norm` is the text in lower case with one sentence a line ("\\n" ends a sentence and nothing else does), scanning slips
in long words repaired and fenced spans blanked. A repaired word that became shorter is padded with NUL, which phrases
read as a joint.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from cda.extraction.kin import carried
from cda.extraction.language import SCANNED_CAPITALS, Language
from cda.extraction.phrases import Phrase
from cda.extraction.prefilter import Prefilter, TriedT, Worth

_PLAIN = str.maketrans(
    {
        "’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "−": "-", "‑": "-", "\u00a0": " ", "\t": " ",
        "\r": " ", "×": "x", "•": "\n", "·": "\n", "▪": "\n", "|": "\n", "…": "\n", "➔": "→", "\u2009": " ",
        "\u202f": " ", "☑": "\x02", "☒": "\x02", "✓": "\x02", "✔": "\x02", "☐": "\x03", "□": "\x03",
        "#": " ",
    }
)  # fmt: skip
_BOX = re.compile(r"\[\s*([xX*✓+])\s*\]|\(\s*([xX])\s*\)|\[(\s*|_+)\]|\(\s*\)")
_END = re.compile(r"[.!?]+(?=[\"')\]]*(?:\s|$))|\n")
_LEADERS = re.compile(r"(?<= )\.{3,}(?= )|(?<=\w)\.{4,}(?=[ \w])")
_PASTED = re.compile(
    r"\s*[\[(<*]+\s*(?:[\w.]+ )?(?:smart ?phrase|dot ?phrase|criteria|policy text|payer text|payer criteria)(?!\w)"
)
# Every cue and number of a sentence is weighed against every other, so a sentence has a bound; the longest of some 200
# charts has 356 characters.
_RUN_ON = 2000
_LAST_WORD = re.compile(r"[\w./'&-]+$")
_TOKEN = re.compile(r"\w[\w']*(?:/\w+)*|[^\w\s]|[\x02\x03]")
# the next field of a form: "CHF: no. Neuromuscular disease: no."
_FIELD = re.compile(r"[A-Z][A-Za-z0-9 /()-]{0,38}:")
_LIST_ITEM = re.compile(r"\s*(?:[-*>+\x02\x03]|\d{1,2}[.)]\s|[a-z][.)]\s|[\w /&()-]{1,40}:|\[)")
_LONG = re.compile(r"[a-z01|5]{5,}")
_DIGITS_OF_SCANS = re.compile(
    r"(?<![\w.])(?=[oils|.]*\d|[oils|]\.)[\doils|]{1,3}(?:\.[\doils|]{1,2})?"
    r"(?=\s?(?:%|x\b|times|weeks?\b|wks?\b|months?\b|days?\b|years?\b|percent|/\s?day)"
    r"|[ -]?(?:years?\b|yrs?\b|y\.?/?o\b)|[mf]\b)"
    r"|(?<=\bage )\d[ol](?!\w)|(?<=\bage: )\d[ol](?!\w)|(?<=\baged )\d[ol](?!\w)"
)
# "N0 CHF" of a scan denies it; the N0 of a tumour stage stands before an M
_SCANNED_NO = re.compile(r"(?<!\w)n0(?= (?!m[01x]))")
# capitals of an abbreviation that hold a digit, an l or a bar
_SCANNED_SHORT = re.compile(r"(?<![\w./-])(?=[A-Z]*[01l|58])(?=\w*[A-Z]\w*[A-Z])[A-Z01l|58]{3,6}(?![\w])")
_SCAN_DIGITS = str.maketrans("oils|", "01151")


class Token(NamedTuple):
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
    run_on: bool = False
    _tokens: list[Token] | None = field(default=None, repr=False)

    def tokens(self, norm: str) -> list[Token]:
        """The words and signs of the sentence, in order."""
        if self._tokens is None:
            self._tokens = [Token(m[0], m.start(), m.end()) for m in _TOKEN.finditer(norm, self.start, self.end)]
        return self._tokens


_SHAPES = str.maketrans({"0": "o", "1": "l", "i": "l", "|": "l", "5": "s"})


class Vocabulary:
    """The words that a scanning slip may have hidden: two words of one shape differ only by confused letters."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = frozenset(words)
        self._by_shape = {_shape(word): word for word in sorted(self._words)}

    def repaired(self, word: str) -> str | None:
        """The known word that `word` is a slip of; None when it is known itself or no slip."""
        if word in self._words:
            return None
        right = self._by_shape.get(_shape(word))
        return right if right and len(right) <= len(word) else None

    def repair(self, found: re.Match[str]) -> str:
        """The word found, or what it is a slip of in its length."""
        word = found[0]
        right = self.repaired(word)
        return word if right is None else right.ljust(len(word), "\x00")


def _shape(word: str) -> str:
    return word.translate(_SHAPES).replace("rn", "m")


class Note:
    """A text made ready for the phrases and scope rules. `ignore` spans [start, end) are never read.

    `prefilter` holds at least every group that is to be tried.
    """

    def __init__(
        self,
        text: str,
        language: Language,
        vocabulary: Vocabulary,
        prefilter: Prefilter,
        ignore: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.text = text
        self._language = language
        self._prefilter = prefilter
        plain = text
        for start, end in sorted(ignore):
            width = max(0, min(end, len(text)) - max(start, 0))
            plain = plain[: max(start, 0)] + "\n" * width + plain[max(start, 0) + width :]
        plain = _SCANNED_SHORT.sub(self._short, plain.translate(_PLAIN))
        plain = _BOX.sub(lambda m: ("\x02" if m[1] or m[2] else "\x03").ljust(len(m[0])), plain)
        plain = _LEADERS.sub(lambda m: ":".ljust(len(m[0])), plain)
        plain = (
            self._language.capitals.sub(lambda m: self._language.capital_forms[m[0]], plain)
            if re.search("[a-z]", plain)
            else plain
        )
        low = plain.lower()
        if len(low) != len(plain):
            low = "".join(c.lower() if len(c.lower()) == 1 else c for c in plain)
        self.norm = self._repair(self._split(plain, low), vocabulary)

    def _short(self, found: re.Match[str]) -> str:
        """The abbreviation that a scanned one stands for: `C0PD`, `MRl`."""
        word = found[0]
        return self._language.scanned_short.get(word.translate(SCANNED_CAPITALS), word)

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
                if _PASTED.match(line):
                    mood, is_header = "payer", True
                found.append(Sentence(at, at + len(line), mood if is_header else standing))
            at += len(line) + 1
        self._spread_inline(found)
        for index, kind in carried(self.text, self.norm, [(s.start, s.end) for s in found]).items():
            found[index].mood = found[index].mood or kind
        return [part for sentence in found for part in self._bounded(sentence)]

    def _bounded(self, sentence: Sentence) -> Iterator[Sentence]:
        """The sentence, or its parts when it has no end in sight: all in doubt, since a part may have lost its "no"."""
        if sentence.end - sentence.start <= _RUN_ON:
            yield sentence
            return
        at = sentence.start
        while at < sentence.end:
            end = min(at + _RUN_ON, sentence.end)
            if end < sentence.end:
                end = max(self.norm.rfind(" ", at + 1, end), at) + 1 if " " in self.norm[at + 1 : end] else end
            yield Sentence(at, end, "doubt", run_on=True)
            at = end

    def sentence_at(self, offset: int) -> Sentence:
        """The sentence that holds `offset`."""
        return self.sentences[max(bisect_right(self._starts, offset) - 1, 0)]

    def bit(self, sentence: Sentence) -> int:
        """The sentence as a bit of the masks below."""
        return 1 << bisect_right(self._starts, sentence.start) - 1

    def worth_trying(self, group: tuple[TriedT, ...]) -> Sequence[Worth[TriedT]]:
        """What of a group may be in the note, in order. KeyError for a group that the prefilter does not hold."""
        return self._worth[id(group)]

    @cached_property
    def _worth(self) -> Mapping[int, Sequence[Worth[Any]]]:
        return self._prefilter.among(self.norm, [(sentence.start, sentence.end) for sentence in self.sentences])

    def matches(self, worth: Worth[Phrase]) -> Iterator[re.Match[str]]:
        """Where a phrase matches: sentence by sentence, from left to right, without overlaps."""
        regex, norm = worth.item.regex, self.norm
        if worth.places is None:
            for sentence in self.chosen(worth.mask):
                yield from regex.finditer(norm, sentence.start, sentence.end)
            return
        reached = 0
        for at, number in worth.places:
            if at >= reached and worth.mask >> number & 1 and (match := regex.match(norm, at, self._ends[number])):
                yield match
                reached = match.end()

    def chosen(self, mask: int) -> Iterator[Sentence]:
        """The sentences of a bit mask, in order."""
        while mask:
            low = mask & -mask
            yield self.sentences[low.bit_length() - 1]
            mask ^= low

    @cached_property
    def _starts(self) -> list[int]:
        return [sentence.start for sentence in self.sentences]

    @cached_property
    def _ends(self) -> list[int]:
        return [sentence.end for sentence in self.sentences]

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
                # a question mark stays, as the doubt it is
                ends = [i for i in range(at, match.end()) if plain[i] != "?"] or [match.end()]
                for i in ends:
                    out[i : i + 1] = "\n" if i < len(out) else ""
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
            return (
                first is not None
                and first[0].lower() in self._language.openers
                and (first[0][0].isupper() or first[0] == "pþ")
            ) or _FIELD.match(following) is not None
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

    def _repair(self, norm: str, vocabulary: Vocabulary) -> str:
        """Undo scanning slips (0/o, 1/l/i, 5/s, rn/m) in words of five letters or more and in numbers beside a unit."""
        norm = _SCANNED_NO.sub("no", _LONG.sub(vocabulary.repair, norm))
        return _DIGITS_OF_SCANS.sub(
            lambda m: m[0].translate(_SCAN_DIGITS) if not m[0].replace(".", "").isdigit() else m[0], norm
        )
