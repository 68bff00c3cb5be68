"""Every shipped definition against its own sentences."""

from datetime import date

import pytest
from chart_facts import allowed, shipped, shown

from cda.contracts.definitions import definitions_from_data
from cda.errors import CriterionError
from cda.extraction import RuleExtractor, check_definition

pytestmark = pytest.mark.promise("extraction.examples")

AS_OF = date(2024, 9, 1)
FACTS = shipped()


@pytest.mark.parametrize("name", sorted(FACTS))
def test_a_definition_reads_its_examples_and_leaves_its_counterexamples_unknown(
    name: str, extractor: RuleExtractor
) -> None:
    authored = FACTS[name]
    expected = [(str(text), allowed(value)) for text, value in authored["examples"]]
    expected += [(str(text), ["unknown"]) for text in authored["counterexamples"]]

    found = [(text, shown(extractor.extract(text, [name], as_of=AS_OF)[name])) for text, _ in expected]

    assert [
        (text, value) for (text, value), (_, values) in zip(found, expected, strict=True) if value not in values
    ] == []


@pytest.mark.parametrize("name", sorted(FACTS))
def test_a_definition_ships_eight_examples_and_four_counterexamples(name: str) -> None:
    assert len(FACTS[name]["examples"]) >= 8
    assert len(FACTS[name]["counterexamples"]) >= 4


@pytest.mark.parametrize("name", sorted(FACTS))
def test_every_phrase_of_a_definition_compiles(name: str) -> None:
    check_definition(definitions_from_data({name: FACTS[name]})[name])


@pytest.mark.promise("extraction.definitions")
@pytest.mark.parametrize(
    ("lexicon", "words"),
    [
        ({"saying": {}}, "lexicon key 'saying' is unknown"),
        ({"says": {"maybe": ["x"]}}, "true and false"),
        ({"says": {True: ["on @nothing"]}}, "no list named @nothing"),
        ({"mask": ["(a"]}, "not closed"),
        ({"time": "later"}, "time is one of"),
        ({"forms": ["{n} to {n}"]}, "exactly one slot"),
    ],
)
def test_a_lexicon_that_is_off_names_the_fact_and_the_fault(lexicon: dict[str, object], words: str) -> None:
    (definition,) = definitions_from_data({"odd": {"type": "bool", "lexicon": lexicon}}).values()

    with pytest.raises(CriterionError, match=f"fact odd: .*{words}"):
        check_definition(definition)
