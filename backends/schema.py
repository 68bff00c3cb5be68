"""What a collection's records carry: fields with kinds, typed sentinels instead of absence, and days as integers.

Every filterable field is written on every record. A value that does not apply is a sentinel of the field's own type,
so no engine's opinion on missing keys can ever decide what a search returns.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import cached_property
from hashlib import sha256

from backends.errors import InvalidFilter, InvalidRecord

Value = str | int | tuple[str, ...]
Meta = Mapping[str, Value]

PLAN_ANY = "*any-plan*"
CODES_NONE = "*no-code*"
JURISDICTION_ANY = "*any-jurisdiction*"
UNNAMED = "*unnamed*"
OPEN_END = 99991231
NEVER_STARTED = 99991231
NEVER_LASTED = 0


class Kind(StrEnum):
    """TEXT: a non-empty string. DAY: YYYYMMDD as int, or one of the day sentinels. TEXTS: a non-empty tuple of TEXT."""

    TEXT = "text"
    DAY = "day"
    TEXTS = "texts"


@dataclass(frozen=True, slots=True)
class Field:
    """A filterable field of one collection."""

    name: str
    kind: Kind


@dataclass(frozen=True)
class Schema:
    """The closed set of fields of a collection. `partition` names the TEXT field that most searches pin."""

    name: str
    fields: tuple[Field, ...]
    partition: str

    def __getitem__(self, name: str) -> Field:
        """The field; InvalidFilter when the collection has none of that name."""
        try:
            return self._by_name[name]
        except KeyError:
            raise InvalidFilter(f"collection {self.name!r} has no field {name!r}") from None

    @cached_property
    def _by_name(self) -> dict[str, Field]:
        return {field.name: field for field in self.fields}

    @cached_property
    def digest(self) -> str:
        """Hex sha256 over the name, the fields with their kinds and the partition."""
        shape = [self.name, [[field.name, field.kind.value] for field in self.fields], self.partition]
        return sha256(json.dumps(shape).encode("utf-8")).hexdigest()

    def check(self, record_id: str, meta: Meta) -> None:
        """Raise InvalidRecord unless `meta` has exactly this schema's fields, each with a value of its kind."""
        if meta.keys() != self._by_name.keys():
            odd = sorted(meta.keys() ^ self._by_name.keys())
            raise InvalidRecord(f"record {record_id!r}: missing or unknown field(s) {odd} for {self.name!r}")
        for field in self.fields:
            if not _fits(field.kind, meta[field.name]):
                raise InvalidRecord(f"record {record_id!r}: field {field.name!r} is not a {field.kind.value}")


def _fits(kind: Kind, value: object) -> bool:
    match kind:
        case Kind.TEXT:
            return isinstance(value, str) and value != ""
        case Kind.DAY:
            return is_day(value) or (type(value) is int and value == NEVER_LASTED)
        case Kind.TEXTS:
            return isinstance(value, tuple) and bool(value) and all(isinstance(v, str) and v for v in value)


def day_number(day: date) -> int:
    """The day as the integer YYYYMMDD, which sorts as days do. InvalidFilter for anything but a plain date."""
    if type(day) is not date:
        raise InvalidFilter(f"a day is a date without a time, not {type(day).__name__}")
    return day.year * 10_000 + day.month * 100 + day.day


def day_of(value: object) -> date | None:
    """The day that a YYYYMMDD names; None for a sentinel and for everything else."""
    if not is_day(value) or value in (OPEN_END, NEVER_STARTED):
        return None
    number = int(str(value))
    return date(number // 10_000, number // 100 % 100, number % 100)


def is_day(value: object) -> bool:
    """True for an int that is YYYYMMDD of a day of the calendar; floats, bools and 20240231 are not."""
    if type(value) is not int or not 1_01_01 <= value <= OPEN_END:
        return False
    try:
        date(value // 10_000, value // 100 % 100, value % 100)
    except ValueError:
        return False
    return True


def window(start: date | None, end: date | None, *, dated: bool) -> tuple[int, int]:
    """(effective_start_i, effective_end_i), both ends inclusive; an undated window admits no day at all."""
    if not dated or start is None:
        return NEVER_STARTED, NEVER_LASTED
    return day_number(start), OPEN_END if end is None else day_number(end)


POLICY = Schema(
    name="policy",
    fields=(
        Field("payer_id", Kind.TEXT),
        Field("policy_id", Kind.TEXT),
        Field("version", Kind.TEXT),
        Field("section", Kind.TEXT),
        Field("source", Kind.TEXT),
        Field("doc_type", Kind.TEXT),
        Field("plan_id", Kind.TEXT),
        Field("codes", Kind.TEXTS),
        Field("jurisdiction", Kind.TEXTS),
        Field("effective_start_i", Kind.DAY),
        Field("effective_end_i", Kind.DAY),
    ),
    partition="payer_id",
)
