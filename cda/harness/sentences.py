"""Sentence spans of a text, without changing it: where a quote may begin and end, and how far a fence reaches.

Two texts, two rules. A clause is edited prose: a sentence begins with a capital, a digit, a quotation mark or a bullet,
and a list belongs to the sentence whose colon opens it. A chart is dictated or telegraphic: a line ends a sentence, and
the next one may begin in lower case.
"""

import re

Span = tuple[int, int]

# Words whose full stop ends no sentence; units and the like end one when a capital follows ("x 4 mo. Denies CHF").
_TITLE_TEXT = "dr mr mrs ms prof st jr sr vs approx fig sec cf viz incl excl"
_UNIT_TEXT = "etc al inc ltd dept wt ht hx pt pts wk wks mo mos yr yrs hr hrs min max avg temp tab tabs inj"
_TITLES, _UNITS = frozenset(_TITLE_TEXT.split()), frozenset(_UNIT_TEXT.split())
_LETTERS = re.compile(r"[a-z](?:\.[a-z])*")  # initials and chart Latin: "J.", "q.i.d."
_STOP = re.compile(r"[.!?]+[\"'”’)\]]*(?=\s|$)")
_LONGEST_WORD = 24
_VISIBLE = re.compile(r"\S")
_LINE = re.compile(r"\s*\n\s*")
_BULLET = re.compile(r"(?:[-*•–]|\(?\d{1,2}[.)]|\(?[a-zA-Z][.)])\s")
_BLOCK_END = re.compile(r"[.!?:;][\"'”’)\]]*$")


def chart_sentences(text: str) -> list[Span]:
    """Half-open spans of the sentences of chart language, trimmed of white space, in order; each line ends one."""
    return _trimmed(text, _cuts(text, lowercase_starts=True, lines=True))


def clause_sentences(text: str) -> list[Span]:
    """Half-open spans of the sentences of a clause, trimmed, in order; a list stays with the sentence that opens it."""
    spans = _trimmed(text, _cuts(text, lowercase_starts=False, lines=False))
    return _with_lists(text, spans)


def lowered(text: str) -> str:
    """The text in lower case and of the same length, so that offsets hold: a letter that would grow stays as it is."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def _cuts(text: str, *, lowercase_starts: bool, lines: bool) -> list[int]:
    cuts = {
        found.end()
        for found in _STOP.finditer(text)
        if not _is_abbreviation(text, found) and (lowercase_starts or _opens_sentence(text, found.end()))
    }
    for found in _LINE.finditer(text):
        before = text[max(0, found.start() - 4) : found.start()]
        # A hard-wrapped line goes on; a line that ends in a stop, or a blank line, does not.
        if lines or found.group().count("\n") > 1 or _BLOCK_END.search(before) or _BULLET.match(text, found.end()):
            cuts.add(found.end())
    return sorted(cuts)


def _is_abbreviation(text: str, stop: re.Match[str]) -> bool:
    if not stop.group().startswith(".") or len(stop.group().rstrip("\"'”’)]")) > 1:
        return False
    start = stop.start()
    while (
        start > max(0, stop.start() - _LONGEST_WORD)
        and not text[start - 1].isspace()
        and text[start - 1] not in "(\"'[,;"
    ):
        start -= 1
    word = text[start : stop.start()].lower()
    if word.isdigit():  # "1." opens a list item when a line, a stop or a colon stands before it, but not "sec. 4."
        ahead = text[max(0, start - 24) : start].rstrip(" ")
        last = ahead.rstrip(".").rsplit(None, 1)[-1:] if ahead.endswith(".") else []
        return len(word) <= 2 and (not ahead or ahead[-1] in "\n:;.") and not (last and last[0].lower() in _TITLES)
    following = _next_letter(text, stop.end())
    if word in _UNITS:
        return not (following.isupper() or not following)
    if word in ("no", "nos"):
        return following.isdigit()
    return word in _TITLES or _LETTERS.fullmatch(word) is not None


def _opens_sentence(text: str, position: int) -> bool:
    following = _next_letter(text, position)
    return not following or following.isupper() or following.isdigit() or following in "\"'“‘([-*•–"


def _next_letter(text: str, position: int) -> str:
    found = _VISIBLE.search(text, position)
    return found.group() if found else ""


def _trimmed(text: str, cuts: list[int]) -> list[Span]:
    spans: list[Span] = []
    start = 0
    for cut in [*cuts, len(text)]:
        piece = text[start:cut]
        left = start + len(piece) - len(piece.lstrip())
        right = start + len(piece.rstrip())
        if left < right:
            spans.append((left, right))
        start = cut
    return spans


def _with_lists(text: str, spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    in_list = False
    for span in spans:
        is_item = bool(_BULLET.match(text, span[0]))
        if in_list and is_item and merged:
            merged[-1] = (merged[-1][0], span[1])
            continue
        in_list = text[span[0] : span[1]].rstrip().endswith(":")
        merged.append(span)
    return merged
