"""Plain words for expressions: "fingersticks per day at least 4", as a reader of a determination sees them."""

from collections.abc import Sequence
from datetime import date

from cda.contracts.facts import QUANTITIES, FactDefinition, FactType
from cda.criteria.expression import Operand

_QUANTITY = {
    "=": "exactly",
    "!=": "other than",
    ">=": "at least",
    ">": "more than",
    "<=": "at most",
    "<": "less than",
}
_DATE = {"=": "on", "!=": "not on", ">=": "on or after", ">": "after", "<=": "on or before", "<": "before"}
_KIND = {"=": "is", "!=": "is not", "in": "is", "not_in": "is not"}


def comparison(definition: FactDefinition, op: str, value: Operand) -> str:
    """The words for a leaf: the fact's label, the relation, the constant and its unit unless the label has it."""
    if definition.type is FactType.BOOL:
        return f"{definition.label}: {'yes' if value is (op == '=') else 'no'}"
    if definition.type in QUANTITIES and isinstance(value, float):
        if op == ">" and value == 0:
            return f"{definition.label}: any"  # a clause that asks for some names no number
        return f"{definition.label} {_QUANTITY[op]} {value:g}{_unit(definition, value)}"
    if isinstance(value, date):
        return f"{definition.label} {_DATE[op]} {value.isoformat()}"
    values = value if isinstance(value, tuple) else (str(value),)
    return f"{definition.label} {_KIND[op]} {listed([plain(item) for item in values])}"


def elapsed(definition: FactDefinition, op: str, value: int, unit: str) -> str:
    """The words for the time since a date."""
    return f"time since {definition.label} {_QUANTITY[op]} {value} {unit}{'' if value == 1 else 's'}"


def diagnosis(patterns: Sequence[str]) -> str:
    """The words for membership of the diagnosis codes."""
    return f"a diagnosis code among {listed(patterns)}"


def composite(word: str, parts: Sequence[str], named: str | None) -> str:
    """The words for all, any, not and at-least: its name where it has one, else its parts."""
    if named:
        return plain(named)
    return parts[0] if len(parts) == 1 and word != "not" else f"{word}: {'; '.join(parts)}"


def plain(identifier: str) -> str:
    """An identifier as words."""
    return identifier.replace("_", " ")


def listed(items: Sequence[str]) -> str:
    """Alternatives as words: "a", "a or b", "a, b or c"."""
    return " or ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))


def _unit(definition: FactDefinition, value: float) -> str:
    unit = definition.unit
    if not unit:
        return ""
    words = plain(unit)
    if words.removeprefix("per ").casefold() in definition.label.casefold():
        return ""
    plural = "" if value == 1 or not words.isalpha() else "s"
    return f" {words}{plural}"
