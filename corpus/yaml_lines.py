"""YAML read as JSON values whose mappings remember the line of every key.

Authored files hold codes, dates and words, and YAML 1.1 turns some of these into something else: `on` into true,
`00100` into 64, `2024-01-01` into a date object. Here a plain scalar is null, true, false, a decimal number without
leading zeros, or else text; a mapping key is always text. A key given twice in one mapping is a fault, an alias too
(a clause is readable where it stands).
"""

import re
from collections.abc import Iterator
from typing import Any

import yaml

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "true": True, "false": False}
_INT = re.compile(r"-?(0|[1-9]\d*)\Z", re.ASCII)
_FLOAT = re.compile(r"-?(0|[1-9]\d*)\.\d+\Z", re.ASCII)

LineFault = tuple[int | None, str]


class Lined(dict[str, Any]):
    """A mapping as read: `line` is its own 1-based line, `lines` that of each key."""

    __slots__ = ("line", "lines")

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}


def documents(text: str) -> Iterator[tuple[Any, list[LineFault]]]:
    """Yield each non-empty document of `text` with its faults as (line, message).

    Text that is not YAML ends the iteration with a document None and one fault.
    """
    loader = _LOADER(text)
    try:
        while loader.check_node():
            faults: list[LineFault] = []
            value = _build(loader.get_node(), faults, {})
            if value is not None or faults:
                yield value, faults
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        yield None, [(mark.line + 1 if mark else None, f"is not YAML: {error.problem or error.context}")]
    except yaml.YAMLError as error:
        yield None, [(None, f"is not YAML: {' '.join(str(error).split())}")]
    finally:
        loader.dispose()


def _build(node: yaml.Node, faults: list[LineFault], built_before: dict[int, Any]) -> Any:
    line = node.start_mark.line + 1
    if id(node) in built_before:
        faults.append((line, "an alias stands for this value elsewhere; write the value out where it is used"))
        return built_before[id(node)]
    built_before[id(node)] = None  # what an alias inside its own anchor gets
    built_before[id(node)] = value = _value(node, line, faults, built_before)
    return value


def _value(node: yaml.Node, line: int, faults: list[LineFault], built_before: dict[int, Any]) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return [_build(item, faults, built_before) for item in node.value]
    built = Lined(line)
    for key_node, value_node in node.value:
        key_line = key_node.start_mark.line + 1
        key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else None
        if key is None or key in built:
            what = "a key is not text" if key is None else f"the key {key!r} stands twice in one mapping; keep one"
            faults.append((key_line, what))
            continue
        built.lines[key] = key_line
        built[key] = _build(value_node, faults, built_before)
    return built


def _scalar(node: yaml.ScalarNode) -> Any:
    text = str(node.value)
    if node.style in ("'", '"', "|", ">"):
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INT.match(text):
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    return text
