"""Quotes of clauses: strict on words, lenient on glyphs, and whole.

The rules are those of the verifier's quote steps (docs/decisions/004-verification.md). A quote is compared with the
clause at its own offsets, after one declared normalisation of both; it is never searched for elsewhere, since a repair
would hide the error. `cite` makes citations that keep the rules by construction.
"""

import re
import unicodedata
from functools import lru_cache
from hashlib import sha256

from cda.contracts.decision import Citation
from cda.contracts.policy_tools import ClauseView
from cda.harness.sentences import clause_sentences

# Each claim of a clause cites it, and each citation is checked: what follows from a text alone is worked out once.
# Texts of clauses are short.
_sentences = lru_cache(maxsize=512)(clause_sentences)

# Glyph variants that print alike: hyphens and dashes, curly quotes, spaces. Letters, digits, case and all other
# punctuation count, and NFKC is not used: it would turn superscripts, fractions and ligatures into other text.
_GLYPHS = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-")
    | dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"')
    | {"\u00ad": None}
)
_UNSEEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff\x00-\x08\x0e-\x1f\x7f]")
_ELLIPSIS = re.compile(r"\.\.\.|…|\[[^\]]*\]")
_MIN_WORDS = 5
_WORD = re.compile(r"[^\W_]+(?:['’.,/-][^\W_]+)*")
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|once|twice|none|zero|half|dozen)\b", re.I
)
_VERB = re.compile(
    r"\b(?:is|are|was|were|be|been|being|has|have|had|does|do|did|may|must|shall|should|will|would|can|cannot|could|need|"
    r"meets?|covers?|requires?|excludes?|includes?|applies|apply|waives?|replaces?|governs?|limits?|pays?|allows?|sets?|"
    r"needs?|uses?|tests?|makes?|states?|lasts?|exceeds?|occurs?|remains?|falls?|stands?|counts?|\w{3,}(?:ed|ing|ize[sd]?))\b",
    re.I,
)
# What a following sentence begins with when it takes back or narrows the one before it.
_QUALIFIER = re.compile(
    r"(?:however|except|unless|but|provided|notwithstanding|otherwise|nevertheless|nonetheless|exceptions?\b|only\s+(?:if|when)"
    r"|in\s+(?:that|which|such|this)\s+(?:case|event)|this\s+(?:\w+\s+)?(?:does|do|is|shall|may|will)\s+not\b"
    r"|(?:it|they|these|those|the\s+(?:same|above|foregoing))\s+(?:\w+\s+)?(?:do(?:es)?|is|are|shall|may|will)\s+not\b"
    r"|(?:this|that|the)\s+(?:\w+\s+){1,3}(?:does\s+not\s+apply|do\s+not\s+apply|is\s+waived|are\s+waived|is\s+not\s+required)"
    r"|nor|even\s+so|alternatively|an\s+exception|subject\s+to|if\s+not|where\s+(?:this|that)\b)\b",
    re.I,
)
# What a sentence begins with when it leans on the one before it; "this rider" names the clause's own document.
_REFERENT = re.compile(
    r"(?:in\s+(?:which|that|such|this)\s+(?:case|event)|it|its|they|their|them|these|those|such|he|she|otherwise|however|but"
    r"|and|or|nor|so|then|therefore|both|either|neither|the\s+(?:same|latter|former|above|foregoing)"
    r"|(?:this|that)(?!\s+(?:rider|policy|bulletin|plan|clause|section|amendment|document|benefit)\b))\b",
    re.I,
)


def normalise(text: str) -> str:
    """NFC; dashes, quotation marks and white space of every kind to one form; soft hyphens away. Nothing else."""
    return " ".join(unicodedata.normalize("NFC", text).translate(_GLYPHS).split())


def text_sha256(text: str) -> str:
    """Hex sha256 of the UTF-8 text."""
    return sha256(text.encode("utf-8")).hexdigest()


def cite(clause: ClauseView, start: int = 0, end: int | None = None) -> Citation:
    """A citation of the whole sentences around [start, end) and of what qualifies them; by default the whole clause."""
    left, right = _widened(clause.text, start, len(clause.text) if end is None else end)
    return Citation(
        clause_id=clause.clause_id,
        quote=clause.text[left:right],
        start=left,
        end=right,
        clause_sha256=clause.text_sha256,
    )


def why_not_verbatim(citation: Citation, clause: ClauseView) -> str | None:
    """Why the quote is not the clause's own words at its own offsets, or None. The reason repeats no text."""
    if citation.clause_sha256 != clause.text_sha256 or clause.text_sha256 != text_sha256(clause.text):
        return "the clause's text is not the one that was cited (its hash differs)"
    return _why_not_verbatim(citation.quote, citation.start, citation.end, clause.text)


@lru_cache(maxsize=512)
def _why_not_verbatim(quote: str, start: int, end: int, text: str) -> str | None:
    if _UNSEEN.search(quote):
        return "the quote holds characters that are not shown"
    if not 0 <= start < end <= len(text):
        return "the offsets do not lie in the clause"
    at_offsets = text[start:end]
    if quote == at_offsets or normalise(quote) == normalise(at_offsets):
        return None
    if _ELLIPSIS.search(quote):
        return "the quote leaves words out or puts words in"
    return "the quote is not the clause's words at its offsets"


def why_not_whole(citation: Citation, clause: ClauseView) -> str | None:
    """Why the quote is a part that could mislead, or None. Expects a verbatim quote."""
    return _why_not_whole(clause.text, *_trim(clause.text, citation.start, citation.end))


@lru_cache(maxsize=512)
def _why_not_whole(text: str, start: int, end: int) -> str | None:  # noqa: PLR0911  # one return a rule
    quote = text[start:end]
    if _ELLIPSIS.search(quote):
        return "the quote holds an ellipsis or a bracket"
    if len(_WORD.findall(quote)) < _MIN_WORDS:
        return f"the quote has fewer than {_MIN_WORDS} words"
    if not _NUMBER.search(quote) and not _VERB.search(quote):
        return "the quote says nothing: no verb and no number"
    sentences = _sentences(text)
    first = next((index for index, span in enumerate(sentences) if span[0] == start), None)
    last = next((index for index, span in enumerate(sentences) if span[1] == end), None)
    if first is None:
        return "the quote begins inside a sentence"
    if last is None:
        return "the quote ends inside a sentence"
    if first > 0 and _leans(text, sentences[first]):
        return "the quote begins with a sentence that leans on the one before it"
    if last + 1 < len(sentences) and _qualifies(text, sentences[last + 1]):
        return "the quote stops before the sentence that qualifies it"
    return None


def _leans(text: str, span: tuple[int, int]) -> bool:
    return _REFERENT.match(text, span[0]) is not None or _QUALIFIER.match(text, span[0]) is not None


def _qualifies(text: str, span: tuple[int, int]) -> bool:
    return _QUALIFIER.match(text, span[0]) is not None


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())


@lru_cache(maxsize=512)
def _widened(text: str, start: int, end: int) -> tuple[int, int]:
    sentences = _sentences(text)
    touched = [index for index, span in enumerate(sentences) if span[0] < end and start < span[1]]
    if not touched:
        return 0, len(text)
    first, last = touched[0], touched[-1]
    while first > 0 and _leans(text, sentences[first]):
        first -= 1
    while last + 1 < len(sentences) and _qualifies(text, sentences[last + 1]):
        last += 1
    left, right = sentences[first][0], sentences[last][1]
    # A clause shorter than a quote may be is cited whole with its heading sentence, or not at all.
    return (left, right) if len(_WORD.findall(text[left:right])) >= _MIN_WORDS else (sentences[0][0], sentences[-1][1])
