"""The one form of a date that a request may have."""

import re
from datetime import date

_ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\Z")


def parse_day(text: str) -> date:
    """Return the calendar day that `text` names as YYYY-MM-DD, and nothing else.

    Python's own parser also takes compact (20240315) and week (2024-W11-5) dates; both are refused here, since a
    mistyped date would silently choose another version of a policy. Raises ValueError with the rule in its text.
    """
    if not _ISO_DAY.match(text) or not text.isascii():
        raise ValueError("a date is written YYYY-MM-DD")
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError("a date is a day of the calendar, written YYYY-MM-DD") from None
