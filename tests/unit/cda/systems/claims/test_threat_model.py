"""The threat model names tests; each of them is there."""

import ast
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.promise("claims.threats")
ROOT = Path(__file__).parents[5]
DOCUMENT = ROOT / "docs" / "reference" / "threat-model.md"


def rows(heading: str) -> list[list[str]]:
    """The cells of a table's rows, below a heading."""
    part = DOCUMENT.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def suite() -> set[str]:
    """Every test of the suite, as `file::test`."""
    found = set()
    for file in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found.add(f"{file.name}::{node.name}")
    return found


@pytest.mark.parametrize("heading", ["STRIDE", "Fifteen ways to fail open"])
def test_every_row_names_tests_that_exist(heading: str) -> None:
    known = suite()
    for row in rows(heading):
        named = re.findall(r"`([^`]+)`", row[-1])
        assert named, row
        assert set(named) <= known, set(named) - known


def test_every_letter_has_rows_and_the_fifteen_are_fifteen() -> None:
    assert {row[0] for row in rows("STRIDE")} == set("STRIDE")
    assert [row[0] for row in rows("Fifteen ways to fail open")] == [str(number) for number in range(1, 16)]
