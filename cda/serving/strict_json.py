"""JSON that says one thing: no name twice in an object, no number that is none, no nesting without end."""

import json
from typing import Any


class Twice(ValueError):
    """A name twice in one object."""


def object_of(content: bytes | str) -> dict[str, Any] | None:
    """The object that the content is; None when it is none, or not strictly one."""
    try:
        found = json.loads(content, object_pairs_hook=_once, parse_constant=_refused)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def says_two_things(content: bytes | str) -> bool:
    """True for JSON with a name twice in one object: who reads the first and who reads the last read another message.
    What is no JSON at all says nothing."""
    try:
        json.loads(content, object_pairs_hook=_once)
    except Twice:
        return True
    except (ValueError, RecursionError):
        return False
    return False


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    held = dict(pairs)
    if len(held) != len(pairs):
        raise Twice
    return held


def _refused(_constant: str) -> Any:
    raise ValueError("no number")
