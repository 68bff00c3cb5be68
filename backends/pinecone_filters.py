"""Filters compiled to Pinecone's metadata filter.

Every filterable field is on every record, so no operator here can meet an absent key: what the service thinks of one
has changed before. A list matches `$in` when one of its elements does. Days are numbers, since there is no order on
strings. Limits and meanings: https://docs.pinecone.io/guides/search/filter-by-metadata
"""

from typing import Any

from backends.errors import InvalidFilter
from backends.filters import All, AnyOf, Contains, Eq, Everything, Ge, In, Le, Nothing, Where, check_fields
from backends.schema import Schema

MAX_IN_VALUES = 10_000


def compile_filter(where: Where, schema: Schema) -> dict[str, Any] | None:
    """The filter as Pinecone takes it; None when it admits nothing, which no request needs to ask."""
    check_fields(where, schema)
    return _compiled(where, {schema.partition: {"$exists": True}})


def _compiled(where: Where, everything: dict[str, Any]) -> dict[str, Any] | None:  # noqa: PLR0911 - one return a node
    match where:
        case Everything():
            return everything  # every record, and not what else lies in the namespace
        case Nothing() | In(_, ()):
            return None
        case All(parts):
            compiled = [_compiled(part, everything) for part in parts]
            held = [part for part in compiled if part is not None]
            return _joined("$and", held) if len(held) == len(compiled) else None
        case AnyOf(parts):
            found = [part for p in parts if (part := _compiled(p, everything)) is not None]
            return _joined("$or", found) if found else None
        case Eq(field, value):
            return {field.name: {"$eq": value}}
        case In(field, values):
            return {field.name: {"$in": list(values)}}
        case Contains(field, value):
            return {field.name: {"$in": [value]}}
        case Le(field, bound):
            return {field.name: {"$lte": bound}}
        case Ge(field, bound):
            return {field.name: {"$gte": bound}}
    raise InvalidFilter(f"not a filter: {type(where).__name__}")


def _joined(operator: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    return parts[0] if len(parts) == 1 else {operator: parts}
