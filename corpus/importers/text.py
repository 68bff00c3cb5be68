"""Reading foreign text safely: bytes to text, invisible characters out, ids and cells held to a shape."""

import re
import unicodedata
from datetime import date
from pathlib import Path

from corpus.importers.result import ImportRefused

MAX_SOURCE_BYTES = 256 * 1024 * 1024
MAX_TEXT = 100_000  # one cell, one statement or one clause; the longest real one seen is under 5,000

POLICY_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

# Zero-width and direction marks: a reader does not see them, a search or a model does.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
# "If" and "When" open sentences of their own; the others lean on what stands before.
_QUALIFIER = re.compile(r"(unless|except|excluding|however|but|provided|otherwise|or|and|nor|only)\b", re.IGNORECASE)
_FINISHED = re.compile(r"(?:[.!?][)\]\"'”’]*|\|)\s*$")  # a table row ends in |
_ITEM = re.compile(r"[-*+•‣]\s|\(?\d{1,2}(?:\)|\.(?!\d))|\(?[A-Za-z]\)|[A-Za-z]\.\s|\(?[ivx]{1,4}[.)]\s")


def read_bytes(path: Path) -> bytes:
    """The file's bytes; raises `ImportRefused` when it is missing, a folder, empty or beyond MAX_SOURCE_BYTES."""
    if path.exists() and not path.is_file():  # a folder, or a pipe that would never end
        raise ImportRefused(f"{path.name}: not a file; give a readable file")
    try:
        size = path.stat().st_size
        if size > MAX_SOURCE_BYTES:
            raise ImportRefused(f"{path.name}: {size:,} bytes, the limit is {MAX_SOURCE_BYTES:,}; split the file")
        data = path.read_bytes()
    except OSError as error:
        raise ImportRefused(f"{path.name}: cannot be read ({error.strerror}); give a readable file") from error
    if not data.strip():
        raise ImportRefused(f"{path.name}: the file is empty; nothing to import")
    return data


def decode(data: bytes, name: str) -> str:
    """UTF-8 text (a byte order mark is dropped) with \\n line ends. Bytes that are not UTF-8 become lone surrogates,
    which `unusable` finds, so that one bad record does not cost the rest. Raises `ImportRefused` on UTF-16 and PDF."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ImportRefused(f"{name}: UTF-16 text; save it as UTF-8 and import again")
    if data.startswith((b"%PDF-", b"PK\x03\x04")):
        raise ImportRefused(f"{name}: a PDF or an office document, not text; check --format")
    return data.decode("utf-8-sig", errors="surrogateescape").replace("\r\n", "\n").replace("\r", "\n")


def unusable(text: str) -> str | None:
    """Why this text cannot become part of a clause, or None: too long, not UTF-8, or with control characters."""
    if len(text) > MAX_TEXT:
        return f"{len(text):,} characters in one field, the limit is {MAX_TEXT:,}"
    for char in text:
        category = unicodedata.category(char) if char > "~" or char < " " else ""
        if category == "Cs":
            return "bytes that are not UTF-8"
        if category == "Cc" and char not in "\n\t":
            return f"a control character (U+{ord(char):04X})"
    return None


def strip_invisible(text: str) -> tuple[str, int]:
    """The text without zero-width and direction marks (and without soft hyphens), and how many there were."""
    return _INVISIBLE.subn("", text)


def squeeze(text: str) -> str:
    """One line: every run of white space is one space, none at the ends."""
    return " ".join(text.split())


def squeeze_lines(text: str) -> str:
    """Each line squeezed, blank lines dropped; line breaks stay, for they carry lists."""
    return "\n".join(line for line in map(squeeze, text.split("\n")) if line)


def continues(earlier: str, later: str) -> bool:
    """True when `later` must not stand apart from `earlier`: that one is a lead-in or an unfinished sentence, or this
    one is a list item, starts in the middle, or starts with a qualifier.

    This is what keeps a clause from ending before its UNLESS or EXCEPT.
    """
    start = later.lstrip()
    return (
        _FINISHED.search(earlier) is None
        or start[:1].islower()
        or _ITEM.match(start) is not None
        or _QUALIFIER.match(start) is not None
    )


def iso_date(text: str) -> date | None:
    """The date of a strict YYYY-MM-DD, or None; compact, week and impossible dates are None."""
    return _date(re.fullmatch(r"(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})", text, re.ASCII))


def us_date(text: str) -> date | None:
    """The date of a strict MM/DD/YYYY, or None."""
    return _date(re.fullmatch(r"(?P<m>\d{2})/(?P<d>\d{2})/(?P<y>\d{4})", text, re.ASCII))


def _date(found: re.Match[str] | None) -> date | None:
    if found is None:
        return None
    try:
        return date(int(found["y"]), int(found["m"]), int(found["d"]))
    except ValueError:
        return None
