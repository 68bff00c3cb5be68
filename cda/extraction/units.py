"""A quantity as written, and its value in the unit of a fact.

Units and their conversions are a closed table: 1 month = 13/3 weeks = 1/12 year, 1 week = 7 days. Days become months
as an interval (30 to 30.5 days a month), since a chart that counts days counts no calendar months.
"""

from fractions import Fraction
from math import inf
from typing import NamedTuple

from cda.contracts.facts import Interval
from cda.extraction.dates import DateSpan

DAYS = {
    "hour": Fraction(1, 24),
    "day": Fraction(1),
    "week": Fraction(7),
    "month": Fraction(91, 3),
    "year": Fraction(364),
}


class Quantity(NamedTuple):
    """One quantity as written.

    kind: number | times | rate | duration | percent | age | mmol (mmol/mol) | date. `unit` is the time unit of a
    duration; `per` the days a rate counts over. `mark` says why it may not be taken as it stands: "ago" (a point in
    time), "interval" (every, in, within), "old" (the value moved away from).
    """

    start: int
    end: int
    kind: str
    value: Interval
    unit: str | None = None
    per: Fraction | None = None
    mark: str | None = None
    number_end: int = 0
    date: DateSpan | None = None
    days: Interval | None = None  # of a span between dates: its length in days, which is no rounded number of months

    def in_unit(self, unit: str | None) -> Interval:
        """The value in `unit` (day, week, month, year; per_day for a rate); other units are left as written."""
        if self.kind in {"rate", "amount"} and self.per:
            return _scaled(self.value, 1 / self.per, 1 / self.per)
        if self.days is not None and unit in {"day", "week"}:
            return _scaled(self.days, 1 / DAYS[unit], 1 / DAYS[unit])
        if self.kind in {"duration", "gestation"} and self.unit and unit in DAYS:
            factor = DAYS[self.unit] / DAYS[unit]
            if self.unit == "day" and unit in {"month", "year"}:
                return _scaled(self.value, factor * Fraction(182, 183), factor * Fraction(91, 90))
            return _scaled(self.value, factor, factor)
        return self.value

    def over(self, days: int) -> Interval | None:
        """The count over `days` days: as written, or a daily count times the days; other periods say nothing."""
        if self.per == days:
            return self.value
        return _scaled(self.value, Fraction(days), Fraction(days)) if self.per == 1 else None


def _scaled(value: Interval, low: Fraction, high: Fraction) -> Interval:
    def times(end: float, factor: Fraction) -> float:
        return end if abs(end) == inf else round(float(Fraction(str(end)) * factor), 6)

    return Interval(times(value.lo, low), times(value.hi, high), value.lo_open, value.hi_open)
