"""The rule extractor: facts from chart language, by the definitions' lexicons and nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from cda.contracts.facts import Fact, FactDefinition, FactState
from cda.extraction.events import dated_mentions
from cda.extraction.language import shared_language
from cda.extraction.lexicon import Lexicon, check_lexicon, compile_lexicon
from cda.extraction.mentions import Reader
from cda.extraction.note import Note, Vocabulary
from cda.extraction.pairs import pair_mentions
from cda.extraction.prefilter import Prefilter
from cda.extraction.quantities import shared_reader
from cda.extraction.resolve import resolve
from cda.extraction.series import with_series


def check_definition(definition: FactDefinition) -> None:
    """Compile every phrase of a definition; raises CriterionError naming the fact and the phrase that is off."""
    check_lexicon(definition, shared_language().compiler)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What reads one set of facts: their lexicons, and the index and the known words made of just these."""

    lexicons: Mapping[str, Lexicon]
    prefilter: Prefilter
    vocabulary: Vocabulary


class RuleExtractor:
    """Reads facts by rules: same text, same definitions, same answer; doubt is unknown, contradiction is conflict.

    A lexicon is compiled when its fact is first asked for, and a phrase when the text first holds one of its words.
    """

    def __init__(self, definitions: Mapping[str, FactDefinition]) -> None:
        self._definitions = definitions
        self._lexicons: dict[str, Lexicon] = {}
        self._asked: dict[tuple[str, ...], _Asked] = {}

    def extract(
        self, text: str, names: Sequence[str], *, as_of: date, ignore: Sequence[tuple[int, int]] = ()
    ) -> dict[str, Fact]:
        """Return one Fact for each of `names`, in their order; offsets are code points of `text`.

        Spans in `ignore` ([start, end), such as fenced instructions) are never read and never quoted from. Raises
        KeyError for a name without a definition.
        """
        language = shared_language()
        asked = self._reading(tuple(sorted(set(names))))
        note = Note(text, language, asked.vocabulary, asked.prefilter, ignore)
        reader = Reader(note, language, shared_reader(language))
        found: dict[str, Fact] = {}
        for lexicon in [asked.lexicons[name] for name in names]:
            mentions = reader.sayings(lexicon)
            if lexicon.is_quantity:
                mentions += reader.quantity_mentions(lexicon)
            if lexicon.combine == "newest":
                mentions = with_series(reader, lexicon, mentions, as_of)
            if lexicon.measured:
                mentions += reader.measured(lexicon)
            if lexicon.pairs:
                mentions += pair_mentions(reader, lexicon)
            if lexicon.dated:
                mentions += dated_mentions(reader, lexicon, as_of)
            mentions = [m for m in mentions if not reader.of_relative((m.start, m.end))]
            fact = resolve(lexicon, mentions, text, as_of)
            if fact.state is FactState.KNOWN:
                fact = _unless_spoken_of(fact, [span for span, _ in reader.spans(lexicon.unsettled)], text)
            elif fact.state is FactState.UNKNOWN and fact.why is None:
                fact = _unless_spoken_of(fact, _touched(reader, lexicon), text)
            found[fact.name] = fact
        return found

    def _reading(self, names: tuple[str, ...]) -> _Asked:
        if (known := self._asked.get(names)) is None:
            lexicons = {name: self._lexicon(name) for name in names}
            groups = [group for lexicon in lexicons.values() for group in lexicon.groups]
            words = (self._long_words(name) for name in names)
            made = _Asked(
                lexicons,
                Prefilter([*groups, shared_language().lexical_rates]),
                Vocabulary(word for found in words for word in found),
            )
            # Of two threads that made it, both go on with one: an index knows the groups that it was made of.
            known = self._asked.setdefault(names, made)
        return known

    def _lexicon(self, name: str) -> Lexicon:
        if (known := self._lexicons.get(name)) is None:
            made = compile_lexicon(self._definitions[name], shared_language().compiler)
            known = self._lexicons.setdefault(name, made)
        return known

    def _long_words(self, name: str) -> frozenset[str]:
        return shared_language().compiler.gates.long_words(repr(self._definitions[name].lexicon))


def _touched(reader: Reader, lexicon: Lexicon) -> list[tuple[int, int]]:
    """Where the chart speaks of a fact's matter; what a mask covers only looks like it ("Libre 2 sensors"), and what a
    relative has is the relative's."""
    masks = reader.by_sentence(span for span, _ in reader.spans(lexicon.masks))
    spans = [span for span, _ in reader.spans(lexicon.touch)]
    return [
        span
        for span in spans
        if not reader.of_relative(span)
        and all(
            span[1] <= start or end <= span[0] for start, end in masks.get(reader.note.sentence_at(span[0]).start, ())
        )
    ]


def _unless_spoken_of(fact: Fact, spans: Sequence[tuple[int, int]], text: str) -> Fact:
    """The fact, or an unknown one with a reason where the chart speaks of its matter without settling it.

    The words are the lexicon's `touch` for a fact that nothing was read for (it is in doubt and not merely silent), and
    its `unsettled` for one that was read: they leave it open all the same.
    """
    if not spans:
        return fact
    start, end = spans[0]
    quote = " ".join(text[start:end].split())
    return Fact.unknown(fact.name, f"the chart speaks of it without settling it: {quote!r}")
