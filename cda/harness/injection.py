"""Spans that address the reader instead of describing the patient: found, reported, and never read as evidence.

The words stay in the text, so that offsets and the record stay true; `fenced` gives a reading copy, equally long, with
every flagged character blank. Characters that a person cannot see are taken out before anything else (`visible`).

Finding is telemetry, not the defence: whatever a narrative says, it can change facts only, never date, plan, clause or
gate. So a span is wide (the whole sentence or bracket), and where a flagged sentence also states facts the run goes to
REVIEW instead of silently losing them (see `loop`). Ordinary requests ("please approve this request", "we ask for an
exception to step therapy") are no flags.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from cda.contracts.decision import InjectionFlag
from cda.harness.injection_patterns import (
    BRACKETS,
    DIRECTIVE,
    DIRECTIVE_LINE,
    HIDDEN,
    LONG_RUN,
    MIXED_SCRIPT,
    PAIRED,
    SENTENCES,
    SOFT,
)
from cda.harness.patterns import bounded
from cda.harness.sentences import Span, chart_sentences, lowered

FieldName = Literal["narrative", "question"]
Found = tuple[int, int, str]
# A bracket that is only a label ("[SYSTEM DIRECTIVE]") speaks of what follows it.
_LABEL_WORDS = 4
_LONGEST_BRACKET = 2000
_CLOSING_TAG = re.compile(r"</[A-Za-z_]{1,32}>")
_TRIGGERS = frozenset(word for rule in SENTENCES for word in rule.triggers)
_CAPITAL_TRIGGERS = frozenset(word for word in _TRIGGERS if word != word.lower())  # of rules that read capitals


def visible(text: str) -> tuple[str, int | None]:
    """The text without zero-width, bidirectional, tag and control characters, and where the first one stood.

    Soft hyphens and byte-order marks go too, but are ordinary litter of documents and are not reported.
    """
    text = SOFT.sub("", text)
    first = HIDDEN.search(text)
    return (HIDDEN.sub("", text), first.start()) if first else (text, None)


def find_injections(text: str, field: FieldName) -> tuple[InjectionFlag, ...]:
    """All flagged spans of one field, merged where they overlap, in order; offsets are into `text`."""
    set_out = [*_brackets(text), *_blocks(text), *_lines(text)]
    # What stands around a set-out message is the chart again, so the sentences are searched without it.
    found = sorted({*set_out, *_in_sentences(_blank(text, ((start, end) for start, end, _ in set_out)))})
    merged: list[Found] = []
    for start, end, kind in found:
        if merged and start < merged[-1][1]:
            left, right, first = merged[-1]
            merged[-1] = (left, max(right, end), first)
        else:
            merged.append((start, end, kind))
    return tuple(InjectionFlag(kind=kind, field=field, start=start, end=end) for start, end, kind in merged)


def fenced(text: str, flags: Iterable[InjectionFlag], field: FieldName) -> str:
    """The copy that is read: as long as `text`, every flagged character blank (line breaks stay)."""
    return _blank(text, ((flag.start, flag.end) for flag in flags if flag.field == field))


def _blank(text: str, spans: Iterable[Span]) -> str:
    pieces: list[str] = []
    position = 0
    for start, end in sorted(spans):
        if end > position:
            left = max(start, position)
            pieces += [text[position:left], re.sub(r"[^\n]", " ", text[left:end])]
            position = end
    return "".join([*pieces, text[position:]])


def _brackets(text: str) -> Iterator[Found]:
    position = 0
    while found := DIRECTIVE.search(text, position):
        end = _closing(text, found.start())
        inside = text[found.start() + 1 : end - 1]
        if len(inside.split()) <= _LABEL_WORDS and not _says_it_all(inside):
            end = _closed_or(_sentence_end(text, end), text, end)
        yield found.start(), end, "directive_block"
        position = max(end, found.end())


def _says_it_all(inside: str) -> bool:
    """True for a template in doubled brackets with its own words ("{{decision: covered}}"): it labels nothing after it,
    and the sentence that follows is the chart's."""
    return inside[:1] in BRACKETS and ": " in inside


def _closed_or(end: int, text: str, start: int) -> int:
    """Where a closing tag ends before `end`, since a label in markup rules no further; else `end`."""
    tag = _CLOSING_TAG.search(text, start, end)
    return tag.end() if tag else end


def _closing(text: str, start: int) -> int:
    """One past the bracket that closes the one at `start`; without one, the end of its line."""
    opener, closer = text[start], BRACKETS[text[start]]
    depth = 0
    for position in range(start, min(len(text), start + _LONGEST_BRACKET)):
        depth += (text[position] == opener) - (text[position] == closer)
        if depth == 0:
            return position + 1
    return _line_end(text, start)


def _sentence_end(text: str, position: int) -> int:
    rest = text[position : position + _LONGEST_BRACKET]
    lead = len(rest) - len(rest.lstrip(" \t:-\n"))
    sentences = chart_sentences(rest[lead:])
    return position + lead + sentences[0][1] if sentences else position


def _blocks(text: str) -> Iterator[Found]:
    low = text.lower()
    blob = LONG_RUN.search(text) is not None
    for kind, needed, opener, closer in PAIRED:
        position = 0 if (needed in low if needed else blob) else len(text)
        while found := bounded(opener, re.IGNORECASE).search(text, position):
            closing = bounded(closer, re.IGNORECASE).search(text, found.end())
            end = closing.end() if closing else _line_end(text, found.end())
            yield found.start(), end, kind
            position = max(end, found.end())


def _lines(text: str) -> Iterator[Found]:
    position = 0
    while found := DIRECTIVE_LINE.search(text, position):
        # On a line of its own the label rules the line; inside a paragraph it rules the sentence after it.
        line = _line_end(text, found.end())
        alone = line < len(text) and (found.start() == 0 or text[found.start() - 1] == "\n")
        end = line if alone else _sentence_end(text, found.end())
        yield found.start(), end, "directive_block"
        position = max(end, found.end())


def _line_end(text: str, position: int) -> int:
    line = text.find("\n", position)
    return len(text) if line < 0 else line


def _in_sentences(text: str) -> Iterator[Found]:
    low = lowered(text)
    # Many rules share a few triggers, and an ordinary text holds none of most rules'.
    present = {word for word in _TRIGGERS if word in low} | {word for word in _CAPITAL_TRIGGERS if word in text}
    rules = [rule for rule in SENTENCES if not present.isdisjoint(rule.triggers)]
    hits = [(start, end, rule.kind) for rule in rules for start, end in rule.hits(text, low)]
    if not text.isascii():
        yield from ((found.start(), found.end(), "mixed_script") for found in MIXED_SCRIPT.finditer(text))
    if not hits:
        return
    spans = chart_sentences(text)
    starts = [start for start, _ in spans]
    fenced_by: dict[int, str] = {}
    for start, end, kind in sorted(hits):
        first, last = (max(0, bisect_right(starts, place) - 1) for place in (start, end - 1))
        fenced_by |= {index: fenced_by.get(index, kind) for index in range(first, last + 1)}
    for index in [index for index in fenced_by if index + 2 in fenced_by]:
        # One sentence between two injected ones is injected too.
        fenced_by.setdefault(index + 1, fenced_by[index])
    for index, kind in sorted(fenced_by.items()):
        yield *spans[index], kind


def sentence_flags(flags: Iterable[InjectionFlag]) -> tuple[InjectionFlag, ...]:
    """The flags of running text: the ones whose words may hold facts beside the injected ones."""
    return tuple(flag for flag in flags if flag.kind not in ("directive_block", "delimiter", "encoded_blob"))


FLAG_KINDS: Mapping[str, str] = {
    "override_instruction": "tells the reader to set rules or instructions aside",
    "role_reassignment": "gives the reader another role",
    "forced_outcome": "dictates the answer",
    "authority_claim": "claims an authority to dictate it",
    "fabricate_citation": "asks for an invented citation",
    "prompt_leak": "asks for the reader's own instructions",
    "directive_block": "is set out as a message to the system",
    "delimiter": "imitates the markup of a conversation",
    "encoded_blob": "is encoded text",
    "hidden_characters": "was written in characters that are not shown",
    "mixed_script": "mixes look-alike letters of two alphabets in one word",
}
