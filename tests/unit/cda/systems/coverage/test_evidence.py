"""Facts as evidence and back."""

from datetime import date
from math import inf

import pytest

from cda.contracts.decision import FactEvidence
from cda.contracts.facts import Evidence, Fact, FactDefinition, FactState, FactType, Interval
from cda.systems.coverage.evidence import evidence_of, facts_from

pytestmark = pytest.mark.promise("coverage.evidence")

DEFINITIONS = {
    name: FactDefinition(name, kind, name)
    for name, kind in {
        "weeks": FactType.DURATION,
        "born": FactType.DATE,
        "deaf": FactType.BOOL,
        "kind": FactType.CLASS,
    }.items()
}


def known(name: str, value: object, *spans: Evidence) -> Fact:
    return Fact(name, FactState.KNOWN, value, spans)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("weeks", Interval.exactly(6), 6),
        ("weeks", Interval(6, inf), {"lo": 6}),
        ("weeks", Interval(-inf, 6, hi_open=True), {"hi": 6, "hi_open": True}),
        ("weeks", Interval(4, 5), {"lo": 4, "hi": 5}),
        ("born", date(1981, 3, 14), "1981-03-14"),
        ("deaf", False, False),
        ("kind", "type_1", "type_1"),
    ],
)
def test_a_value_comes_back_as_it_went(name: str, value: object, shown: object) -> None:
    (piece,) = evidence_of(known(name, value, Evidence("", source="structured")))
    assert (piece.fact, piece.value, piece.quote, piece.start, piece.end) == (name, shown, "", None, None)
    assert facts_from([piece], DEFINITIONS)[name].value == value


def test_each_span_is_an_entry_of_its_own() -> None:
    found = evidence_of(known("deaf", True, Evidence("deaf", 3, 7), Evidence("cannot hear", 20, 31)))
    assert [(piece.quote, piece.start, piece.end) for piece in found] == [("deaf", 3, 7), ("cannot hear", 20, 31)]
    assert facts_from(found, DEFINITIONS)["deaf"].value is True


@pytest.mark.parametrize("fact", [Fact.unknown("deaf"), Fact("deaf", FactState.CONFLICT)])
def test_what_is_not_known_is_no_evidence(fact: Fact) -> None:
    assert evidence_of(fact) == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("unheard", True),
        ("deaf", "true"),
        ("deaf", 1),
        ("kind", True),
        ("kind", ["type_1"]),
        ("weeks", None),
        ("weeks", "six"),
        ("weeks", [6]),
        ("weeks", {"lo": 9, "hi": 3}),
        ("weeks", {"lo": "x"}),
        ("born", 19810314),
        ("born", "14.03.1981"),
    ],
)
def test_a_value_of_another_type_is_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        facts_from([FactEvidence(fact=name, value=value)], DEFINITIONS)


def test_two_values_of_one_fact_are_refused() -> None:
    with pytest.raises(ValueError, match="two values"):
        facts_from([FactEvidence(fact="weeks", value=6), FactEvidence(fact="weeks", value=7)], DEFINITIONS)
