"""The age that a written date of birth gives on a day: what may stay when the date itself must go.

An age up to 89 identifies nobody (45 CFR 164.514(b)(2)(i)(C)) and decides some criteria, so the placeholder holds it.
"""

import re
from datetime import date

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
OLDEST = 89
_NAME = r"(?P<name>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_FORMS = tuple(
    re.compile(form)
    for form in (
        r"(?P<y>(?:18|19|20)\d\d)[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})",
        r"(?P<m>\d{1,2})[-/.](?P<d>\d{1,2})[-/.](?P<y>(?:18|19|20)\d\d)",
        rf"{_NAME}\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<y>(?:18|19|20)\d\d)",
        rf"(?P<d>\d{{1,2}})(?:st|nd|rd|th)?[\s-]+(?:of\s+)?{_NAME}[\s,-]+(?P<y>(?:18|19|20)\d\d)",
    )
)


def age_on(text: str, day: date) -> int | None:
    """Completed years on `day` of somebody born on the date that `text` holds; None when it holds no whole date with a
    four-digit year, when the day and month could be the other way round with another age, or for a later birth."""
    low = text.lower()
    for form in _FORMS:
        found = form.search(low)
        if found is None:
            continue
        parts = found.groupdict()
        month = MONTHS.index(parts["name"]) + 1 if parts.get("name") else int(parts["m"])
        ages = {_age(int(parts["y"]), month, int(parts["d"]), day)}
        if not parts.get("name") and month != int(parts["d"]) <= 12 and not low[found.start() :].startswith(parts["y"]):
            ages.add(_age(int(parts["y"]), int(parts["d"]), month, day))
        ages.discard(None)
        return ages.pop() if len(ages) == 1 else None
    return None


def _age(year: int, month: int, of_month: int, day: date) -> int | None:
    try:
        born = date(year, month, of_month)
    except ValueError:
        return None
    years = day.year - born.year - ((day.month, day.day) < (born.month, born.day))
    return years if years >= 0 else None
