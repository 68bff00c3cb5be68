"""Words of a text for the lexical leg: folded, split, lightly stemmed, none thrown away.

"not", "no", "unless" and "except" stay: a coverage clause and its opposite differ in nothing else.
"""

import re
import unicodedata
from functools import lru_cache

import tantivy

# A query's words are asked for by each leg, by the embedder and by the fusion.
_KEPT = 64
ANALYZER = "nfkc+contractions+simple+lowercase+english-stems"
MAX_WORD = 200

_CONTRACTIONS = (
    (re.compile(r"\bcan['’]?t\b|\bcannot\b", re.IGNORECASE), "can not"),
    (re.compile(r"\bwon['’]t\b", re.IGNORECASE), "will not"),
    (re.compile(r"n['’]t\b", re.IGNORECASE), " not"),
)
_MAY_CONTRACT = re.compile(r"['’]|can(?:t|not)", re.IGNORECASE)


@lru_cache(maxsize=1)
def analyzer() -> tantivy.TextAnalyzer:
    """Split at everything that is neither letter nor digit, lower case, English stems; no stop words."""
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.remove_long(MAX_WORD))
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.stemmer("english"))
        .build()
    )


def fold(text: str) -> str:
    """The text as the analyzer takes it: NFKC, without invisible characters, negations written as the word "not"."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        text = "".join(c for c in text if unicodedata.category(c) != "Cf")
    if _MAY_CONTRACT.search(text):
        for pattern, words in _CONTRACTIONS:
            text = pattern.sub(words, text)
    return text


def stems(text: str) -> list[str]:
    """The stems of a text in order, repeats kept."""
    return list(_stems(text))


@lru_cache(maxsize=_KEPT)
def _stems(text: str) -> tuple[str, ...]:
    return tuple(analyzer().analyze(fold(text)))


def has_words(text: str) -> bool:
    """True when anything searchable is in the text; spaces, punctuation and invisible characters are not."""
    return any(c.isalnum() for c in (text if text.isascii() else fold(text)))
