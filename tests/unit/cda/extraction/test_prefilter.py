"""The prefilter against the plain path: every phrase tried on every sentence."""

import pytest
from chart_facts import shipped
from hypothesis import given
from hypothesis import strategies as st

from cda.contracts.definitions import definitions_from_data
from cda.extraction.language import shared_language
from cda.extraction.lexicon import Form, compile_lexicon
from cda.extraction.note import Note, Vocabulary
from cda.extraction.phrases import Phrase, PhraseCompiler
from cda.extraction.prefilter import Prefilter

pytestmark = pytest.mark.promise("extraction.prefilter")

LISTS = {
    "drug": ["aspirin", "acetylsalicylic acid", "(low)? dose asa"],
    "anyhow": ["# mg", "hypo"],
    "nested": ["@drug", "feel~ low"],
}
COMPILER = PhraseCompiler(LISTS, {"feel": ["feels", "felt", "feeling"]})
Spans = list[tuple[int, int]]


def prepared(text: str, *groups: tuple[Phrase, ...] | tuple[Form, ...]) -> Note:
    return Note(text, shared_language(), Vocabulary([]), Prefilter(groups))


def tried_everywhere(phrase: Phrase, note: Note) -> Spans:
    matches = (m for s in note.sentences for m in phrase.regex.finditer(note.norm, s.start, s.end))
    return [match.span() for match in matches if match[0]]


def tried_where_worth(group: tuple[Phrase, ...], note: Note) -> dict[int, Spans]:
    found = {worth.place: [m.span() for m in note.matches(worth) if m[0]] for worth in note.worth_trying(group)}
    return {index: spans for index, spans in found.items() if spans}


def assert_nothing_is_lost(group: tuple[Phrase, ...], note: Note) -> None:
    plain = {index: tried_everywhere(phrase, note) for index, phrase in enumerate(group)}
    assert tried_where_worth(group, note) == {index: spans for index, spans in plain.items() if spans}


WORDS = st.sampled_from(
    ["low", "lows", "hypo", "a", "no", "of", "1c", "sensor", "cgm", "xx", ".", ",", "\n", "feel", "feels", "felt",
     "unaware", "aspirin", "acid", "acetylsalicylic", "dose", "asa", "5 mg", "can't", "o'low", "un", "'", "x_low"]
)  # fmt: skip
PHRASES = st.sampled_from(
    ["low~", "(hypo|low) unaware", "a_1c", "no ..3 lows", "(a)? sensor?", "cgm | feel", "(xx|.)? of", "feel* ...4 low",
     "feel~ low", "(un)?aware", "(no)? (a)? low", "@drug", "@anyhow low", "@nested", "@drug? low", "# mg", "^low",
     "low$", "can't", "(a|(of|xx) no) low?", "a? low", "x_low", "(no|@drug|felt~) ..2 sensor", "'", "cgm?~",
     "(sensor|) no"]
)  # fmt: skip


@given(st.lists(WORDS, max_size=30), st.sampled_from([" ", ""]), st.lists(PHRASES, max_size=8))
def test_a_phrase_is_spared_only_where_it_cannot_match(words: list[str], joint: str, sources: list[str]) -> None:
    group = tuple(COMPILER.phrase(source) for source in sources)

    assert_nothing_is_lost(group, prepared(joint.join(words), group))


@given(st.text(alphabet="abc'. ", max_size=30), st.lists(st.text(alphabet="abc'", min_size=1, max_size=4), max_size=6))
def test_every_word_of_a_text_is_looked_up(text: str, words: list[str]) -> None:
    group = tuple(COMPILER.phrase(word) for word in words)

    assert_nothing_is_lost(group, prepared(text, group))


FACTS = shipped()


def sentences_of(name: str) -> list[str]:
    raw = FACTS[name]
    return [str(text) for text in (*(example[0] for example in raw["examples"]), *raw["counterexamples"])]


SENTENCES = [sentence for name in sorted(FACTS) for sentence in sentences_of(name)]


@pytest.mark.parametrize("name", sorted(FACTS))
def test_no_shipped_phrase_is_lost_on_the_shipped_sentences(name: str) -> None:
    lexicon = compile_lexicon(definitions_from_data({name: FACTS[name]})[name], shared_language().compiler)
    own = sentences_of(name)
    phrases = tuple(lexicon.phrases())

    assert_nothing_is_lost(phrases, prepared("\n".join([*own, *SENTENCES[:: len(own)]]), phrases))


def test_a_form_is_worth_trying_where_both_its_pieces_may_stand() -> None:
    raw = {"type": "rate", "unit": "per_day", "lexicon": {"forms": ["checks {r} sugar"]}}
    lexicon = compile_lexicon(definitions_from_data({"x": raw})["x"], shared_language().compiler)
    note = prepared("She checks often. She checks 4 times a day her sugar. Sugar is fine.", lexicon.forms)

    (worth,) = note.worth_trying(lexicon.forms)

    assert [note.norm[s.start : s.end].strip() for s in note.chosen(worth.mask)] == [
        "she checks 4 times a day her sugar"
    ]


def test_a_group_that_was_not_given_cannot_be_tried() -> None:
    with pytest.raises(KeyError):
        prepared("low").worth_trying((COMPILER.phrase("low"),))


def test_more_words_than_are_kept_change_nothing() -> None:
    group = (COMPILER.phrase("low"),)
    prefilter = Prefilter([group])
    for number in range(3):
        text = " ".join(f"w{number}x{i}" for i in range(10_000)) + " low"
        note = Note(text, shared_language(), Vocabulary([]), prefilter)
        assert [match[0] for worth in note.worth_trying(group) for match in note.matches(worth)] == ["low"]
