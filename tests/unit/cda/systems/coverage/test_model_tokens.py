import json
from typing import Any

import pytest

from cda.agents.answers import MAX_CLAUSES, Entailed, Grades, Plan, Reading, Synthesis
from cda.systems.coverage import roles
from cda.systems.coverage.case_tools import MAX_CHARS, MAX_QUERIES

pytestmark = pytest.mark.promise("models.tokens")
BYTES_PER_TOKEN = 3.5


def largest(schema: dict[str, Any], defs: dict[str, Any]) -> Any:  # noqa: PLR0911 - one a kind
    """The longest value of a schema whose texts and lists are bounded."""
    if "$ref" in schema:
        return largest(defs[schema["$ref"].rpartition("/")[2]], defs)
    if "enum" in schema:
        return max(schema["enum"], key=len)
    match schema["type"]:
        case "object":
            return {name: largest(part, defs) for name, part in schema["properties"].items()}
        case "array":
            return [largest(schema["items"], defs)] * schema["maxItems"]
        case "string":
            return "m" * schema["maxLength"]
        case "integer":
            return 99
    return False


def tokens(value: Any) -> float:
    return len(json.dumps(value, separators=(",", ":")).encode()) / BYTES_PER_TOKEN


def of(contract: Any) -> float:
    schema = contract.model_json_schema()
    return tokens(largest(schema, schema.get("$defs", {})))


def test_the_largest_answer_of_the_one_hybrid_call_is_within_1300_tokens() -> None:
    assert of(Reading) <= 1_300


def test_the_largest_answers_of_the_agentic_roles_are_within_2600_tokens() -> None:
    searches = 2 * tokens({"queries": ["m" * MAX_CHARS] * MAX_QUERIES})
    finish = tokens({"clause_ids": ["m" * 48] * MAX_CLAUSES})
    assert of(Plan) + searches + finish + of(Grades) + of(Synthesis) + of(Entailed) <= 2_600


def test_the_prefix_of_the_hybrid_call_is_long_enough_to_be_worth_caching() -> None:
    assert len(roles.extractor().static.encode()) / 4.4 >= 1_500  # counted on the cheap side


def test_a_changed_word_of_a_skill_changes_the_fingerprint_of_every_reasoner_that_is_told_it() -> None:
    told = {roles.fingerprint(name) for name in ("hybrid", "agentic")}
    assert len(told) == 2
    assert None not in told
    assert roles.fingerprint("criteria") is None
