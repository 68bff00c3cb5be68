"""The rule extractor: facts from chart language, by the definitions' lexicons and nothing else."""

from collections.abc import Mapping, Sequence
from datetime import date

from cda.contracts.facts import Fact, FactDefinition
from cda.extraction.events import dated_mentions
from cda.extraction.language import shared_language
from cda.extraction.lexicon import Lexicon, compile_lexicon
from cda.extraction.mentions import Reader
from cda.extraction.note import Note
from cda.extraction.quantities import shared_reader
from cda.extraction.resolve import resolve


class RuleExtractor:
    """Reads facts by rules: same text, same definitions, same answer; doubt is unknown, contradiction is conflict.

    A lexicon is compiled when its fact is first asked for, and a phrase when the text first holds one of its words.
    """

    def __init__(self, definitions: Mapping[str, FactDefinition]) -> None:
        self._definitions = definitions
        self._lexicons: dict[str, Lexicon] = {}
        self._words: dict[str, frozenset[str]] = {}

    def extract(
        self, text: str, names: Sequence[str], *, as_of: date, ignore: Sequence[tuple[int, int]] = ()
    ) -> dict[str, Fact]:
        """Return one Fact for each of `names`, in their order; offsets are code points of `text`.

        Spans in `ignore` ([start, end), such as fenced instructions) are never read and never quoted from. Raises
        KeyError for a name without a definition.
        """
        lexicons = [self._lexicon(name) for name in names]
        language = shared_language()
        vocabulary = frozenset[str]().union(*(self._words[name] for name in names))
        note = Note(text, language, vocabulary, ignore)
        reader = Reader(note, language, shared_reader(language))
        found: dict[str, Fact] = {}
        for lexicon in lexicons:
            mentions = reader.sayings(lexicon)
            if lexicon.is_quantity:
                mentions += reader.quantity_mentions(lexicon)
            if lexicon.measured:
                mentions += reader.measured(lexicon)
            if lexicon.dated:
                mentions += dated_mentions(reader, lexicon, as_of)
            found[lexicon.definition.name] = resolve(lexicon, mentions, text, as_of)
        return found

    def _lexicon(self, name: str) -> Lexicon:
        if name not in self._lexicons:
            compiler = shared_language().compiler
            lexicon = compile_lexicon(self._definitions[name], compiler)
            sources = [s.phrase for s in lexicon.sayings] + list(lexicon.anchors)
            # The lexicon last: another thread that sees it must find its words.
            self._words[name] = frozenset(w for p in sources for w in compiler.words(p.source))
            self._lexicons[name] = lexicon
        return self._lexicons[name]
