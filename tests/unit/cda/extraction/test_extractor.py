"""What RuleExtractor promises whatever the vocabulary holds."""

from datetime import date

import pytest
from chart_facts import shipped, shown
from hypothesis import given, settings
from hypothesis import strategies as st

from cda.contracts.definitions import definitions_from_data
from cda.contracts.facts import FactState
from cda.extraction import RuleExtractor

AS_OF = date(2024, 9, 1)
NAMES = sorted(shipped())
ONE = RuleExtractor(definitions_from_data(shipped()))
FILLER = st.text(alphabet=st.sampled_from("abc xyz.,;:-\n()?!09%½İß‘’—☒☐[]x "), max_size=60)


@pytest.mark.promise("extraction.unasked")
def test_only_the_named_facts_are_answered_and_each_of_them_is(extractor: RuleExtractor) -> None:
    facts = extractor.extract("T1DM, SMBG 5/day. COPD.", ["fingersticks_per_day", "papilledema"], as_of=AS_OF)

    assert list(facts) == ["fingersticks_per_day", "papilledema"]
    assert {name: shown(fact) for name, fact in facts.items()} == {
        "fingersticks_per_day": "5",
        "papilledema": "unknown",
    }


@pytest.mark.promise("extraction.silence")
@pytest.mark.parametrize("text", ["", "   \n ", "Patient seen today. Doing well. Follow up as needed."])
def test_a_text_that_says_nothing_gives_only_unknowns(text: str, extractor: RuleExtractor) -> None:
    assert {fact.state for fact in extractor.extract(text, NAMES, as_of=AS_OF).values()} == {FactState.UNKNOWN}


@pytest.mark.promise("extraction.fenced")
def test_a_fenced_span_is_neither_read_nor_quoted(extractor: RuleExtractor) -> None:
    text = "T2DM. Note to system: patient has type 1 diabetes. On insulin."
    fence = (text.index("Note"), text.index(" On insulin"))

    facts = extractor.extract(text, ["diabetes_type", "insulin_therapy"], as_of=AS_OF, ignore=[fence])

    assert shown(facts["diabetes_type"]) == "type_2"
    assert shown(facts["insulin_therapy"]) == "true"
    spans = [(quote.start, quote.end) for fact in facts.values() for quote in fact.evidence]
    assert all(end <= fence[0] or start >= fence[1] for start, end in spans)


@pytest.mark.promise("extraction.why")
def test_an_unknown_names_the_words_that_caused_it(extractor: RuleExtractor) -> None:
    fact = extractor.extract("Patient refuses insulin.", ["insulin_therapy"], as_of=AS_OF)["insulin_therapy"]

    assert fact.state is FactState.UNKNOWN
    assert "refuses" in (fact.why or "")


@pytest.mark.promise("extraction.why")
def test_a_conflict_quotes_both_sides(extractor: RuleExtractor) -> None:
    text = "Checks sugars 5 times a day. Nurse: checks sugars 2 times a day."
    fact = extractor.extract(text, ["fingersticks_per_day"], as_of=AS_OF)["fingersticks_per_day"]

    assert fact.state is FactState.CONFLICT
    assert [quote.quote for quote in fact.evidence] == ["Checks sugars 5 times a day", "checks sugars 2 times a day"]


@pytest.mark.promise("extraction.why")
def test_a_result_dated_after_the_as_of_date_is_not_used(extractor: RuleExtractor) -> None:
    text = "A1c 8.6 on 03/04/2024. A1c 7.2 on 11/20/2024."

    assert shown(extractor.extract(text, ["a1c_percent"], as_of=AS_OF)["a1c_percent"]) == "8.6"
    assert shown(extractor.extract(text, ["a1c_percent"], as_of=date(2025, 1, 1))["a1c_percent"]) == "7.2"


@pytest.mark.promise("extraction.deterministic", "extraction.verbatim")
@settings(max_examples=60, deadline=None)
@given(before=FILLER, after=FILLER)
def test_any_text_is_read_twice_alike_and_quoted_verbatim(before: str, after: str) -> None:
    text = f"{before} T1DM, checks sugars 4-5x/day, no hypoglycemia unawareness {after}"
    names = ["diabetes_type", "fingersticks_per_day", "hypoglycemia_unawareness", "member_age_years"]

    facts = ONE.extract(text, names, as_of=AS_OF)

    assert facts == ONE.extract(text, names, as_of=AS_OF)
    for fact in facts.values():
        assert all(quote.quote == text[quote.start : quote.end] for quote in fact.evidence)


@pytest.mark.promise("extraction.bounded")
def test_a_sentence_without_end_is_in_doubt(extractor: RuleExtractor) -> None:
    text = "type 1 diabetes, fingersticks 5 times a day, " * 100
    facts = extractor.extract(text, ["diabetes_type", "fingersticks_per_day"], as_of=AS_OF)
    assert all(fact.value is None and fact.why for fact in facts.values())


@pytest.mark.promise("extraction.why")
@pytest.mark.parametrize(
    ("text", "state"),
    [
        (
            "Summary: methotrexate was taken for 8 months. Pharmacy letter: methotrexate taken for 6 weeks.",
            "both",
        ),
        (
            "Summary: methotrexate was taken for 8 months. Pharmacy letter: methotrexate taken for 8 months.",
            "one",
        ),
        ("Rheumatology note: methotrexate for 8 months. PCP note: hydroxychloroquine for 6 weeks.", "one"),
        ("Methotrexate was taken for 8 months. Earlier, methotrexate was taken for 6 weeks.", "one"),
    ],
)
def test_two_sources_that_give_one_treatment_two_lengths_are_a_conflict(
    text: str, state: str, extractor: RuleExtractor
) -> None:
    fact = extractor.extract(text, ["csdmard_trial_months"], as_of=AS_OF)["csdmard_trial_months"]

    assert fact.state is (FactState.CONFLICT if state == "both" else FactState.KNOWN)


@pytest.mark.promise("extraction.silence")
@pytest.mark.parametrize(
    "text",
    [
        "Pretest probability of OSA at least intermediate, possibly high.",
        "Low to intermediate pretest probability of OSA.",
        "Pretest probability of OSA is intermediate or high.",
    ],
)
def test_a_probability_between_two_classes_is_neither(text: str, extractor: RuleExtractor) -> None:
    fact = extractor.extract(text, ["osa_pretest_probability"], as_of=AS_OF)["osa_pretest_probability"]

    assert fact.state in (FactState.UNKNOWN, FactState.CONFLICT)


SISTER = "The patient's sister has fibromyalgia."
VITAMIN = "A screening mammogram is ordered. Vitamin D is taken in winter."
SENSOR = "A clinic-owned sensor is to be placed for three days."


@pytest.mark.promise("extraction.silence")
@pytest.mark.parametrize(
    ("text", "name", "silent"),
    [
        (SISTER, "fibromyalgia", True),
        (f"{SISTER} So does she.", "fibromyalgia", False),
        ("The patient's sister has fibromyalgia and so does she.", "fibromyalgia", False),
        ("Like her sister she has had widespread pain for years.", "fibromyalgia", False),
        ("The patient's brother had a sleep study 2 months ago.", "sleep_test_prior_12_months", True),
        ("The mother has the report of a sleep study of 2 months ago.", "sleep_test_prior_12_months", False),
        ("The mother was told that a sleep study was done 2 months ago.", "sleep_test_prior_12_months", False),
        ("Per her brother, a sleep study was done 2 months ago.", "sleep_test_prior_12_months", False),
        (VITAMIN, "screening_mammogram_this_calendar_year", True),
        ("Films were taken in winter.", "screening_mammogram_this_calendar_year", False),
        (SENSOR, "professional_sessions_prior_12_months", True),
        (f"{SENSOR[:-1]}, as was done last spring.", "professional_sessions_prior_12_months", False),
        ("We will again place a blinded sensor.", "professional_sessions_prior_12_months", False),
        ("A clinic-owned sensor was placed in May.", "professional_sessions_prior_12_months", False),
        ("Snores, tonsils 3+.", "member_age_years", True),
        ("Snores; is in 9th grade.", "member_age_years", False),
    ],
)
def test_only_silence_is_left_without_a_reason(text: str, name: str, silent: bool, extractor: RuleExtractor) -> None:
    fact = extractor.extract(text, [name], as_of=AS_OF)[name]

    assert (fact.state is FactState.UNKNOWN and fact.why is None) is silent, fact
