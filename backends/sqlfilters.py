"""Filters compiled to SQL conditions: every value bound, every identifier a field of the schema.

TEXT and DAY fields are columns, TEXTS fields are text arrays; no column is ever null, so no condition can be unknown.
"""

import re
from collections.abc import Sequence

from backends.errors import InvalidFilter
from backends.filters import All, AnyOf, Contains, Eq, Everything, Ge, In, Le, Nothing, Where, check_fields
from backends.schema import Field, Schema

Condition = tuple[str, list[object]]
_NAME = re.compile(r"[a-z][a-z0-9_]{0,50}")


def column(field: Field) -> str:
    """The field's column as a quoted identifier. InvalidFilter for a name that is no plain identifier."""
    if not _NAME.fullmatch(field.name):
        raise InvalidFilter("a field of this collection has a name that can be no column")
    return f'"{field.name}"'


def compile_sql(where: Where, schema: Schema) -> Condition:
    """The condition and its bound values. InvalidFilter for a field that is not of the collection."""
    check_fields(where, schema)
    return _condition(where)


def storable(text: str) -> bool:
    """Whether a text column can hold this: no NUL, and no half of a surrogate pair."""
    if "\x00" in text:
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _condition(where: Where) -> Condition:  # noqa: PLR0911 - one return a node
    match where:
        case Everything():
            return "TRUE", []
        case Nothing():
            return "FALSE", []
        case All(parts):
            return _joined(" AND ", parts)
        case AnyOf(parts):
            return _joined(" OR ", parts)
        case Eq(field, str(text)):
            return (f"{column(field)} = %s", [text]) if storable(text) else ("FALSE", [])
        case Eq(field, day):
            return f"{column(field)} = %s", [day]
        case In(field, texts):
            return f"{column(field)} = ANY(%s::text[])", [[text for text in texts if storable(text)]]
        case Le(field, bound):
            return f"{column(field)} <= %s", [bound]
        case Ge(field, bound):
            return f"{column(field)} >= %s", [bound]
        case Contains(field, text):
            return (f"%s = ANY({column(field)})", [text]) if storable(text) else ("FALSE", [])
    raise InvalidFilter(f"not a filter: {type(where).__name__}")


def _joined(word: str, parts: Sequence[Where]) -> Condition:
    conditions = [_condition(part) for part in parts]
    return f"({word.join(sql for sql, _ in conditions)})", [value for _, values in conditions for value in values]
