"""The one filter language, its one builder for eligibility, and the slow oracle every compiler is held to.

There is no Not, no Ne and no Exists: an operator that can see absence means something else in every engine. A node
checks its value when it is made, so a filter that exists is a filter that can be compiled.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from backends.errors import InvalidFilter, InvalidRecord
from backends.schema import PLAN_ANY, POLICY, Field, Kind, Meta, Schema, day_number, is_day


@dataclass(frozen=True, slots=True)
class Everything:
    """Every record. Only by name: no empty filter means this."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """No record."""


@dataclass(frozen=True, slots=True)
class Eq:
    """The TEXT or DAY field equals the value."""

    field: Field
    value: str | int

    def __post_init__(self) -> None:
        if self.field.kind is Kind.DAY:
            _require_day(self.field, self.value)
        else:
            _require_text(self.field, self.value)


@dataclass(frozen=True, slots=True)
class In:
    """The TEXT field equals one of the values; with no values, nothing does."""

    field: Field
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.values, tuple):
            raise InvalidFilter(f"In({self.field.name}) takes a tuple of strings, not {type(self.values).__name__}")
        for value in self.values:
            _require_text(self.field, value)


@dataclass(frozen=True, slots=True)
class Le:
    """The DAY field is on or before the day."""

    field: Field
    value: int

    def __post_init__(self) -> None:
        _require_day(self.field, self.value)


@dataclass(frozen=True, slots=True)
class Ge:
    """The DAY field is on or after the day."""

    field: Field
    value: int

    def __post_init__(self) -> None:
        _require_day(self.field, self.value)


@dataclass(frozen=True, slots=True)
class Contains:
    """The TEXTS field holds the value."""

    field: Field
    value: str

    def __post_init__(self) -> None:
        if self.field.kind is not Kind.TEXTS or not isinstance(self.value, str) or not self.value:
            raise InvalidFilter(f"Contains({self.field.name}) needs a list field and a non-empty string")


@dataclass(frozen=True, slots=True)
class All:
    """Every part holds; at least one part."""

    parts: tuple["Where", ...]

    def __post_init__(self) -> None:
        _require_parts("All", self.parts)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Some part holds; at least one part."""

    parts: tuple["Where", ...]

    def __post_init__(self) -> None:
        _require_parts("AnyOf", self.parts)


Where = Everything | Nothing | Eq | In | Le | Ge | Contains | All | AnyOf


def _require_text(field: Field, value: object) -> None:
    if field.kind is not Kind.TEXT or not isinstance(value, str) or not value:
        raise InvalidFilter(f"{field.name!r} ({field.kind.value}) takes no {type(value).__name__} here")


def _require_day(field: Field, value: object) -> None:
    if field.kind is not Kind.DAY or not is_day(value):
        raise InvalidFilter(f"{field.name!r} ({field.kind.value}): a bound is an int YYYYMMDD of a day of the calendar")


def _require_parts(name: str, parts: object) -> None:
    if not isinstance(parts, tuple) or not parts or not all(isinstance(part, Where) for part in parts):
        raise InvalidFilter(f"{name} takes a non-empty tuple of filters")


def eligible(
    *, payer_id: str | None, plan_id: str | None, as_of: date | None, include_superseded: bool = False
) -> Where:
    """Who may be found: the payer's own records, riders only for their own plan, and only what is in effect on `as_of`.

    payer_id None: every payer. plan_id None: no rider at all. as_of None or include_superseded: any window, and the
    undated too; otherwise both ends of the window are included and the undated are in effect on no day.
    """
    plan = (PLAN_ANY,) if plan_id is None else (plan_id, PLAN_ANY)
    parts: list[Where] = [In(POLICY["plan_id"], plan)]
    if payer_id is not None:
        parts.insert(0, Eq(POLICY["payer_id"], payer_id))
    if as_of is not None and not include_superseded:
        day = day_number(as_of)
        parts += [Le(POLICY["effective_start_i"], day), Ge(POLICY["effective_end_i"], day)]
    return All(tuple(parts))


def check_fields(where: Where, schema: Schema) -> None:
    """Raise InvalidFilter unless every field of the filter is a field of this collection."""
    match where:
        case All(parts) | AnyOf(parts):
            for part in parts:
                check_fields(part, schema)
        case Eq(field) | In(field) | Le(field) | Ge(field) | Contains(field):
            if (known := schema[field.name]) is not field and known != field:
                raise InvalidFilter(f"field {field.name!r} is of another kind in collection {schema.name!r}")
        case Everything() | Nothing():
            pass
        case _:
            raise InvalidFilter(f"not a filter: {type(where).__name__}")


def pinned(where: Where, field: Field) -> frozenset[str] | None:
    """The values outside which no record can match on `field`, or None when the filter does not bound it."""
    match where:
        case Eq(at, value) if at == field and isinstance(value, str):
            return frozenset({value})
        case In(at, values) if at == field:
            return frozenset(values)
        case Nothing():
            return frozenset()
        case All(parts):
            bounds = [bound for part in parts if (bound := pinned(part, field)) is not None]
            return frozenset.intersection(*bounds) if bounds else None
        case _:
            return None


def evaluate(where: Where, meta: Meta) -> bool:  # noqa: PLR0911 - one return a node
    """The oracle: what the filter means, one record at a time. A record without the field is InvalidRecord."""
    match where:
        case Everything():
            return True
        case Nothing():
            return False
        case All(parts):
            return all(evaluate(part, meta) for part in parts)
        case AnyOf(parts):
            return any(evaluate(part, meta) for part in parts)
        case Eq(field, value):
            return _read(meta, field) == value
        case In(field, values):
            return _read(meta, field) in values
        case Le(field, bound):
            return _day(meta, field) <= bound
        case Ge(field, bound):
            return _day(meta, field) >= bound
        case Contains(field, value):
            held = _read(meta, field)
            return isinstance(held, tuple) and value in held
    raise InvalidFilter(f"not a filter: {type(where).__name__}")


def _read(meta: Mapping[str, object], field: Field) -> object:
    if field.name not in meta:
        raise InvalidRecord(f"a record has no field {field.name!r}; it was never checked against its schema")
    return meta[field.name]


def _day(meta: Mapping[str, object], field: Field) -> int:
    held = _read(meta, field)
    if type(held) is not int:
        raise InvalidRecord(f"field {field.name!r} of a record is not a day")
    return held
