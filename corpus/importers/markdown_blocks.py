"""The body of a Markdown bulletin as clause blocks: a paragraph, a list with its lead-in, or a table, each whole.

Only what a policy needs is read: headings (# and underlined), paragraphs, lists, tables, quotes, and fenced
`criterion` blocks. Inline mark-up stays as it is written, since a clause is quoted verbatim.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from corpus.importers.text import continues, squeeze
from corpus.yaml_lines import documents

Report = Callable[[int | None, str], None]

_HEADING = re.compile(r"#{1,6}\s+(?P<title>.*?)\s*#*$")
_UNDERLINE = re.compile(r"(=+|-+)\s*$")
_RULE = re.compile(r"([-*_])(\s*\1){2,}\s*$")
_FENCE = re.compile(r"(?P<mark>`{3,}|~{3,})\s*(?P<info>.*?)\s*$")
_COMMENT = re.compile(r"<!--.*?(-->|\Z)", re.DOTALL)
_ATTRIBUTES = re.compile(r"\s*\{(?P<inside>[^{}\n]*)\}\s*$")
_ATTRIBUTE = re.compile(r"#(?P<id>[A-Za-z][A-Za-z0-9_-]{0,31})|codes=(?P<codes>[A-Za-z0-9,]+)")
_LIST = re.compile(r"\s*([-*+]|\d{1,3}[.)])\s")


@dataclass(slots=True)
class Block:
    """One clause to be. `line` is where it starts in the file; `clause_id` and `codes` come from `{#C2 codes=A,B}`."""

    line: int
    section: str
    text: str
    clause_id: str | None = None
    codes: tuple[str, ...] = ()
    criterion: Any = None
    has_criterion: bool = False

    @property
    def complete(self) -> bool:
        """A clause with an id, codes or a criterion of its own takes no further text."""
        return self.has_criterion or self.clause_id is not None or bool(self.codes)


def blocks(body: str, first_line: int, fault: Report, warn: Report) -> list[Block]:
    """The clause blocks of `body`, whose first line is line `first_line` of the file."""
    reader = _Reader(fault, warn)
    for comment in _COMMENT.finditer(body):
        line = first_line + body.count("\n", 0, comment.start())
        warn(line, "an HTML comment is not part of the policy; left out")
    lines = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), body).split("\n")
    number = 0
    while number < len(lines):
        fence = _FENCE.match(lines[number])
        if fence is None:
            reader.line(first_line + number, lines[number])
            number += 1
            continue
        end = next((at for at in range(number + 1, len(lines)) if lines[at].strip() == fence["mark"]), len(lines))
        if end == len(lines):
            fault(first_line + number, "a fenced block is not closed")
        reader.fence(first_line + number, fence["info"], lines[number + 1 : end])
        number = end + 1
    reader.close()
    return reader.found


class _Reader:
    """Collects lines into paragraphs and joins what must not stand apart."""

    def __init__(self, fault: Report, warn: Report) -> None:
        self.found: list[Block] = []
        self._fault = fault
        self._warn = warn
        self._section = ""
        self._pending: list[str] = []
        self._start = 0

    def line(self, number: int, line: str) -> None:
        """Take one line outside fences."""
        heading = _HEADING.match(line)
        if heading is not None:
            self.close()
            self._section = squeeze(heading["title"])
        elif len(self._pending) == 1 and _UNDERLINE.match(line) and not _LIST.match(self._pending[0]):
            self._section = squeeze(self._pending.pop())
        elif not line.strip() or _RULE.match(line):
            self.close()
        else:
            if not self._pending:
                self._start = number
            self._pending.append(re.sub(r"^\s*>\s?", "", line).rstrip())

    def close(self) -> None:
        """End the paragraph: a clause of its own, or a part of the one above when it leans on it."""
        if not self._pending:
            return
        text, self._pending = "\n".join(self._pending), []
        last = self.found[-1] if self.found else None
        leans = last is not None and last.section == self._section and continues(last.text, text)
        if last is not None and leans and not last.complete:
            block, last.text = last, f"{last.text}\n{text}"
        else:
            block = Block(self._start, self._section, text)
            self.found.append(block)
            if leans:
                self._warn(self._start, "reads like the rest of the clause above, which its id or criterion closes")
        self._attributes(block)

    def _attributes(self, block: Block) -> None:
        """Take `{#C2 codes=A9276,95249}` off the end of the block."""
        found = _ATTRIBUTES.search(block.text)
        if found is None:
            return
        block.text = block.text[: found.start()]
        tokens = found["inside"].split()
        read = [_ATTRIBUTE.fullmatch(token) for token in tokens]
        if not tokens or not all(read):
            self._fault(
                block.line, f"{found[0].strip()} is not an attribute; write {{#C2}} or {{#C2 codes=A9276,95249}}"
            )
            return
        for token in filter(None, read):
            block.clause_id = token["id"] or block.clause_id
            block.codes = tuple(filter(None, (token["codes"] or "").split(","))) or block.codes

    def fence(self, line: int, info: str, inside: list[str]) -> None:
        """Take a fenced block: the criterion of the clause above."""
        self.close()
        words = info.split()
        if words[:1] != ["criterion"] or len(words) > 2 or words[1:] not in ([], ["yaml"]):
            self._fault(line, f"a fenced block must be ```criterion; {info or 'without a name'!r} is not read")
            return
        clause = self.found[-1] if self.found else None
        if clause is None or clause.section != self._section:
            self._fault(line, "a criterion must stand below the clause it belongs to, under the same heading")
            return
        if clause.has_criterion:
            self._fault(line, f"the clause of line {clause.line} has a criterion already")
            return
        clause.has_criterion = True
        clause.criterion = self._criterion(line, inside)

    def _criterion(self, line: int, inside: list[str]) -> Any:
        try:
            read = list(documents("\n" * line + "\n".join(inside)))
        except RecursionError:
            read = [(None, [(line, "is nested without end")])]
        faults = [fault for _, found in read for fault in found]
        for at, message in faults:  # YAML that ends too early is reported beyond its end
            self._fault(min(at or line, line + len(inside)), f"criterion: {message}")
        if not faults and (len(read) != 1 or not isinstance(read[0][0], dict)):
            self._fault(line, "criterion: must be one mapping, as `covers_if: {...}`")
        return _plain(read[0][0]) if read and not faults else None


def _plain(value: Any) -> Any:
    """The value without the reader's line numbers."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value
