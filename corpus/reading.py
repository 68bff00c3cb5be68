"""Reads authored files from folders, with every fault of form and the line it stands on.

A fault never hides another one: the part that is wrong (a clause, a version, a code) is set aside, its siblings are
read on, and the ids it declares stay known, so that what refers to them is not reported as well.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from corpus import BUILTIN
from corpus.authored import (
    AuthoredClause,
    AuthoredCodes,
    AuthoredPayer,
    AuthoredPlan,
    AuthoredPolicy,
    AuthoredRider,
    AuthoredVersion,
    Part,
)
from corpus.errors import CorpusError, Fault
from corpus.yaml_lines import Lined, documents

DATA = Path(__file__).parent / "data"
KINDS = ("policy", "rider", "payer", "codes", "facts")

_MODELS = (AuthoredPolicy, AuthoredRider, AuthoredPayer, AuthoredCodes, AuthoredVersion, AuthoredClause, AuthoredPlan)
_KEYS = sorted({name for model in _MODELS for name in model.model_fields})

T = TypeVar("T")
P = TypeVar("P", bound=Part)


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """One authored thing, the file it stands in (as shown to people) and the name of its corpus. `partial`: a part of
    it was set aside for a fault, so that what is missing from it proves nothing."""

    value: T
    file: str
    corpus: str
    partial: bool = False


@dataclass(slots=True)
class Authored:
    """Everything read. `declared` holds the ids of parts that were set aside."""

    policies: list[Entry[AuthoredPolicy]] = field(default_factory=list)
    riders: list[Entry[AuthoredRider]] = field(default_factory=list)
    payers: list[Entry[AuthoredPayer]] = field(default_factory=list)
    codes: list[Entry[AuthoredCodes]] = field(default_factory=list)
    facts: list[tuple[str, Entry[Lined]]] = field(default_factory=list)
    corpora: list[str] = field(default_factory=list)
    declared: set[str] = field(default_factory=set)
    faults: list[Fault] = field(default_factory=list)


def read(sources: Sequence[str | Path]) -> Authored:
    """Read every .yaml file under `sources`: folders, single files, or the word "builtin" for all shipped data.

    The shipped fact definitions are always read. A corpus is named after its folder. Raises CorpusError when a source
    does not exist or holds no authored file.
    """
    authored = Authored()
    for path, shown, corpus in _files(sources):
        if corpus and corpus not in authored.corpora:
            authored.corpora.append(corpus)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = (
                "is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else f"cannot be read ({error.strerror})"
            )
            authored.faults.append(Fault(shown, None, "-", reason))
            continue
        _Reader(authored, shown, corpus).read(text)
    return authored


def _files(sources: Sequence[str | Path]) -> Iterator[tuple[Path, str, str]]:
    """(file, how it is shown, corpus name) in a stable order; the facts' own folder belongs to no corpus."""
    roots: dict[Path, str] = {DATA / "facts": ""}
    for source in sources:
        if source == BUILTIN:
            roots |= {
                folder: folder.name for folder in sorted(DATA.iterdir()) if folder.name not in ("facts", "__pycache__")
            }
            continue
        path = Path(source)
        if not path.exists():
            raise CorpusError(f"no authored corpus at {path}: give a folder, a .yaml file, or the word {BUILTIN}")
        roots[path] = path.resolve().stem if path.is_file() else path.resolve().name
    for root, corpus in roots.items():
        found = [root] if root.is_file() else sorted([*root.rglob("*.yaml"), *root.rglob("*.yml")])
        if not found and corpus:
            raise CorpusError(f"no .yaml file under {root}: an authored corpus is one file a policy or rider")
        for file in found:
            shown = (
                f"corpus/{file.relative_to(DATA.parent).as_posix()}" if file.is_relative_to(DATA) else file.as_posix()
            )
            yield file, shown, corpus


class _Reader:
    """Reads the documents of one file into an `Authored`."""

    def __init__(self, authored: Authored, file: str, corpus: str) -> None:
        self._all, self._file, self._corpus = authored, file, corpus

    def read(self, text: str) -> None:
        for value, faults in documents(text):
            for line, message in faults:
                self._fault(line, "-", message)
            if isinstance(value, Lined):
                for kind in value:
                    self._top(kind, value)
            elif value is not None:
                self._fault(1, "-", f"a document is a mapping with one of the keys {', '.join(KINDS)}")

    def _top(self, kind: str, document: Lined) -> None:
        value, line = document[kind], document.lines[kind]
        if kind not in KINDS:
            self._fault(line, kind, f"unknown key {kind!r} at the top of a document; known: {', '.join(KINDS)}")
        elif not isinstance(value, Lined):
            self._fault(line, kind, f"{kind} holds a mapping")
        elif kind == "policy":
            self._keep(AuthoredPolicy, value, self._all.policies)
        elif kind == "rider":
            self._keep(AuthoredRider, value, self._all.riders)
        elif kind == "payer":
            self._keep(AuthoredPayer, value, self._all.payers)
        elif kind == "codes":
            self._keep(AuthoredCodes, value, self._all.codes)
        else:
            self._facts(value)

    def _facts(self, facts: Lined) -> None:
        for name, definition in facts.items():
            if isinstance(definition, Lined):
                self._all.facts.append((name, Entry(definition, self._file, self._corpus)))
            else:
                self._fault(facts.lines[name], name, "a fact definition is a mapping with at least type and label")

    def _keep(self, model: type[P], raw: Lined, kept: list[Entry[P]]) -> None:
        """Validate; at each fault set the smallest enclosing list item aside and try again without it."""
        partial = False
        while True:
            try:
                kept.append(Entry(model.model_validate(raw), self._file, self._corpus, partial))
                return
            except ValidationError as error:
                details = error.errors(include_url=False, include_context=False)
            # A list that is empty only because its items are at fault is not one fault more.
            own = [d for d in details if d["type"] != "too_short" or (not partial and _at(raw, d["loc"]) == [])]
            for detail in own:
                line, id_ = _place(raw, detail["loc"])
                self._fault(line, id_, _message(detail))
            if not partial:
                _declare(raw, "", self._all.declared)
            partial = True
            if not _set_aside(raw, own):
                return

    def _fault(self, line: int | None, id_: str, message: str) -> None:
        self._all.faults.append(Fault(self._file, line, id_, message))


Loc = tuple[str | int, ...]


def _place(raw: Lined, loc: Loc) -> tuple[int, str]:
    """The line of what `loc` points at, as near as lines are known, and the id of the part around it."""
    value: Any = raw
    line, id_ = raw.line, _own_id(raw, "")
    for step in loc:
        if isinstance(value, Lined):
            line = value.lines.get(str(step), value.line)
        value = _step(value, step)
        if isinstance(value, Lined) and isinstance(step, int):
            line, id_ = value.line, _own_id(value, id_)
    return line, id_ or "-"


def _own_id(part: Lined, around: str) -> str:
    for key in ("clause_id", "policy_id", "rider_id", "plan_id", "payer_id"):
        if key in part:
            return str(part[key])
    name = part.get("version", part.get("id"))
    return around if name is None else f"{around}.{name}"


def _declare(value: Any, around: str, declared: set[str]) -> None:
    """Collect the id of every part in `value`."""
    if isinstance(value, Lined):
        around = _own_id(value, around)
        declared.add(around)
        for inner in value.values():
            _declare(inner, around, declared)
    elif isinstance(value, list):
        for inner in value:
            _declare(inner, around, declared)


def _at(raw: Lined, loc: Loc) -> Any:
    value: Any = raw
    for step in loc:
        value = _step(value, step)
    return value


def _step(value: Any, step: str | int) -> Any:
    try:
        return value[step]
    except (KeyError, IndexError, TypeError):
        return None


def _set_aside(raw: Lined, details: list[ErrorDetails]) -> bool:
    """Remove what is at fault: an unknown key alone, else the innermost list item around it. False: there is none."""
    cuts: set[Loc] = set()
    if not details:
        return False
    for detail in details:
        loc = detail["loc"]
        if detail["type"] == "extra_forbidden":
            cuts.add(loc)
            continue
        depth = next((i for i in range(len(loc), 0, -1) if isinstance(loc[i - 1], int)), 0)
        if depth == 0:
            return False
        cuts.add(loc[:depth])
    outer = [cut for cut in cuts if not any(cut[:length] in cuts for length in range(1, len(cut)))]
    # The last of a list first, so that removing one does not move the next.
    for cut in sorted(
        outer, key=lambda cut: [(str(step), 0) if isinstance(step, str) else ("", step) for step in cut], reverse=True
    ):
        holder: Any = raw
        for step in cut[:-1]:
            holder = holder[step]
        del holder[cut[-1]]
    return True


def _message(detail: ErrorDetails) -> str:
    key = next((str(step) for step in reversed(detail["loc"]) if isinstance(step, str)), "")
    match detail["type"]:
        case "extra_forbidden":
            near = get_close_matches(key, _KEYS, n=1)
            return f"unknown key {key!r}; {f'did you mean {near[0]!r}?' if near else 'take it out'}"
        case "missing":
            return f"{key!r} is missing; write it"
        case "too_short":
            return f"{key!r} is empty; write at least one"
        case "value_error":
            return f"{key}: {detail['msg'].removeprefix('Value error, ')}"
        case _:
            return f"{key}: {detail['msg'][0].lower()}{detail['msg'][1:]}"
