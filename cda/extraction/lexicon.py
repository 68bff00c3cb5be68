"""A fact's lexicon, compiled: which phrases say which value, and how a quantity is tied to the fact.

The keys are described in docs/reference/fact-definitions.md. An unknown key or value is a CriterionError.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from cda.contracts.facts import QUANTITIES, FactDefinition, FactType, Interval
from cda.errors import CriterionError
from cda.extraction.gates import Gate
from cda.extraction.phrases import Phrase, PhraseCompiler
from cda.patterns import compiled

KEYS = frozenset(
    {
        *("time", "accepts", "hedge", "against", "says", "own", "fixed", "noted", "mask", "group"),
        *("anchors", "barriers", "forms", "ellipsis", "takes", "reach", "plausible", "combine", "convert", "per_days"),
        *("measured", "dated", "touch", "unsettled", "pairs", "rivals", "ellipsis_reach"),
    }
)
SLOTS = {
    "n": ("number",), "r": ("rate",), "d": ("duration", "gestation"), "p": ("percent", "number"),
    "a": ("age", "number"), "y": ("age",), "w": ("gestation",),
    "t": ("times", "number"), "m": ("mmol",), "ago": ("duration",), "date": ("date",),
}  # fmt: skip
_SLOT = re.compile(r"\{(\w+)\}")
BLOCKING_KINDS = frozenset({"family", "payer", "plan", "hypothetical"})
_DEFAULT_TAKES = {
    FactType.RATE: ("rate",), FactType.DURATION: ("duration",), FactType.MEASURE: ("percent", "number"),
    FactType.COUNT: ("number",),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Saying:
    """A phrase that says a value; `own` ones carry their own polarity and certainty."""

    value: bool | str | Interval
    phrase: Phrase
    own: bool


@dataclass(frozen=True, slots=True)
class Form:
    """A quantity between two pieces of wording; `gives`/`op`/`bound` turn a measured value into a bool or class."""

    before: Phrase | None
    after: Phrase | None
    slot: str
    kinds: tuple[str, ...]
    op: str = ""
    bound: float = 0
    least: float = -inf
    gives: bool | str | None = None

    @property
    def gate(self) -> Gate:
        """The literals that a sentence must hold for both pieces."""
        return tuple(part for piece in (self.before, self.after) if piece for part in piece.gate)

    @property
    def opening(self) -> None:
        """A form is tried at a quantity."""

    def spoken(self) -> frozenset[str]:
        """The words of the form itself."""
        return frozenset[str]().union(*(p.spoken for p in (self.before, self.after) if p))


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Everything the extractor knows of one fact."""

    definition: FactDefinition
    time: str
    accepts: frozenset[str]
    hedge: str
    against: str
    sayings: tuple[Saying, ...]
    said: tuple[Phrase, ...]
    noted: tuple[Phrase, ...]
    noted_sayings: tuple[Saying, ...]
    noted_said: tuple[Phrase, ...]
    masks: tuple[Phrase, ...]
    group: tuple[Phrase, ...]
    touch: tuple[Phrase, ...]
    unsettled: tuple[Phrase, ...]
    anchors: tuple[Phrase, ...]
    barriers: tuple[Phrase, ...]
    rivals: tuple[Phrase, ...]
    ellipsis_reach: int
    forms: tuple[Form, ...]
    ellipsis: tuple[Form, ...]
    measured: tuple[Form, ...]
    takes: tuple[str, ...]
    reach: int
    plausible: tuple[float, float]
    combine: str
    convert: Mapping[str, tuple[float, float]]
    dated: Mapping[str, Any]
    dated_anchors: tuple[Phrase, ...]
    dated_denials: tuple[Phrase, ...]
    per_days: int
    pairs: Mapping[str, re.Pattern[str]]

    @property
    def is_quantity(self) -> bool:
        """True for rates, durations, measures and counts."""
        return self.definition.type in QUANTITIES

    @property
    def groups(self) -> tuple[tuple[Phrase, ...] | tuple[Form, ...], ...]:
        """Its groups of phrases and forms, each of which is looked for as a whole."""
        return (
            *(self.said, self.noted, self.noted_said, self.masks, self.group, self.touch, self.unsettled),
            *(self.anchors, self.barriers, self.rivals, self.dated_anchors, self.dated_denials),
            *(self.forms, self.ellipsis, self.measured),
        )

    def phrases(self) -> Iterator[Phrase]:
        """Every phrase, those of the forms among them."""
        for item in dict.fromkeys(item for group in self.groups for item in group):
            if isinstance(item, Form):
                yield from (part for part in (item.before, item.after) if part)
            else:
                yield item


def compile_lexicon(definition: FactDefinition, compiler: PhraseCompiler) -> Lexicon:
    """Compile the lexicon of one definition. Raises CriterionError naming the fact and the key that is off."""
    raw, name = definition.lexicon, definition.name
    if unknown := sorted(set(raw) - KEYS):
        raise CriterionError(f"fact {name}: lexicon key {unknown[0]!r} is unknown; keys are {', '.join(sorted(KEYS))}")
    try:
        return _compile(definition, raw, compiler)
    except (ValueError, KeyError, TypeError) as fault:
        raise CriterionError(f"fact {name}: lexicon: {fault}") from None


def _compile(definition: FactDefinition, raw: Mapping[str, Any], compiler: PhraseCompiler) -> Lexicon:
    def phrases(key: str, within: Mapping[str, Any] = raw) -> tuple[Phrase, ...]:
        return tuple(compiler.phrase(str(p)) for p in within.get(key, ()))

    sayings = tuple(_sayings(definition, raw, compiler))
    noted_sayings = tuple(_sayings(definition, raw.get("noted", {}), compiler))
    takes = tuple(raw.get("takes", _DEFAULT_TAKES.get(definition.type, ())))
    takes += ("gestation",) if "duration" in takes else ()
    low, high = raw.get("plausible", (-inf, inf))
    convert = {
        kind: (float(rule["times"]), float(rule.get("plus", 0))) for kind, rule in raw.get("convert", {}).items()
    }
    dated = raw.get("dated", {})
    return Lexicon(
        definition=definition,
        time=_one_of("time", raw.get("time", "current"), ("current", "ever", "chronic")),
        accepts=frozenset(
            _one_of("accepts", k, tuple(BLOCKING_KINDS | {"past", "against", "hedge"})) for k in raw.get("accepts", ())
        ),
        hedge=_one_of("hedge", raw.get("hedge", "unknown"), ("unknown", "suspected", "holds")),
        against=_one_of("against", raw.get("against", "doubt"), ("doubt", "false", "ignore")),
        sayings=sayings,
        said=tuple(s.phrase for s in sayings),
        noted=phrases("where", raw.get("noted", {})),
        noted_sayings=noted_sayings,
        noted_said=tuple(s.phrase for s in (*sayings, *noted_sayings)),
        masks=phrases("mask"),
        group=phrases("group"),
        touch=phrases("touch"),
        unsettled=phrases("unsettled"),
        anchors=phrases("anchors"),
        barriers=phrases("barriers"),
        rivals=phrases("rivals"),
        ellipsis_reach=int(raw.get("ellipsis_reach", 1)),
        forms=tuple(_form(text, compiler, takes) for text in raw.get("forms", ())),
        ellipsis=tuple(_form(text, compiler, takes) for text in raw.get("ellipsis", ())),
        measured=tuple(_measured(raw.get("measured", ()), compiler, takes)),
        takes=takes,
        reach=int(raw.get("reach", 60)),
        plausible=(float(low), float(high)),
        combine=_one_of(
            "combine", raw.get("combine", "agree"), ("agree", "every", "longest", "course", "latest", "newest")
        ),
        convert=convert,
        dated=dated,
        dated_anchors=phrases("anchors", dated),
        dated_denials=tuple(s.phrase for s in sayings if s.own and dated and s.value == dated.get("outside")),
        per_days=int(raw.get("per_days", 0)),
        pairs={name: compiled(raw["pairs"][name], re.X) for name in ("earlier", "present", "veto")}
        if "pairs" in raw
        else {},
    )


def _one_of(key: str, value: str, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise ValueError(f"{key} is one of {', '.join(sorted(allowed))}")
    return value


def _sayings(definition: FactDefinition, raw: Mapping[str, Any], compiler: PhraseCompiler) -> list[Saying]:
    found = []
    for key, own in (("says", False), ("own", True), ("fixed", True)):
        for value, texts in raw.get(key, {}).items():
            found += [Saying(_value(definition, value), compiler.phrase(str(text)), own) for text in texts]
    return found


def _value(definition: FactDefinition, raw: Any) -> bool | str | Interval:
    if definition.type in QUANTITIES:
        low, _, high = str(raw).partition("..")
        return Interval(float(low), float(high or inf)) if _ else Interval.exactly(float(low))
    if definition.type is FactType.BOOL:
        match raw:
            case True | "true":
                return True
            case False | "false":
                return False
        raise ValueError("a bool's phrases stand under true and false")
    if raw not in definition.values:
        raise ValueError(f"{raw!r} is not among the values")
    return str(raw)


def _form(text: str, compiler: PhraseCompiler, takes: tuple[str, ...]) -> Form:
    parts = _SLOT.split(str(text))
    if len(parts) != 3:
        raise ValueError(f"form {text!r} has exactly one slot")
    before, slot, after = parts[0].strip(), parts[1], parts[2].strip()
    kinds = takes if slot == "q" else SLOTS[slot]
    return Form(compiler.before(before) if before else None, compiler.after(after) if after else None, slot, kinds)


def _measured(rules: Sequence[Mapping[str, Any]], compiler: PhraseCompiler, takes: tuple[str, ...]) -> list[Form]:
    found = []
    for rule in rules:
        for text in rule["forms"]:
            form = _form(text, compiler, takes)
            op = _one_of("op", rule["op"], ("<", "<=", ">", ">=", "any"))
            found.append(
                replace(
                    form,
                    op=op,
                    bound=float(rule.get("value", 0)),
                    least=float(rule.get("least", -inf)),
                    gives=rule["gives"],
                )
            )
    return found


def check_lexicon(definition: FactDefinition, compiler: PhraseCompiler) -> None:
    """Compile every phrase of a definition now, as `corpus check` does; at run time each waits for its first use.

    Raises CriterionError naming the fact and what is wrong with the phrase.
    """
    for phrase in compile_lexicon(definition, compiler).phrases():
        try:
            phrase.check()
        except (ValueError, re.error) as fault:
            raise CriterionError(f"fact {definition.name}: lexicon: {fault}") from None
