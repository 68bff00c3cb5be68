"""The language data that all facts share: cues, sections, abbreviations, numbers, units, named lists.

The files beside this module are data, authored in YAML (language.yaml, cues.yaml, quantities.yaml). The package reads
their compiled form, language.json, once and on first use; after an edit, `python -m cda.extraction.compile_language`
writes it anew (a test holds the two equal).
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import product
from pathlib import Path
from threading import Lock
from typing import Any

from cda.errors import CriterionError
from cda.extraction.phrases import Phrase, PhraseCompiler
from cda.patterns import compiled

COMPILED = Path(__file__).parent / "language.json"
_PARTS = re.compile(r"\(([^)]*)\)|([^\s(),]+|,)")
KINDS = frozenset(
    {
        "negation",
        "hedge",
        "plan",
        "hypothetical",
        "family",
        "payer",
        "past",
        "now",
        "doubt",
        "against",
        "nothing",
        "mistaken",
    }
)
DIRECTIONS = frozenset({"forward", "back", "both", "sentence"})
# what a scan makes of a capital, and the capital
SCANNED_CAPITALS = str.maketrans("01l|58", "OIIISB")


@dataclass(frozen=True, slots=True)
class Cue:
    """A cue as declared: what it does to the mentions it reaches, and how far it reaches (in words)."""

    kind: str
    direction: str
    reach: int
    stops: str
    crosses_commas: bool
    guard: int


Node = dict[str | None, Any]  # the next words of a cue; under None the cues that end here


class CueIndex:
    """The cues by their words; the phrases that begin with a word are spelled out when the word is first met."""

    def __init__(self, groups: Sequence[Mapping[str, Any]], stops: Collection[str]) -> None:
        self._phrases: dict[str, list[tuple[str, Cue]]] = {}
        self._nodes: dict[str, Node] = {}
        for group in groups:
            cue = _cue(group, stops)
            for phrase in group["words"]:
                for first in _first_words(phrase):
                    self._phrases.setdefault(first, []).append((phrase, cue))

    def starting(self, word: str) -> Node | None:
        """The cues that begin with `word`, as a tree of the words that follow."""
        if word not in self._phrases:
            return None
        if word not in self._nodes:
            root: Node = {}
            for phrase, cue in self._phrases[word]:
                for words in expand(phrase):
                    if words and words[0] == word:
                        node = root
                        for following in words[1:]:
                            node = node.setdefault(following, {})
                        node.setdefault(None, []).append(cue)
            self._nodes[word] = root
        return self._nodes[word]


def _cue(group: Mapping[str, Any], stops: Collection[str]) -> Cue:
    cue = Cue(
        kind=group["kind"],
        direction=group.get("direction", "forward"),
        reach=group.get("reach", 99),
        stops=group.get("stops", "sentence"),
        crosses_commas=group.get("crosses_commas", False),
        guard=group.get("guard", 0),
    )
    if cue.kind not in KINDS or cue.direction not in DIRECTIONS or cue.stops not in stops:
        raise CriterionError(f"cues.yaml: a group of kind {cue.kind!r} has an unknown kind, direction or stops")
    return cue


def _first_words(phrase: str) -> set[str]:
    """The words that a cue may begin with; leading groups that may be missing are looked through."""
    found: set[str] = set()
    for group, word in _PARTS.findall(phrase):
        choices = [c.split(maxsplit=1) for c in group.split("|")] if group else [[word]]
        found.update("(" if c[0] == "OPEN" else c[0] for c in choices if c)
        if all(choices):
            break
    return found


@dataclass(frozen=True, eq=False)
class Language:
    """Everything in the shared files, ready for look-up."""

    cues: "CueIndex"
    stops: Mapping[str, Mapping[str, Sequence[tuple[str, ...]]]]
    sections: Mapping[str, str | None]
    header: re.Pattern[str]
    own_case: re.Pattern[str]
    capitals: re.Pattern[str]
    capital_forms: Mapping[str, str]
    scanned_short: Mapping[str, str]
    never_end: frozenset[str]
    may_end: frozenset[str]
    openers: frozenset[str]
    answers: Mapping[str, re.Pattern[str]]
    words: Mapping[str, frozenset[str]]
    numbers: Mapping[str, float]
    quantities: Mapping[str, Any]
    lists: Mapping[str, Sequence[str]]
    irregular: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @cached_property
    def compiler(self) -> PhraseCompiler:
        """Compiles phrases with these named lists."""
        return PhraseCompiler(self.lists, self.irregular)

    @cached_property
    def lexical_rates(self) -> tuple[Phrase, ...]:
        """Words that are a daily rate in themselves (QID, before meals and at bedtime)."""
        return tuple(self.compiler.phrase(str(phrase)) for phrase in self.quantities["rates"])

    @cached_property
    def times_a_day(self) -> list[float | None]:
        """What each of the lexical rates says; None: no rate after all."""
        return [None if value is None else float(value) for value in self.quantities["rates"].values()]


_FIRST = Lock()


def shared_language() -> Language:
    """The language data shipped with this package: one object for all threads, since an index knows groups by it."""
    with _FIRST:
        language = _shipped()
        language.lexical_rates  # noqa: B018 - made here, once, whoever asks for it later
        return language


@lru_cache(maxsize=1)
def _shipped() -> Language:
    files = json.loads(COMPILED.read_text(encoding="utf-8"))
    general, cues = files["language"], files["cues"]
    sections = {
        name: (None if mood == "none" else mood) for mood, names in general["sections"].items() for name in names
    }
    names = "|".join(re.escape(n).replace(r"\ ", r"\s+") for n in sorted(sections, key=len, reverse=True))
    return Language(
        cues=CueIndex(cues["cues"], set(cues["stops"])),
        stops={name: _index(words) for name, words in cues["stops"].items()},
        sections=sections,
        header=compiled(rf"[\s#*=\-\d.)]*(?P<name>{names})[\s*=]*(?P<colon>:|-\s|\s-\s)?"),
        own_case=compiled(general["own_case"]),
        capitals=compiled(rf"(?<!\w)(?:{'|'.join(map(re.escape, general['capitals']))})(?!\w)"),
        capital_forms=general["capitals"],
        scanned_short={word.translate(SCANNED_CAPITALS): word for word in general["scanned_short"]},
        never_end=frozenset(general["abbreviations"]["never_end"]),
        may_end=frozenset(general["abbreviations"]["may_end"]),
        openers=frozenset(general["openers"]),
        answers={kind: compiled(pattern, re.X) for kind, pattern in general["answers"].items()},
        words={name: frozenset(words) for name, words in cues["words"].items()},
        numbers=files["quantities"]["numbers"],
        quantities=files["quantities"],
        lists=general["lists"],
        irregular=general["irregular"],
    )


def expand(phrase: str) -> list[tuple[str, ...]]:
    """The word sequences of a cue: `(a|b) c` gives (a, c) and (b, c); `(a|)` may be missing; OPEN is a bracket."""
    parts = _PARTS.findall(phrase)
    choices = [group.split("|") if group else [word] for group, word in parts]
    return [tuple("(" if w == "OPEN" else w for w in " ".join(choice).split()) for choice in product(*choices)]


def _index(phrases: Sequence[str]) -> dict[str, list[tuple[str, ...]]]:
    found: dict[str, list[tuple[str, ...]]] = {}
    for phrase in phrases:
        for words in expand(str(phrase)):
            found.setdefault(words[0], []).append(words)
    return {first: sorted(set(items), key=lambda w: (-len(w), w)) for first, items in found.items()}
