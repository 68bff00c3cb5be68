"""Ids in printable ASCII, both ways: for a service that keeps no other.

Printable ASCII but '%' and the blank stands for itself; everything else is its UTF-8 bytes as %XX. No id becomes a
text that starts with '%' and no hex digit, so such a name is free for what is not a record.
"""

import re

from backends.errors import InvalidRecord

_OWN = re.compile(rb"[!-$&-~]")
_ESCAPE = re.compile(rb"%([0-9A-F]{2})")


def encoded(record_id: str) -> str:
    """The id in printable ASCII. InvalidRecord for one that is not Unicode text."""
    if record_id.isascii() and record_id.isprintable() and not {"%", " "} & set(record_id):
        return record_id
    try:
        raw = record_id.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidRecord("a record id holds half a surrogate pair; it is not text") from None
    return "".join(chr(byte) if _OWN.match(bytes((byte,))) else f"%{byte:02X}" for byte in raw)


def decoded(kept: str) -> str | None:
    """The id that `encoded` made this text of; None when it made it of none."""
    try:
        found = _ESCAPE.sub(lambda match: bytes((int(match[1], 16),)), kept.encode("ascii")).decode("utf-8")
    except (UnicodeEncodeError, UnicodeDecodeError):
        return None
    return found if encoded(found) == kept else None
