"""The reference page for authors: its examples are in the language, and its lists are the language's own."""

import re
from pathlib import Path

import pytest
import yaml

from cda.contracts.facts import FactDefinition, FactType
from cda.criteria.criterion import validate_criterion
from cda.criteria.parse import ExpressionReader
from cda.criteria.verdict import Reason

pytestmark = pytest.mark.promise("criteria.faults")

PAGE = (Path(__file__).parents[4] / "docs/reference/criteria.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.startswith("criterion:")])
def test_every_example_of_a_criterion_is_in_the_language(block: str, definitions: dict[str, FactDefinition]) -> None:
    assert validate_criterion(yaml.safe_load(block)["criterion"], definitions) == []


def test_every_example_of_an_expression_is_in_the_language(definitions: dict[str, FactDefinition]) -> None:
    birth = FactDefinition("birth_date", FactType.DATE, "date of birth")
    reader = ExpressionReader({**definitions, "birth_date": birth})
    (block,) = [block for block in BLOCKS if not block.startswith("criterion:")]
    inner = '{fact: hypoglycemia_unawareness, op: "=", value: true}'
    for line in block.replace("EXPRESSION, ...", f"{inner}, {inner}").replace("EXPRESSION", inner).splitlines():
        reader.read(yaml.safe_load(line), line)
    assert reader.faults == []


def test_the_page_names_every_reason_for_an_outcome() -> None:
    assert [reason for reason in Reason if f"`{reason}`" not in PAGE] == []
