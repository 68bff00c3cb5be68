"""Every shipped definition against its own sentences."""

from datetime import date

import pytest
from chart_facts import allowed, shipped, shown

from cda.extraction import RuleExtractor

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
