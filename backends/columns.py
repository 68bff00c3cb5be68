"""Metadata of many records as numpy columns, and filters compiled to masks over them.

TEXT and TEXTS values are numbered once; a filter compares numbers, never strings, and never a row at a time.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backends.errors import IndexMismatch, InvalidFilter
from backends.filters import All, AnyOf, Contains, Eq, Everything, Ge, In, Le, Nothing, Where, check_fields
from backends.schema import Field, Kind, Meta, Schema, Value

Mask = NDArray[np.bool_]


class Columns:
    """The rows' metadata. Immutable; `arrays` and `values` are all there is to persist."""

    def __init__(
        self, schema: Schema, rows: int, arrays: dict[str, NDArray[Any]], values: dict[str, list[str]]
    ) -> None:
        self.schema = schema
        self.rows = rows
        self.arrays = arrays
        self.values = values
        self._number = {name: {value: i for i, value in enumerate(known)} for name, known in values.items()}
        for field in schema.fields:
            wanted = (f"{field.name}.rows", f"{field.name}.starts") if field.kind is Kind.TEXTS else (field.name,)
            if any(name not in arrays for name in wanted):
                raise IndexMismatch(f"the index has no column for {field.name!r} of collection {schema.name!r}")

    @classmethod
    def of(cls, schema: Schema, metas: Sequence[Meta]) -> "Columns":
        """Columns of records that passed `schema.check`, in their order."""
        arrays: dict[str, NDArray[Any]] = {}
        values: dict[str, list[str]] = {}
        for field in schema.fields:
            held = [meta[field.name] for meta in metas]
            if field.kind is Kind.DAY:
                arrays[field.name] = np.asarray(held, dtype=np.int32)
                continue
            lists = [(value,) if isinstance(value, str) else value for value in held if not isinstance(value, int)]
            known = sorted({value for row in lists for value in row})
            number = {value: i for i, value in enumerate(known)}
            values[field.name] = known
            if field.kind is Kind.TEXT:
                arrays[field.name] = np.asarray([number[row[0]] for row in lists], dtype=np.int32)
            else:
                arrays |= _postings(field, lists, number)
        return cls(schema, len(metas), arrays, values)

    def metas(self, start: int = 0, stop: int | None = None) -> list[Meta]:
        """The fields of rows start to stop, in row order; TEXTS values sorted."""
        stop = self.rows if stop is None else min(stop, self.rows)
        columns = [self._read(field, start, stop) for field in self.schema.fields]
        names = [field.name for field in self.schema.fields]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def _read(self, field: Field, start: int, stop: int) -> Sequence[Value]:
        if field.kind is Kind.DAY:
            return [int(day) for day in self.arrays[field.name][start:stop]]
        known = self.values[field.name]
        if field.kind is Kind.TEXT:
            return [known[number] for number in self.arrays[field.name][start:stop]]
        rows = self.arrays[f"{field.name}.rows"]
        numbers = np.repeat(np.arange(len(known)), np.diff(self.arrays[f"{field.name}.starts"]))
        inside = (rows >= start) & (rows < stop)
        held: list[list[str]] = [[] for _ in range(start, stop)]
        for number, row in zip(numbers[inside].tolist(), rows[inside].tolist(), strict=True):  # by number, so sorted
            held[row - start].append(known[number])
        return [tuple(values) for values in held]

    def mask(self, where: Where, start: int = 0, stop: int | None = None) -> Mask:
        """True where the filter admits the row, for rows start to stop. InvalidFilter for a field not of the schema."""
        check_fields(where, self.schema)
        return self._mask(where, start, self.rows if stop is None else stop)

    def _mask(self, where: Where, start: int, stop: int) -> Mask:  # noqa: PLR0911 - one return a node
        match where:
            case Everything():
                return np.ones(stop - start, dtype=np.bool_)
            case Nothing():
                return np.zeros(stop - start, dtype=np.bool_)
            case All(parts):
                return reduce(np.logical_and, [self._mask(part, start, stop) for part in parts])
            case AnyOf(parts):
                return reduce(np.logical_or, [self._mask(part, start, stop) for part in parts])
            case Eq(field, value):
                return self._equal(field, value, start, stop)
            case In(field, texts):
                none = np.zeros(stop - start, dtype=np.bool_)
                return reduce(np.logical_or, [self._equal(field, text, start, stop) for text in texts], none)
            case Le(field, bound):
                return np.asarray(self.arrays[field.name][start:stop] <= bound)
            case Ge(field, bound):
                return np.asarray(self.arrays[field.name][start:stop] >= bound)
            case Contains(field, text):
                return self._holds(field, text, start, stop)
        raise InvalidFilter(f"not a filter: {type(where).__name__}")

    def _equal(self, field: Field, value: str | int, start: int, stop: int) -> Mask:
        column = self.arrays[field.name][start:stop]
        wanted = value if isinstance(value, int) else self._number[field.name].get(value, -1)
        return np.asarray(column == wanted)

    def _holds(self, field: Field, text: str, start: int, stop: int) -> Mask:
        mask = np.zeros(stop - start, dtype=np.bool_)
        number = self._number[field.name].get(text)
        if number is not None:
            starts = self.arrays[f"{field.name}.starts"]
            rows = self.arrays[f"{field.name}.rows"][starts[number] : starts[number + 1]]
            mask[rows[(rows >= start) & (rows < stop)] - start] = True
        return mask


def _postings(field: Field, lists: Sequence[tuple[str, ...]], number: dict[str, int]) -> dict[str, NDArray[Any]]:
    pairs = sorted({(number[value], row) for row, held in enumerate(lists) for value in held})
    counts = np.bincount([value for value, _ in pairs], minlength=len(number)) if pairs else np.zeros(0, dtype=np.int64)
    return {
        f"{field.name}.rows": np.asarray([row for _, row in pairs], dtype=np.int64),
        f"{field.name}.starts": np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
    }
