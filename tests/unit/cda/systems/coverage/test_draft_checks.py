from typing import Any

import pytest

from cda.contracts.definitions import definitions_from_data
from cda.systems.coverage.draft_checks import Candidate, ExceptionNode, faults_of, overlaps
from cda.systems.coverage.draft_words import comparisons_in, days_in, exceptions_in, numbers_in
from corpus.reading import read

DEFINITIONS = definitions_from_data({name: entry.value for name, entry in read(["builtin"]).facts})
TEXT = (
    "A monitor is covered for a member with type 1 diabetes who performs 4 or more fingerstick tests per day, unless "
    "the member has hypoglycemia unawareness, in which case the testing requirement is waived."
)
CRITERION: dict[str, Any] = {
    "covers_if": {
        "all": [
            {"fact": "diabetes_type", "op": "=", "value": "type_1"},
            {"fact": "fingersticks_per_day", "op": ">=", "value": 4},
        ]
    },
    "unless": {
        "meaning": "waives",
        "when": {"fact": "hypoglycemia_unawareness", "op": "=", "value": True},
        "waived": ["fingersticks_per_day"],
    },
}
UNLESS = ExceptionNode("unless the member has", "unless")


def faults(**changes: Any) -> list[str]:
    held: dict[str, Any] = {
        "quote": TEXT,
        "codes": ["A9276"],
        "criterion": CRITERION,
        "exceptions": [UNLESS],
        "block_text": f"{TEXT} A second rule follows here.",
        "known_codes": frozenset({"A9276"}),
        "policy_text": TEXT,
    }
    return faults_of(Candidate(**held | changes), DEFINITIONS)


def one(found: list[str]) -> str:
    assert len(found) == 1, found
    return found[0]


def with_threshold(**leaf: Any) -> dict[str, Any]:
    first, second = CRITERION["covers_if"]["all"]
    return {**CRITERION, "covers_if": {"all": [first, {**second, **leaf}]}}


@pytest.mark.promise("draft.checks")
def test_a_clause_that_says_what_its_text_says_has_no_fault() -> None:
    assert faults() == []


@pytest.mark.promise("draft.checks")
@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"quote": TEXT.replace("covered", "paid")}, "quote: is not verbatim"),
        ({"quote": TEXT.split(", unless", maxsplit=1)[0], "exceptions": []}, "quote: begins or ends inside a sentence"),
        ({"block_text": f"{TEXT} {TEXT}"}, "quote: stands 2 times"),
        ({"codes": ["A92"]}, "codes: 'A92' is not a CPT or HCPCS code"),
        ({"codes": ["E0607"]}, "codes: E0607 is neither among the policy's codes nor in its text"),
        ({"codes": ["A9276", "A9276"]}, "codes: a code stands twice"),
        ({"codes": []}, "codes: a criterion decides nothing without codes"),
        ({"exceptions": []}, "exceptions: nothing holds 'unless the member has"),
        (
            {"exceptions": [ExceptionNode("unless the member has", "none", "why")]},
            "exceptions: unless always has a node",
        ),
        ({"exceptions": [ExceptionNode("unless the member has", "covers_if.all.7")]}, "covers_if.all.7 is no path"),
        ({"exceptions": [ExceptionNode("unless the member has", "covers_if.all.0")]}, "does not hold unless"),
        ({"exceptions": [UNLESS, ExceptionNode("covered for a", "unless")]}, "does not begin with an exception word"),
        ({"exceptions": [ExceptionNode("unless", "unless")]}, "is too short to be told apart"),
        ({"criterion": with_threshold(op=">")}, "numbers: the text says >= 4, the criterion >"),
    ],
)
def test_each_fault_is_found_by_its_own_check(changes: dict[str, Any], fault: str) -> None:
    assert any(fault in said for said in faults(**changes)), faults(**changes)


@pytest.mark.promise("draft.checks")
def test_another_threshold_is_found_from_both_sides() -> None:
    found = faults(criterion=with_threshold(value=3))
    assert [said.split(";")[0] for said in found] == [
        "numbers: the criterion's 3 is not in the quote",
        "numbers: the quote's 4 is nowhere in the criterion",
    ]


@pytest.mark.promise("draft.checks")
def test_a_dropped_unless_and_an_unless_out_of_thin_air_are_both_found() -> None:
    plain = {"covers_if": CRITERION["covers_if"]}
    assert any("unless is no path" in said for said in faults(criterion=plain))
    text = TEXT.split(", unless", maxsplit=1)[0] + "."
    assert "that no word of the quote asks for" in one(faults(quote=text, block_text=text, exceptions=[]))


@pytest.mark.promise("draft.checks")
def test_a_fact_that_is_not_defined_is_a_fault_of_the_criterion() -> None:
    found = faults(criterion={"covers_if": {"fact": "no_such_fact", "op": "=", "value": True}})
    assert "'no_such_fact' is not defined" in one(found)


@pytest.mark.promise("draft.checks")
def test_a_not_that_changes_nothing_needs_the_words_of_the_reviewer() -> None:
    text = (
        "Sensors are limited to no more than 31 units per 31 days; a request beyond it is not denied for its quantity."
    )
    criterion = {"limit": {"fact": "sensor_units_per_31_days", "op": "<=", "value": 31}, "beyond": "documentation"}
    changes = {"quote": text, "block_text": text, "criterion": criterion}
    assert faults(**changes, exceptions=[ExceptionNode("not denied for", "beyond")]) == []
    assert "the reviewer says why" in one(faults(**changes, exceptions=[ExceptionNode("not denied for", "none")]))
    explained = ExceptionNode("not denied for", "none", "says how a request beyond it is handled")
    assert faults(**changes, exceptions=[explained]) == []


@pytest.mark.promise("draft.checks")
def test_two_quotes_of_one_block_that_overlap_are_found_and_neighbours_are_not() -> None:
    assert list(overlaps({"a": ("C1", (0, 10)), "b": ("C1", (10, 20)), "c": ("C2", (5, 15))})) == []
    ((later, fault),) = overlaps({"a": ("C1", (0, 10)), "b": ("C1", (9, 20))})
    assert later == "b"
    assert "overlaps that of a" in fault


@pytest.mark.promise("draft.checks")
def test_the_shipped_clauses_pass_the_checks_of_numbers_that_their_authors_never_saw() -> None:
    found = read(["builtin"])
    broken = {}
    for entry in found.policies:
        for version in entry.value.versions:
            for clause in version.clauses:
                if clause.criterion is not None:
                    held = faults(
                        quote=clause.text,
                        block_text=clause.text,
                        codes=clause.codes,
                        criterion=clause.criterion,
                        known_codes=frozenset(entry.value.codes),
                    )
                    numbers = [said for said in held if said.startswith(("numbers", "quote", "codes"))]
                    if numbers:
                        broken[f"{entry.value.policy_id}.{version.version}.{clause.id}"] = numbers
    # An implied zero, a number in the name of the service, and a bound said twice: a reviewer would look at these.
    assert sorted(broken) == ["CMS-NCD-100.3.v1.C1", "CMS-NCD-280.8.v1.C1", "CMS-NCD-30.3.3.v1.C3"]


@pytest.mark.promise("draft.words")
def test_exception_words_are_read_and_comparisons_are_not_taken_for_them() -> None:
    text = (
        "Covered only if due, except for infants, and not for no more than 3 days, whether or not asked; excluding "
        "gestational cases; it isn't paid without a visit unless exceptional."
    )
    assert [kind.value for _, kind in exceptions_in(text)] == [
        "only if",
        "except",
        "not",
        "except",
        "not",
        "not",
        "unless",
    ]


@pytest.mark.promise("draft.words")
def test_numbers_are_read_and_codes_and_days_are_left_out() -> None:
    text = "Within twelve months of January 5, 2024, 1,000 units or 2.5 mg of A9276 or 95249 for E10.9, twice."
    assert [number.value for number in numbers_in(text)] == [12.0, 1000.0, 2.5, 2.0]
    assert days_in(text) == {"2024-01-05"}


@pytest.mark.promise("draft.words")
@pytest.mark.parametrize(
    ("text", "op"),
    [
        ("at least 6 weeks", ">="),
        ("6 weeks or more", ">="),
        ("6 years of age or older", ">="),
        ("no fewer than 6", ">="),
        ("more than 6", ">"),
        ("over 6 years", ">"),
        ("no more than 6", "<="),
        ("not exceeding 6", "<="),
        ("up to 6", "<="),
        ("less than 6", "<"),
        ("below 6", "<"),
    ],
)
def test_a_comparison_is_read_with_its_operator(text: str, op: str) -> None:
    assert comparisons_in(text) == {6.0: frozenset({op})}


@pytest.mark.promise("draft.words")
def test_a_number_that_also_stands_alone_asks_for_no_operator() -> None:
    assert comparisons_in("at least 6 of the 6 signs") == {}
