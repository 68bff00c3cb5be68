"""The closed table of unit conversions. Only lengths of time convert; any other unit equals itself alone.

The table is a convention for durations a chart states in words ("13 weeks of methotrexate"), declared in
docs/reference/criteria.md: a month is 13/3 weeks, so 13 weeks are 3 months and 12 weeks are not. Spans between two
calendar days are counted on the calendar instead (see compare.elapsed).
"""

from fractions import Fraction

_IN_WEEKS = {
    "day": Fraction(1, 7),
    "week": Fraction(1),
    "month": Fraction(13, 3),
    "year": Fraction(52),
}
TIME_UNITS = tuple(_IN_WEEKS)


def convertible(source: str | None, target: str | None) -> bool:
    """True when a value in `source` can be stated in `target`."""
    return source == target or (source in _IN_WEEKS and target in _IN_WEEKS)


def convert(value: float, source: str | None, target: str | None) -> float:
    """Return `value` restated from `source` in `target`, exact up to one final rounding to float.

    Raises ValueError when the units do not convert. Infinite values stay infinite.
    """
    if source == target or value in (float("inf"), float("-inf")):
        return value
    if source not in _IN_WEEKS or target not in _IN_WEEKS:
        raise ValueError(f"{source or 'a bare number'} cannot be stated in {target or 'a bare number'}")
    return float(Fraction(value) * _IN_WEEKS[source] / _IN_WEEKS[target])
