"""JSON that says one thing: no name twice in an object, no number that is none, no nesting without end."""

import json
from typing import Any


def object_of(content: bytes | str) -> dict[str, Any] | None:
    """The object that the content is; None when it is none, or not strictly one."""
    try:
        found = json.loads(content, object_pairs_hook=_once, parse_constant=_refused)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    held = dict(pairs)
    if len(held) != len(pairs):
        raise ValueError("a name twice")
    return held


def _refused(_constant: str) -> Any:
    raise ValueError("no number")
