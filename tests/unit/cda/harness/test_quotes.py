from itertools import pairwise

import pytest
from harness_doubles import clause
from hypothesis import given
from hypothesis import strategies as st

from cda.contracts.decision import Citation
from cda.harness.quotes import cite, normalise, text_sha256, why_not_verbatim, why_not_whole
from cda.harness.sentences import chart_sentences, clause_sentences

verbatim = pytest.mark.promise("harness.quote-verbatim")
whole = pytest.mark.promise("harness.quote-whole")
sentences = pytest.mark.promise("harness.sentences")

TEXT = (
    "A sensor is covered for type 1 diabetes with four or more daily tests. However, this does not apply to members in "
    "hospital. Replacement parts are covered once in 12 months. In which case it does not apply. Refer to a clerk."
)
CLAUSE = clause("PAY-1.v1.C1", TEXT)


def quoted(quote: str, of: str = TEXT, start: int | None = None) -> Citation:
    begin = of.index(quote) if start is None else start
    sha = text_sha256(of)
    return Citation(clause_id="PAY-1.v1.C1", quote=quote, start=begin, end=begin + len(quote), clause_sha256=sha)


def why(quote: str, of: str = TEXT) -> str | None:
    return why_not_whole(quoted(quote, of), clause("PAY-1.v1.C1", of))


@verbatim
@pytest.mark.parametrize(
    ("written", "quoted_as"),
    [
        ("tests a day – at least", "tests a day - at least"),
        ("the member’s “own” tests", 'the member\'s "own" tests'),
        ("tests\u00a0a day,\n  at least", "tests a day, at least"),
        ("caf\u0065\u0301 of the day", "café of the day"),
        ("glu\u00adcose each day", "glucose each day"),
    ],
)
def test_glyphs_that_print_alike_are_the_same_words(written: str, quoted_as: str) -> None:
    assert normalise(written) == normalise(quoted_as)


@verbatim
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1.3", "13"),
        ("Covered", "covered"),
        ("m²", "m2"),
        ("½", "1/2"),
        ("ﬁve", "five"),
        ("p\u0430y", "pay"),
        ("a.", "a"),
    ],
)
def test_letters_digits_case_and_punctuation_are_never_folded(one: str, other: str) -> None:
    assert normalise(one) != normalise(other)


@verbatim
def test_a_quote_is_compared_at_its_own_offsets_and_never_searched_for() -> None:
    quote = "Replacement parts are covered once in 12 months."
    assert why_not_verbatim(quoted(quote), CLAUSE) is None
    assert why_not_verbatim(quoted(quote, start=0), CLAUSE) == "the quote is not the clause's words at its offsets"


@verbatim
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"clause_sha256": "0" * 64}, "hash"),
        ({"start": 5, "end": 4}, "offsets"),
        ({"end": 9999}, "offsets"),
        ({"quote": "Repl\u200bacement parts are covered once in 12 months."}, "not shown"),
        ({"quote": "Replacement ... in 12 months."}, "leaves words out"),
        ({"quote": "Replacement parts [all] are covered once in 12 months."}, "leaves words out"),
        ({"quote": "Replacement parts are covered twice in 12 months."}, "not the clause's words"),
        ({"quote": ""}, "not the clause's words"),
    ],
)
def test_a_changed_quote_is_refused_by_its_fault(changes: dict[str, object], words: str) -> None:
    citation = quoted("Replacement parts are covered once in 12 months.").model_copy(update=changes)
    assert words in (why_not_verbatim(citation, CLAUSE) or "")


@whole
@pytest.mark.parametrize(
    ("quote", "words"),
    [
        ("A sensor is covered for type 1 diabetes", "ends inside"),
        ("covered for type 1 diabetes with four or more daily tests.", "begins inside"),
        ("A sensor is covered for type 1 diabetes with four or more daily tests.", "qualifies"),
        ("However, this does not apply to members in hospital.", "leans"),
        ("In which case it does not apply.", "leans"),
        ("Refer to a clerk.", "fewer than 5 words"),
        ("the", "fewer than 5 words"),
        ("Replacement parts are covered once in 12 months.", "qualifies"),
    ],
)
def test_a_part_that_could_mislead_is_refused(quote: str, words: str) -> None:
    text = TEXT.replace("Replacement parts", "the replacement parts") if quote == "the" else TEXT
    assert words in (why(quote, text) or "")


@whole
def test_whole_sentences_with_their_qualifier_pass() -> None:
    assert why(TEXT[: TEXT.index(" Replacement")]) is None
    assert why("Replacement parts are covered once in 12 months. In which case it does not apply.") is None
    assert why(TEXT) is None


@whole
def test_a_quote_without_verb_or_number_says_nothing() -> None:
    assert why("Sensors for members of this plan.", "Sensors for members of this plan.") == (
        "the quote says nothing: no verb and no number"
    )


@whole
def test_an_exception_inside_the_sentence_cannot_be_cut_off() -> None:
    text = "The test is covered unless the member has heart failure, in which case an attended study is required."
    assert why("The test is covered", text) is not None
    assert why(text, text) is None


@whole
def test_an_item_of_a_list_is_no_quote_and_the_list_with_its_opening_is() -> None:
    text = (
        "The sensor is covered when all of these are met:\n1. The member has diabetes.\n2. The member uses insulin.\n"
        "It is paid monthly."
    )
    assert why("1. The member has diabetes.", text) == "the quote begins inside a sentence"
    assert why(text[: text.index("\nIt")], text) is None


@whole
@given(st.integers(0, len(TEXT)), st.integers(0, len(TEXT)))
def test_cite_gives_a_citation_that_keeps_every_rule(one: int, other: int) -> None:
    citation = cite(CLAUSE, min(one, other), max(one, other))
    assert why_not_verbatim(citation, CLAUSE) is None
    assert why_not_whole(citation, CLAUSE) is None


@whole
def test_cite_takes_the_whole_clause_by_default() -> None:
    assert (cite(CLAUSE).start, cite(CLAUSE).end) == (0, len(TEXT))


@sentences
def test_a_chart_is_cut_at_stops_and_lines_but_not_at_abbreviations() -> None:
    text = (
        "A1c 8.6. failed MTX x 4 mo. Denies CHF. Insulin q.i.d. with meals. seen by Dr. Chen\n"
        "Papilledema: no. Then x vs. y."
    )
    assert [text[a:b] for a, b in chart_sentences(text)] == [
        "A1c 8.6.",
        "failed MTX x 4 mo.",
        "Denies CHF.",
        "Insulin q.i.d. with meals.",
        "seen by Dr. Chen",
        "Papilledema: no.",
        "Then x vs. y.",
    ]


@sentences
def test_a_clause_is_not_cut_before_lower_case_and_a_hard_wrap_ends_nothing() -> None:
    text = "Covered approx. once, i.e. a year, e.g. in\nspring. See sec. 4. Not covered otherwise."
    assert [text[a:b] for a, b in clause_sentences(text)] == [
        "Covered approx. once, i.e. a year, e.g. in\nspring.",
        "See sec. 4.",
        "Not covered otherwise.",
    ]


@sentences
@given(st.text(alphabet="ab .!?\n:1-•A", max_size=80))
def test_sentences_hold_every_letter_once_and_in_order(text: str) -> None:
    for spans in (chart_sentences(text), clause_sentences(text)):
        assert all(a < b <= c < d for (a, b), (c, d) in pairwise(spans))
        held = {i for a, b in spans for i in range(a, b)}
        assert all(i in held for i, char in enumerate(text) if not char.isspace())
