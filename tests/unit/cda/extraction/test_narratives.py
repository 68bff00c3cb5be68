"""Development narratives and known traps: no wrong value, and every unknown is one that the data lists."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from chart_facts import allowed, shown

from cda.extraction import RuleExtractor

DATA = Path(__file__).parent / "data"


def cases(*stems: str) -> list[Any]:
    found = []
    for stem in stems:
        for index, case in enumerate(yaml.safe_load((DATA / f"{stem}.yaml").read_text(encoding="utf-8"))["cases"]):
            found.append(pytest.param(case, id=f"{stem}-{case.get('id', index)}"))
    return found


def misread(case: dict[str, Any], extractor: RuleExtractor) -> dict[str, tuple[str, str]]:
    as_of = date.fromisoformat(str(case.get("as_of", "2024-09-01")))
    facts = extractor.extract(case["text"], list(case["expect"]), as_of=as_of)
    return {
        name: (str(value), shown(facts[name]))
        for name, value in case["expect"].items()
        if shown(facts[name]) not in allowed(value)
    }


@pytest.mark.promise("extraction.traps")
@pytest.mark.parametrize("case", cases("traps"))
def test_a_trap_gives_its_right_value(case: dict[str, Any], extractor: RuleExtractor) -> None:
    assert misread(case, extractor) == {}


@pytest.mark.promise("extraction.narratives")
@pytest.mark.parametrize("case", cases(*sorted(p.stem for p in DATA.glob("*.yaml") if p.stem != "traps")))
def test_a_narrative_gives_its_facts(case: dict[str, Any], extractor: RuleExtractor) -> None:
    assert misread(case, extractor) == {}


@pytest.mark.promise("extraction.verbatim")
@pytest.mark.parametrize("case", cases("diabetes", "spine"))
def test_evidence_is_the_text_at_its_offsets(case: dict[str, Any], extractor: RuleExtractor) -> None:
    facts = extractor.extract(case["text"], list(case["expect"]), as_of=date(2024, 9, 1))

    for fact in facts.values():
        for quote in fact.evidence:
            assert quote.quote == case["text"][quote.start : quote.end]
            assert quote.quote.strip()
