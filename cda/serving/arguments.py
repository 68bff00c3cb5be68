"""Strict tool arguments: nothing coerced, nothing dropped, and a refusal that never repeats what was sent.

A caller may send anything, a social security number in the wrong field included, and an error text travels on into
transcripts and logs. So a refusal names a field of ours and a rule of ours: not the value, not the name of an unknown
argument, no address of a library's manual.
"""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

MAX_RULES = 5  # rules named in one refusal; a caller fixes a few at a time

_RULES: Mapping[str, str] = {
    "missing": "is required",
    "string_type": "must be a string",
    "string_unicode": "must be valid Unicode text",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must have at least {min_length} characters",
    "string_pattern_mismatch": "does not have the form that the schema gives",
    "literal_error": "must be one of {expected}",
    "too_long": "must have at most {max_length} items",
    "too_short": "must have at least {min_length} items",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
}


class Arguments(BaseModel):
    """Base of a tool's arguments: strict types, unknown names refused. An optional argument that is sent as null counts
    as left out, since many clients send null for what they do not use."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        optional = {name for name, field in cls.model_fields.items() if not field.is_required()}
        return {name: value for name, value in data.items() if value is not None or name not in optional}

    @classmethod
    def read(cls, arguments: Mapping[str, Any]) -> Self:
        """The arguments, checked. Raises `Refused` with the fields and rules that they break."""
        try:
            return cls.model_validate(dict(arguments))
        except ValidationError as error:
            raise Refused(refusal(cls, error)) from None

    @classmethod
    def input_schema(cls) -> dict[str, Any]:
        """The JSON schema that clients of every kind can read: no reference, no null branch, no title, and
        `additionalProperties` false, which is what `read` does."""
        schema: dict[str, Any] = _plain(cls.model_json_schema())
        return schema


class Refused(ValueError):
    """Arguments that break a rule; the text is made of our own words alone."""


def refusal(model: type[BaseModel], error: ValidationError) -> str:
    """What is wrong, as "field: rule; field: rule", for the first `MAX_RULES` faults in the order of the model."""
    texts: list[str] = []
    for fault in error.errors(include_url=False, include_input=False):
        if fault["type"] == "none_required":  # the other branch of an optional argument; null never gets this far
            continue
        text = _fault(model, fault["type"], fault["loc"], fault.get("ctx") or {})
        if text not in texts:
            texts.append(text)
    return "; ".join(texts[:MAX_RULES])


def _fault(model: type[BaseModel], kind: str, loc: tuple[int | str, ...], ctx: Mapping[str, Any]) -> str:
    if kind == "extra_forbidden":
        return f"unknown argument; known are {', '.join(sorted(model.model_fields))}"
    # A value_error is raised by a validator of ours, with a constant text.
    rule = str(ctx["error"]) if kind == "value_error" else _RULES.get(kind, "is not valid").format_map(ctx)
    where = _field(model, loc)
    return f"{where}: {rule}" if where else rule


def _field(model: type[BaseModel], loc: tuple[int | str, ...]) -> str:
    """The argument's own name and the position inside it; text that is not one of our names is left out."""
    if not loc or loc[0] not in model.model_fields:
        return ""
    return str(loc[0]) + "".join(f"[{part}]" for part in loc[1:] if isinstance(part, int))


def _plain(node: Any) -> Any:
    """Drop what adds nothing: titles that repeat names, and the null default of an optional argument."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {}
    for key, value in node.items():
        if key == "properties":
            kept[key] = {name: _plain(sub) for name, sub in value.items()}
        elif key != "title" and not (key == "default" and value is None):
            kept[key] = _plain(value)
    return kept
