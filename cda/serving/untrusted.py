"""Text from people, made fit to be read by a program or a model: nothing that is not shown, and no end of it."""

import unicodedata
from typing import Any

_KEPT = {"\n", "\t"}
_LINES = {"\u2028": "\n", "\u2029": "\n", "\u0085": "\n", "\r\n": "\n", "\r": "\n"}


def clean(text: str, limit: int | None = None) -> str:
    """The text without control, zero-width, bidirectional and tag characters, private ones and lone surrogates; line
    and paragraph separators become newlines. At most `limit` characters, the last of them an ellipsis if some went."""
    if not (text.isascii() and text.isprintable()):
        for sign, newline in _LINES.items():
            text = text.replace(sign, newline)
        text = "".join(sign for sign in text if sign in _KEPT or unicodedata.category(sign)[0] != "C")
    if limit is not None and len(text) > limit:
        text = text[: limit - 1] + "…"
    return text


def clean_all(value: Any) -> Any:
    """JSON data with every string in it cleaned, keys included."""
    match value:
        case str():
            return clean(value)
        case dict():
            return {clean_all(key): clean_all(held) for key, held in value.items()}
        case list():
            return [clean_all(held) for held in value]
        case _:
            return value
