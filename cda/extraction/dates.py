"""Absolute dates and date spans of charts: 2024-03-15, 3/15/24, 03/2024, (3/24), March 15 2024, Mar 2024, 2024.

A date is the interval of days it may mean (a month is its first to its last day). No relative words and no guessed
years: "in March" is not a date.
"""

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date

MONTHS = {
    name: index
    for index, names in enumerate(
        ("jan january", "feb february", "mar march", "apr april", "may", "jun june", "jul july", "aug august",
         "sep sept september", "oct october", "nov november", "dec december"),
        1,
    )
    for name in names.split()
}  # fmt: skip
MONTH_NAMES = "|".join(sorted(MONTHS, key=len, reverse=True))
_DATE = re.compile(
    rf"""(?<![\w/.])(?:
      (?P<y1>(?:19|20)\d\d)-(?P<m1>\d\d)-(?P<d1>\d\d)
    | (?P<m2>\d{{1,2}})[/-](?P<d2>\d{{1,2}})[/-](?P<y2>(?:(?:19|20)\d\d|\d\d))
    | (?P<m3>\d{{1,2}})/(?P<y3>(?:19|20)\d\d)
    | (?P<m4>{MONTH_NAMES})\.?[ ](?P<d4>\d{{1,2}})(?:st|nd|rd|th)?,?[ ](?P<y4>(?:19|20)\d\d)
    | (?P<d5>\d{{1,2}})(?:st|nd|rd|th)?[ -](?:of[ ])?(?P<m5>{MONTH_NAMES})[ ,-]+(?P<y5>(?:19|20)\d\d|\d\d(?!\d))
    | (?P<m6>{MONTH_NAMES})\.?,?[ ](?:of[ ])?'?(?P<y6>(?:19|20)\d\d)
    | (?P<m7>{MONTH_NAMES})\.?[ ]'(?P<y7>\d\d)
    | (?<![^ (\n])(?P<y8>(?:19|20)\d\d)(?=[ ).,;:]|$)
    | (?<=\()(?P<m9>\d{{1,2}})/(?P<y9>1[5-9]|2\d)(?=\))
    )(?![\w/])""",
    re.X,
)


@dataclass(frozen=True, slots=True)
class DateSpan:
    """A date as written: its place and the first and last day it may mean."""

    start: int
    end: int
    first: date
    last: date


def find_dates(norm: str, start: int, end: int) -> list[DateSpan]:
    """All absolute dates in norm[start:end], in order; what is no day of the calendar is left out."""
    found = []
    for match in _DATE.finditer(norm, start, end):
        if span := _span(match):
            found.append(span)
    return found


def _span(match: re.Match[str]) -> DateSpan | None:
    form = next(i for i in range(1, 10) if match[f"y{i}"])
    year = int(match[f"y{form}"])
    year += 0 if year > 99 else 2000
    if form == 8:
        return DateSpan(match.start(), match.end(), date(year, 1, 1), date(year, 12, 31))
    raw_month = match[f"m{form}"]
    month = MONTHS.get(raw_month) or int(raw_month)
    if not 1 <= month <= 12:
        return None
    last = monthrange(year, month)[1]
    if form in {3, 6, 7, 9}:
        return DateSpan(match.start(), match.end(), date(year, month, 1), date(year, month, last))
    day = int(match[f"d{form}"])
    if not 1 <= day <= last:
        return None
    return DateSpan(match.start(), match.end(), date(year, month, day), date(year, month, day))
