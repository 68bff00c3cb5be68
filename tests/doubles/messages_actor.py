"""Who answers behind the double of the model services: an actor is a function from a request's body to what is said.

Bodies of chat completions are turned into the form of the Messages API first, so that one actor plays over both.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Said:
    """What the model says: text, an answer (sent as JSON text), calls of tools as (name, arguments), a stop reason."""

    text: str = ""
    answer: Any = None
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    stop: str | None = None
    thinking: str = ""

    @property
    def words(self) -> str:
        """The text as it goes out."""
        return self.text if self.answer is None else json.dumps(self.answer, ensure_ascii=False)


Body = Mapping[str, Any]
Actor = Callable[[Body], Said]


def static_of(body: Body) -> str:
    """The system text of a request."""
    return "".join(block["text"] for block in body.get("system", []))


def data_of(body: Body) -> Any:
    """The JSON that the first user turn holds."""
    return json.loads(text_of(body["messages"][0]))


def text_of(message: Mapping[str, Any]) -> str:
    """The text blocks of one message."""
    return "".join(block.get("text", "") for block in message["content"])


def results_of(body: Body) -> list[Mapping[str, Any]]:
    """Every tool result so far, in order."""
    blocks = [block for message in body["messages"] for block in message["content"]]
    return [block for block in blocks if block["type"] == "tool_result"]


def schema_of(body: Body) -> Any:
    """The schema of the answer that is asked for, or None."""
    return (body.get("output_config", {}).get("format") or {}).get("schema")


def smallest(body: Body) -> Said:
    """An actor: the smallest answer that the schema allows, or two words."""
    schema = schema_of(body)
    return Said(text="all right") if schema is None else Said(answer=least(schema, schema.get("$defs", {})))


def least(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Any:  # noqa: PLR0911 - one a kind
    """The smallest value of a schema."""
    if "$ref" in schema:
        return least(defs[schema["$ref"].rpartition("/")[2]], defs)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    for key in ("anyOf", "allOf"):
        if key in schema:
            return least(schema[key][-1], defs)
    match schema["type"]:
        case "object":
            wanted = schema.get("required", [])
            return {name: least(schema["properties"][name], defs) for name in wanted}
        case "array":
            return [least(schema["items"], defs)] * schema.get("minItems", 0)
        case "string":
            return ""
        case "boolean":
            return False
        case "null":
            return None
        case _:
            return 0
