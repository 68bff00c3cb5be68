"""Representative values of a fact: those around the thresholds that a line compares it with."""

from collections.abc import Sequence
from datetime import date, timedelta
from itertools import pairwise

from cda.contracts.facts import FactDefinition, FactType, Interval, Value
from cda.criteria import compare
from cda.criteria.expression import Elapsed, Leaf
from cda.criteria.parse import STATUS_VALUES


def candidates(definition: FactDefinition, leaves: Sequence[Leaf | Elapsed], as_of: date) -> list[Value]:
    """Values that between them give the leaves every truth a value can: all of a fact that has few, else those at and
    next to the leaves' thresholds, the thresholds first."""
    match definition.type:
        case FactType.BOOL:
            return [True, False]
        case FactType.STATUS:
            return list(STATUS_VALUES)
        case FactType.CLASS:
            return list(definition.values)
        case FactType.DATE:
            return _days(leaves, as_of)
        case _:
            return _amounts([leaf.value for leaf in leaves if isinstance(leaf.value, float)])


def plain(value: Value) -> bool | str | int | float:
    """A value as JSON writes it: whole numbers without a point, dates as YYYY-MM-DD; of an interval, its lower end."""
    if isinstance(value, Interval):
        return int(value.lo) if value.lo.is_integer() else value.lo
    return value.isoformat() if isinstance(value, date) else value


def _amounts(thresholds: Sequence[float]) -> list[Value]:
    """Each threshold and a step to either side; steps are 1, or less where thresholds lie closer than 2."""
    ordered = sorted(set(thresholds))
    gaps = [high - low for low, high in pairwise(ordered)]
    step = min([1.0, *(gap / 2 for gap in gaps)])
    around = [point for threshold in ordered for point in (threshold, threshold - step, threshold + step)]
    return [Interval.exactly(point) for point in around if point >= 0 or min(ordered) < 0]


def _days(leaves: Sequence[Leaf | Elapsed], as_of: date) -> list[Value]:
    """The days on which some leaf turns, and the days next to them."""
    turning: list[date] = []
    for leaf in leaves:
        if isinstance(leaf, Elapsed):
            turning += [compare.later(as_of, -count, leaf.unit) for count in (leaf.value, leaf.value + 1)]
        elif isinstance(leaf.value, date):
            turning.append(leaf.value)
    return [day + timedelta(days=shift) for day in turning if date.min < day < date.max for shift in (0, -1, 1)]
