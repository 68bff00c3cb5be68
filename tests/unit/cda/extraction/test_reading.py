"""Phrases, sentences and quantities, each by itself."""

import pytest

from cda.contracts.facts import Interval
from cda.extraction.compile_language import authored
from cda.extraction.language import COMPILED, shared_language
from cda.extraction.note import Note, Vocabulary
from cda.extraction.phrases import PhraseCompiler
from cda.extraction.prefilter import Prefilter
from cda.extraction.quantities import shared_reader

COMPILER = PhraseCompiler({"drug": ["aspirin", "acetylsalicylic acid"]}, {"feel": ["feels", "felt"]})


def note(text: str, *words: str) -> Note:
    language = shared_language()
    return Note(text, language, Vocabulary(words), Prefilter([language.lexical_rates]))


@pytest.mark.promise("extraction.phrases")
@pytest.mark.parametrize(
    ("phrase", "matching", "other"),
    [
        ("type 1 diabetes", "type-1 diabetes", "pretype 1 diabetes"),
        ("check~ sugar", "checking sugar", "checker sugar"),
        ("(check|test)~ sugar", "tested sugar", "testy sugar"),
        ("feel~ low", "felt low", "feeling low"),
        ("gluc* high", "glucose high", "a gluc"),
        ("on (oral)? @drug", "on oral acetylsalicylic acid", "on oral"),
        ("meals?", "meal", "mealss"),
        ("no ..2 pain", "no new leg pain", "no one two three pain"),
        ("no ..2 pain", "no leg pain", "no leg, pain"),
        ("no ...2 pain", "no leg, pain", "no leg; pain"),
        ("t_1_dm", "t1dm", "t2dm"),
        ("dose # mg", "dose 2.5 mg", "dose two mg"),
    ],
)
def test_a_phrase_matches_what_its_signs_say(phrase: str, matching: str, other: str) -> None:
    compiled = COMPILER.phrase(phrase)

    assert compiled.regex.search(matching)
    assert not compiled.regex.search(other)
    assert all(any(literal in matching for literal in part) for part in compiled.gate)


@pytest.mark.promise("extraction.phrases")
@pytest.mark.parametrize(
    ("phrase", "words"),
    [("@nolist x", "no list named"), ("a (b", "not closed"), ("a b)", "not opened"), ("(a)? (b)?", "may be missing")],
)
def test_a_broken_phrase_is_an_error_that_says_what_is_wrong(phrase: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        COMPILER.phrase(phrase).check()


@pytest.mark.promise("extraction.sentences")
@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Denies CHF. Has COPD.", 2),
        ("MTX for 12 wks. then stopped", 1),
        ("Tests q.i.d. with meals", 1),
        ("T1DM vs. T2DM", 1),
        ("Dr. Roe saw her.", 1),
        ("A1c 8.6 today", 1),
        ("CHF: N\nCOPD: Y", 2),
        ("She completed a full course of supervised physical therapy over\nsix weeks without relief", 1),
        ("one\n\ntwo", 2),
        ("Titration required? No.", 1),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, count: int) -> None:
    assert len(note(text).sentences) == count


@pytest.mark.promise("extraction.sentences")
@pytest.mark.parametrize("text", ["İstanbul’s note — “T1DM”…\r\n• A1c 8.6\u00a0%", "Rheurnatoid arthritis ½ ☒ [x] [ ]"])
def test_the_normalised_text_is_as_long_as_the_text(text: str) -> None:
    assert len(note(text, "rheumatoid", "arthritis").norm) == len(text)


@pytest.mark.promise("extraction.sentences")
def test_scanning_slips_in_long_known_words_are_undone() -> None:
    assert note("hypoglycernia and rheumat0id, 8.O%", "hypoglycemia", "rheumatoid").norm == (
        "hypoglycemia\x00 and rheumatoid, 8.0%"
    )


@pytest.mark.promise("extraction.sentences")
def test_a_section_sets_the_mood_of_what_stands_under_it() -> None:
    moods = [s.mood for s in note("Family history:\nCOPD\nPlan: PT\nAssessment: OSA\nCriteria:\nfour checks").sentences]

    assert moods == ["family", "family", "plan", None, "payer", "payer"]


@pytest.mark.promise("extraction.quantities")
@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("4-5 times per day", "rate", Interval(4, 5)),
        ("two to six times a day", "rate", Interval(2, 6)),
        ("at least 4 x/day", "rate", Interval(4, float("inf"))),
        ("no more than three per day", "rate", Interval(float("-inf"), 3)),
        ("28 per week", "rate", Interval(4, 4)),
        ("QID", "rate", Interval(4, 4)),
        ("q6h", "rate", Interval(4, 4)),
        ("every 4 hours", "rate", Interval(6, 6)),
        ("before meals and at bedtime", "rate", Interval(4, 4)),
        ("x6 wks", "duration", Interval(6, 6)),
        ("one and a half months", "duration", Interval(6.5, 6.5)),
        ("half a year", "duration", Interval(26, 26)),
        ("24w3d", "gestation", Interval(24.428571, 24.428571)),
        ("8 weeks or more", "duration", Interval(8, float("inf"))),
        ("twenty-four weeks", "duration", Interval(24, 24)),
        ("eight point six percent", "percent", Interval(8.6, 8.6)),
        ("52-year-old", "age", Interval(52, 52)),
    ],
)
def test_a_quantity_is_read_with_its_qualifier_and_unit(text: str, kind: str, value: Interval) -> None:
    read = note(text)
    (found,) = shared_reader(shared_language()).read(read, read.sentences[0])

    assert (found.kind, found.in_unit("week")) == (kind, value)


@pytest.mark.promise("extraction.quantities")
def test_thirteen_weeks_are_three_months_and_ninety_days_may_be() -> None:
    read = note("13 weeks; 90 days; 12 weeks")
    weeks, days, short = shared_reader(shared_language()).read(read, read.sentences[0])

    assert weeks.in_unit("month") == Interval(3, 3)
    assert days.in_unit("month").lo < 3 <= days.in_unit("month").hi
    assert short.in_unit("month").hi < 3


@pytest.mark.promise("extraction.quantities")
def test_a_span_of_dates_counts_its_days_and_its_calendar_months() -> None:
    prepared = note("from 4/1/24 to 5/13/24; from 1/15/2024 to 4/15/2024")
    weeks, months = shared_reader(shared_language()).read(prepared, prepared.sentences[0])

    assert weeks.in_unit("week") == Interval.exactly(6)
    assert months.in_unit("month").lo == 3


@pytest.mark.promise("extraction.phrases")
def test_the_compiled_language_data_are_the_authored_ones() -> None:
    """When this fails: `python -m cda.extraction.compile_language`, and commit language.json."""
    assert COMPILED.read_text(encoding="utf-8") == authored()
