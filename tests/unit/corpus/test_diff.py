"""What changed between two corpora."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from corpus.build import check
from corpus.contents import Contents
from corpus.diff import KINDS, diff

pytestmark = pytest.mark.promise("corpus.diff")


@pytest.fixture
def contents(unjudged: dict[str, Any]) -> Contents:
    compiled, _ = check(["builtin"], **unjudged)
    assert compiled is not None
    return compiled


def test_a_corpus_does_not_differ_from_itself(contents: Contents) -> None:
    found = diff(contents, contents)
    assert found == {kind: {"added": [], "removed": [], "changed": []} for kind in KINDS}


def test_every_kind_of_change_is_named(contents: Contents) -> None:
    first, second, *rest = contents.clauses
    changed = replace(second, text="Other words.", codes=(), effective_end=date(2030, 1, 1), criterion=None)
    new = replace(
        contents,
        clauses=(changed, *rest),
        codes=contents.codes[1:],
        plans=tuple(replace(plan, line_of_business="medicaid") for plan in contents.plans[:1]) + contents.plans[1:],
        facts={**contents.facts, "brand_new": {"type": "bool"}},
    )
    found = diff(contents, new)
    assert found["clauses"]["removed"] == [first.clause_id]
    assert found["codes"] == {"added": [], "removed": [contents.codes[0].code], "changed": []}
    assert found["facts"]["added"] == ["brand_new"]
    assert found["plans"]["changed"][0]["fields"] == {
        "line_of_business": [contents.plans[0].line_of_business, "medicaid"]
    }
    (change,) = found["clauses"]["changed"]
    assert change["id"] == second.clause_id
    assert change["fields"] == {
        "text": [second.text, "Other words."],
        "codes": [list(second.codes), []],
        "effective_end": [second.effective_end and second.effective_end.isoformat(), "2030-01-01"],
        "criterion": [second.criterion, None],
    }


def test_turning_the_two_around_turns_the_report_around(contents: Contents) -> None:
    new = replace(contents, clauses=contents.clauses[1:])
    assert diff(contents, new)["clauses"]["removed"] == diff(new, contents)["clauses"]["added"]
