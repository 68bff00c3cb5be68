"""From the authored `facts:` mapping to checked fact definitions.

Every file of fact definitions passes here before anything reads it, so an unknown key or a value of the wrong shape is
an error at load and never a fact that is silently not found.
"""

from collections.abc import Mapping
from typing import Any

from cda.contracts.facts import FactDefinition, FactType
from cda.errors import CriterionError

KEYS = frozenset(
    {"type", "label", "unit", "values", "remark", "presume", "dx", "derive", "lexicon", "examples", "counterexamples"}
)
STATUS_VALUES = ("confirmed", "suspected", "absent")


def definitions_from_data(raw: Mapping[str, Mapping[str, Any]]) -> dict[str, FactDefinition]:
    """Return the definitions that `raw` (fact name -> authored mapping) holds, in the order of their names.

    Raises CriterionError naming the fact and the rule it breaks. `examples` and `counterexamples` are test data and
    do not reach the definition.
    """
    return {name: _definition(name, raw[name]) for name in sorted(raw)}


def _definition(name: str, raw: Mapping[str, Any]) -> FactDefinition:
    if not isinstance(raw, Mapping):
        raise CriterionError(f"fact {name}: a definition is a mapping")
    if unknown := sorted(set(raw) - KEYS):
        raise CriterionError(f"fact {name}: unknown key {unknown[0]!r}; the keys are {', '.join(sorted(KEYS))}")
    try:
        kind = FactType(str(raw.get("type")))
    except ValueError:
        raise CriterionError(f"fact {name}: type is one of {', '.join(FactType)}") from None
    values = tuple(raw.get("values") or ())
    if kind is FactType.CLASS and len(values) < 2:
        raise CriterionError(f"fact {name}: a class lists at least two values")
    if kind is FactType.STATUS and values != STATUS_VALUES:
        raise CriterionError(f"fact {name}: a status has the values {', '.join(STATUS_VALUES)}, in this order")
    if kind not in {FactType.CLASS, FactType.STATUS} and values:
        raise CriterionError(f"fact {name}: only a class or a status lists values")
    presume = raw.get("presume")
    _check_presumption(name, kind, values, presume)
    return FactDefinition(
        name=name,
        type=kind,
        label=_text(name, "label", raw.get("label") or name.replace("_", " ")),
        unit=None if raw.get("unit") is None else _text(name, "unit", raw["unit"]),
        values=values,
        remark=_text(name, "remark", raw.get("remark") or ""),
        presume=presume,
        dx=_diagnoses(name, values, raw.get("dx") or {}),
        derive=_rules(name, raw.get("derive") or ()),
        lexicon=raw.get("lexicon") or {},
    )


def _text(name: str, key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise CriterionError(f"fact {name}: {key} is text")
    return value


def _check_presumption(name: str, kind: FactType, values: tuple[str, ...], presume: Any) -> None:
    match kind:
        case FactType.BOOL:
            fits = presume is None or isinstance(presume, bool)
        case FactType.CLASS | FactType.STATUS:
            fits = presume is None or presume in values
        case FactType.DATE:
            fits = presume is None
        case _:
            fits = presume is None or (isinstance(presume, int | float) and not isinstance(presume, bool))
    if not fits:
        raise CriterionError(f"fact {name}: presume is a value of the fact's own type")


def _diagnoses(name: str, values: tuple[str, ...], raw: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(raw, Mapping):
        raise CriterionError(f"fact {name}: dx maps a value to diagnosis patterns")
    found: dict[str, tuple[str, ...]] = {}
    for value, patterns in raw.items():
        if values and value not in values:
            raise CriterionError(f"fact {name}: dx names a value that the fact does not have")
        if not isinstance(patterns, list | tuple) or not all(isinstance(item, str) for item in patterns):
            raise CriterionError(f"fact {name}: dx maps a value to a list of diagnosis patterns")
        found[str(value)] = tuple(patterns)
    return found


def _rules(name: str, raw: Any) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(raw, list | tuple):
        raise CriterionError(f"fact {name}: derive is a list of rules")
    for rule in raw:
        if not isinstance(rule, Mapping) or set(rule) != {"when", "value"}:
            raise CriterionError(f"fact {name}: a derive rule has exactly the keys when and value")
    return tuple(raw)
