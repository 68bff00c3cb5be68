"""References between clauses."""

from typing import Any

import pytest
from criteria_world import clause, define

from cda.contracts.facts import FactDefinition
from cda.contracts.policy_tools import ClauseView
from cda.criteria.references import validate_references

pytestmark = pytest.mark.promise("criteria.faults")

FACTS = {"a": define("a", type="bool"), "n": define("n", type="count")}
A = {"fact": "a", "op": "=", "value": True}
BASE = [
    clause("P.v1.C1", {"covers_if": {"named": "step", "all": [A]}}),
    clause("P.v1.C2", {"limit": {"fact": "n", "op": "<=", "value": 3}, "beyond": "documentation"}),
]


def faults(criterion: dict[str, Any], **fields: Any) -> list[tuple[str, str]]:
    fields = {"doc_type": "plan_rider"} | fields
    return validate_references([*BASE, clause("R.C1", criterion, **fields)], FACTS)


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ({"waive": "steps", "of": "P"}, "waives 'steps', which no clause of P requires; it has a, n, step"),
        ({"waive": "step", "of": "Q"}, "patches Q, which the rider does not override"),
        ({"replace_limit": "n", "with": 4, "of": "Q"}, "patches Q"),
        ({"add_node": A, "of": "Q"}, "patches Q"),
    ],
)
def test_a_patch_that_would_change_nothing_is_a_fault(patch: dict[str, Any], words: str) -> None:
    ((clause_id, fault),) = faults({"patch": patch})
    assert clause_id == "R.C1"
    assert words in fault


def test_a_limit_that_is_not_there_cannot_be_replaced() -> None:
    criterion = {"patch": {"replace_limit": "n", "with": 4, "of": "P"}}
    found = validate_references([BASE[0], clause("R.C1", criterion, doc_type="plan_rider")], FACTS)
    assert found == [("R.C1", "replaces the limit on n, which P does not have")]


def test_patches_stand_in_riders_and_riders_patch_or_state() -> None:
    assert "stands in a rider" in faults({"patch": {"waive": "step", "of": "P"}}, doc_type="provider_faq")[0][1]
    assert "patches or states" in faults({"excludes_if": A})[0][1]


def test_a_contradicted_clause_has_to_exist() -> None:
    assert faults({"states": "x", "contradicts": ["P.v1.C1", "P.v9.C1"]}) == [
        ("R.C1", "contradicts P.v9.C1, which is no clause of the corpus")
    ]


def test_the_synthetic_corpus_has_no_dangling_reference(
    clauses: list[ClauseView], definitions: dict[str, FactDefinition]
) -> None:
    assert validate_references(clauses, definitions) == []
