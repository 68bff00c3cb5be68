"""The mechanical checks of a drafted clause: whatever they find must be mended before a person can accept it.

Each check needs only the text, the criterion and the fact definitions. What they cannot see (that a criterion means
what its sentence means) is what the person reviews.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cda.contracts.facts import FactDefinition
from cda.criteria.criterion import validate_criterion
from cda.harness.sentences import clause_sentences
from cda.systems.coverage.draft_words import (
    Exceptional,
    codes_in,
    comparisons_in,
    counts_as,
    days_in,
    exceptions_in,
    numbers_in,
)
from corpus.codes import system_of

NONE = "none"
"""The node of an exception word that changes nothing; a person says why."""
_LEAST_WORDS = 3
_TEXTS = frozenset({"scope", "not", "frequency", "cost_share", "remark", "also", "named", "states", "precedence"})
_OPPOSITE = {">=": "<", "<": ">=", ">": "<=", "<=": ">"}


@dataclass(frozen=True, slots=True)
class ExceptionNode:
    """An exception word, as the clause's own words from there on, and the path of the node that holds it."""

    words: str
    node: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A clause that would be authored. `block_text` is the whole of what it is taken from; `known_codes` are those of
    its policy, `policy_text` the whole version."""

    quote: str
    codes: Sequence[str]
    criterion: Mapping[str, Any] | None
    exceptions: Sequence[ExceptionNode]
    block_text: str
    known_codes: frozenset[str]
    policy_text: str


def faults_of(candidate: Candidate, definitions: Mapping[str, FactDefinition]) -> list[str]:
    """Everything that is wrong with a clause by itself, one sentence each."""
    found = [*_quote_faults(candidate), *_code_faults(candidate)]
    criterion = candidate.criterion
    if criterion is None:
        return found
    if not candidate.codes:
        found.append("codes: a criterion decides nothing without codes; name those that the clause governs")
    broken = validate_criterion(criterion, definitions)
    if "patch" in criterion or "contradicts" in criterion:
        broken.append("criterion: a patch or a contradiction speaks of other clauses; author it by hand")
    if broken:
        return found + broken  # what hangs on the nodes can only be checked once they can be read
    return [*found, *_exception_faults(candidate, criterion), *_number_faults(candidate.quote, criterion, definitions)]


def overlaps(spans: Mapping[str, tuple[str, tuple[int, int]]]) -> Iterator[tuple[str, str]]:
    """(id, fault) of every clause whose span meets that of an earlier one. spans: id to (block, (start, end))."""
    ordered = sorted(spans.items(), key=lambda item: (item[1][0], item[1][1]))
    for (earlier, (block, (_, end))), (later, (other, (start, _))) in pairwise(ordered):
        if block == other and start < end:
            yield later, f"quote: overlaps that of {earlier}; a sentence is of one clause"


def span_of(quote: str, text: str) -> tuple[int, int] | None:
    """Where a verbatim quote stands, None when it does not stand there exactly once."""
    start = text.find(quote) if quote else -1
    if start < 0 or text.find(quote, start + 1) >= 0:
        return None
    return start, start + len(quote)


def _quote_faults(candidate: Candidate) -> Iterator[str]:
    span = span_of(candidate.quote, candidate.block_text)
    if span is None:
        often = candidate.block_text.count(candidate.quote) if candidate.quote else 0
        why = f"stands {often} times" if often else "is not verbatim"
        yield f"quote: {why} in its block; copy whole sentences as they are"
        return
    starts, ends = zip(*clause_sentences(candidate.block_text), strict=True)
    if span[0] not in starts or span[1] not in ends:
        yield "quote: begins or ends inside a sentence; take whole sentences, a list with what opens it"


def _code_faults(candidate: Candidate) -> Iterator[str]:
    named = candidate.known_codes | codes_in(candidate.policy_text)
    for code in candidate.codes:
        if system_of(code) not in ("CPT", "HCPCS"):
            yield f"codes: {code!r} is not a CPT or HCPCS code (5 characters, upper case, no modifier)"
        elif code not in named:
            yield f"codes: {code} is neither among the policy's codes nor in its text"
    if len(set(candidate.codes)) < len(candidate.codes):
        yield "codes: a code stands twice; name it once"


# ---- exception words ------------------------------------------------------------------------------------------------


def _exception_faults(candidate: Candidate, criterion: Mapping[str, Any]) -> Iterator[str]:
    """Every exception word has a node of a fitting kind, and no node serves two words of one kind."""
    left = list(candidate.exceptions)
    served: set[tuple[Exceptional, str]] = set()
    for place, kind in exceptions_in(candidate.quote):
        shown = " ".join(candidate.quote[place : place + 50].split())
        entry = next((one for one in left if candidate.quote.startswith(one.words, place) and one.words), None)
        if entry is None:
            yield f"exceptions: nothing holds {shown!r}; name the node of the criterion that does"
            continue
        left.remove(entry)
        yield from _entry_faults(entry, kind, criterion)
        if entry.node != NONE and (kind, entry.node) in served:
            yield f"exceptions: {entry.node} is given for two words; each {kind} has a node of its own"
        served.add((kind, entry.node))
    for entry in left:
        yield f"exceptions: {entry.words!r} does not begin with an exception word of the quote; take it out"
    if (
        "unless" in criterion
        and (Exceptional.UNLESS, "unless") not in served
        and ((Exceptional.EXCEPT, "unless") not in served and (Exceptional.NOT, "unless") not in served)
    ):
        yield "exceptions: the criterion has an unless that no word of the quote asks for"


def _entry_faults(entry: ExceptionNode, kind: Exceptional, criterion: Mapping[str, Any]) -> Iterator[str]:
    if len(entry.words.split()) < _LEAST_WORDS:
        yield f"exceptions: {entry.words!r} is too short to be told apart; give {_LEAST_WORDS} words or more"
    if entry.node == NONE:
        if kind is not Exceptional.NOT:
            yield f"exceptions: {kind} always has a node; {entry.words!r} has none"
        elif not entry.why.strip():
            yield f"exceptions: {entry.words!r} is said to change nothing; the reviewer says why, in `why`"
        return
    node = _at(entry.node, criterion)
    if node is _MISSING:
        yield f"exceptions: {entry.node} is no path of the criterion (as in covers_if.all.1)"
    elif not _fits(kind, entry.node, node):
        yield f"exceptions: {entry.node} does not hold {kind}: it is neither negative nor an exception"


_MISSING = object()


def _at(path: str, criterion: Any) -> Any:
    """What stands at a dotted path, `_MISSING` when nothing does."""
    node = criterion
    for step in path.split("."):
        if isinstance(node, Mapping) and step in node:
            node = node[step]
        elif isinstance(node, list | tuple) and step.isdecimal() and int(step) < len(node):
            node = node[int(step)]
        else:
            return _MISSING
    return node


def _fits(kind: Exceptional, path: str, node: Any) -> bool:
    last = path.rsplit(".", 1)[-1]
    if kind is Exceptional.ONLY_IF:
        return path.split(".", 1)[0] in ("covers_if", "requires", "population", "limit") or _negative(node)
    if path == "unless" or last == "not" or _negative(node):
        return True
    if kind is Exceptional.UNLESS:
        return isinstance(node, Mapping) and "any" in node
    return path in ("excludes_if", "decides", "population") or (kind is Exceptional.NOT and path == "beyond")


def _negative(node: Any) -> bool:
    if not isinstance(node, Mapping):
        return False
    return "not" in node or node.get("op") in ("!=", "not_in") or node.get("value") in (False, "absent")


# ---- numbers --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Threshold:
    value: float
    op: str
    turned: bool  # below a `not`, or in an exclusion: the text may say it the other way round


def _number_faults(
    quote: str, criterion: Mapping[str, Any], definitions: Mapping[str, FactDefinition]
) -> Iterator[str]:
    """Thresholds and numbers of the text are the same, and each comparison is the one that the text makes."""
    stated = numbers_in(quote)
    values = {number.value for number in stated}
    thresholds = tuple(_thresholds(criterion, turned="excludes_if" in criterion))
    for threshold in thresholds:
        if threshold.value not in values and not counts_as(threshold.value, quote):
            yield f"numbers: the criterion's {threshold.value:g} is not in the quote; write its own number and unit"
    held = {threshold.value for threshold in thresholds} | _told(criterion, definitions)
    for value in dict.fromkeys(number.value for number in stated if number.in_digits or number.value > 1):
        if value not in held:
            yield f"numbers: the quote's {value:g} is nowhere in the criterion; compare it, or say it in a text of it"
    yield from _comparison_faults(comparisons_in(quote), thresholds)
    days = set(_days(criterion))
    for day in sorted(days - days_in(quote)):
        yield f"numbers: the criterion's day {day} is not in the quote"


def _comparison_faults(asked: Mapping[float, frozenset[str]], thresholds: Sequence[_Threshold]) -> Iterator[str]:
    for threshold in thresholds:
        ops = asked.get(threshold.value, frozenset())
        allowed = ops | {_OPPOSITE[op] for op in ops if threshold.turned}
        if allowed and threshold.op and threshold.op not in allowed:
            yield f"numbers: the text says {' or '.join(sorted(ops))} {threshold.value:g}, the criterion {threshold.op}"


def _thresholds(node: Any, *, turned: bool) -> Iterator[_Threshold]:
    """Every number that the criterion compares with."""
    if isinstance(node, list | tuple):
        for item in node:
            yield from _thresholds(item, turned=turned)
    if not isinstance(node, Mapping):
        return
    if "op" in node:
        if _is_number(node["value"]):
            yield _Threshold(float(node["value"]), str(node["op"]), turned)
        return
    if "at_least" in node:
        yield _Threshold(float(node["at_least"]), "", turned)
    for key, value in node.items():
        if key not in _TEXTS or isinstance(value, Mapping):
            yield from _thresholds(value, turned=turned or key in ("not", "unless", "if"))


def _told(node: Any, definitions: Mapping[str, FactDefinition]) -> set[float]:
    """Numbers that the criterion tells in words: in its remarks, its values, the names and labels of its facts."""
    if isinstance(node, str):
        return {number.value for number in numbers_in(node.replace("_", " "))}
    if isinstance(node, list | tuple):
        return {value for item in node for value in _told(item, definitions)}
    if not isinstance(node, Mapping):
        return set()
    found = {value for item in node.values() for value in _told(item, definitions)}
    name = node.get("fact", node.get("elapsed_since"))
    definition = definitions.get(str(name))
    return found | (_told([definition.label, definition.remark], definitions) if definition else set())


def _days(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        if "op" in node and isinstance(node["value"], str):
            yield from days_in(node["value"])
        for value in node.values():
            yield from _days(value)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from _days(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
