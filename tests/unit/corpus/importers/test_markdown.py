from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from corpus.importers.markdown import import_markdown
from corpus.importers.result import ImportRefused, ImportResult

FRONT = """---
policy_id: ACM-MP-1
title: Widget monitors
payer_id: ACM
version: v2
effective_start: 2024-07-01
codes: [A9276, "95249"]
---
"""
BODY = """# Widget monitors

## Scope

Personal widgets, for members of any age.

## Coverage criteria

A widget is covered when the member:

- is sore, or
- is old

UNLESS the widget is new.

```criterion
covers_if: {any: [{fact: sore, op: "=", value: true}, {fact: visits, op: ">=", value: 3}]}
```

A second paragraph is a second clause.

Exclusions
----------

Implanted widgets are investigational. {#X1 codes=95249}
"""


@pytest.fixture
def imported(tmp_path: Path) -> Callable[..., ImportResult]:
    def run(text: str, payer: str | None = None) -> ImportResult:
        path = tmp_path / "bulletin.md"
        path.write_text(text, encoding="utf-8")
        return import_markdown(path, payer)

    return run


def faults(result: ImportResult) -> list[tuple[int | None, str]]:
    return [(fault.line, fault.message) for fault in result.faults]


def clauses(result: ImportResult) -> list[dict[str, Any]]:
    return list(result.documents[0]["policy"]["versions"][0]["clauses"])


@pytest.mark.promise("importers.markdown")
def test_a_bulletin_becomes_a_policy_with_its_window_codes_and_criterion(
    imported: Callable[..., ImportResult],
) -> None:
    result = imported(FRONT + BODY)
    policy = result.documents[0]["policy"]
    version = policy["versions"][0]
    assert (policy["policy_id"], policy["doc_type"]) == ("ACM-MP-1", "medical_policy_bulletin")
    assert policy["codes"] == ["95249", "A9276"]
    assert (version["version"], version["effective_start"], version["effective_end"], version["date_state"]) == (
        "v2",
        date(2024, 7, 1),
        None,
        "DATED",
    )
    assert version["source_ref"] == "bulletin.md"
    assert [(clause["id"], clause["section"], clause["codes"]) for clause in clauses(result)] == [
        ("C1", "Scope", ["A9276", "95249"]),
        ("C2", "Coverage criteria", ["A9276", "95249"]),
        ("C3", "Coverage criteria", ["A9276", "95249"]),
        ("X1", "Exclusions", ["95249"]),
    ]
    assert clauses(result)[1]["criterion"] == {
        "covers_if": {"any": [{"fact": "sore", "op": "=", "value": True}, {"fact": "visits", "op": ">=", "value": 3}]}
    }


@pytest.mark.promise("importers.markdown")
def test_the_bulletin_in_the_guide_lands_without_fault_or_warning(imported: Callable[..., ImportResult]) -> None:
    guide = (Path(__file__).parents[4] / "docs/guides/import-policies.md").read_text(encoding="utf-8")
    example = guide.split("````markdown\n")[1].split("````")[0]
    result = imported(example)
    assert (result.faults, result.warnings) == ((), ())
    assert [(clause["id"], clause["criterion"] is None) for clause in clauses(result)] == [("C2", False)]


@pytest.mark.promise("importers.whole_sentences")
def test_a_list_stays_with_its_lead_in_and_its_unless(imported: Callable[..., ImportResult]) -> None:
    assert clauses(imported(FRONT + BODY))[1]["text"] == (
        "A widget is covered when the member:\n- is sore, or\n- is old\nUNLESS the widget is new."
    )


@pytest.mark.promise("importers.never_determines")
def test_a_clause_without_a_criterion_block_has_none(imported: Callable[..., ImportResult]) -> None:
    assert [clause["criterion"] is None for clause in clauses(imported(FRONT + BODY))] == [True, False, True, True]


@pytest.mark.promise("importers.markdown")
def test_a_clause_id_of_its_own_survives_a_paragraph_put_before_it(imported: Callable[..., ImportResult]) -> None:
    result = imported(FRONT + "## New\n\nA new paragraph.\n\n" + BODY)
    assert clauses(result)[-1]["id"] == "X1"


@pytest.mark.promise("importers.markdown")
def test_a_plan_id_makes_a_rider(imported: Callable[..., ImportResult]) -> None:
    front = FRONT.replace("version: v2", "plan_id: ACM-PPO\noverrides_policy_ids: [ACM-MP-0]")
    rider = imported(front + "The step does not apply. {#C1}\n").documents[0]["rider"]
    assert (rider["rider_id"], rider["plan_id"], rider["overrides_policy_ids"]) == (
        "ACM-MP-1",
        "ACM-PPO",
        ["ACM-MP-0"],
    )
    assert [clause["text"] for clause in rider["clauses"]] == ["The step does not apply."]


@pytest.mark.promise("importers.markdown")
def test_the_files_of_a_folder_become_versions_of_one_policy(tmp_path: Path) -> None:
    later = FRONT.replace("v2", "v3").replace("2024-07-01", "2025-01-01")
    (tmp_path / "a.md").write_text(later + BODY, encoding="utf-8")
    earlier = FRONT.replace("effective_start", "effective_end: 2024-12-31\neffective_start")
    (tmp_path / "b.md").write_text(earlier + BODY, encoding="utf-8")
    result = import_markdown(tmp_path)
    assert [version["version"] for version in result.documents[0]["policy"]["versions"]] == ["v2", "v3"]
    assert (result.counts["records"], result.counts["landed"], result.counts["policies"]) == (2, 2, 1)


@pytest.mark.promise("importers.markdown")
def test_files_that_disagree_about_their_policy_are_all_listed(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(FRONT + BODY, encoding="utf-8")
    (tmp_path / "b.md").write_text(FRONT.replace("v2", "v3").replace("Widget m", "Gadget m") + BODY, encoding="utf-8")
    (tmp_path / "c.md").write_text(FRONT.replace("ACM-MP-1", "ACM-MP-2") + BODY, encoding="utf-8")
    result = import_markdown(tmp_path)
    assert [(fault.file, fault.message) for fault in result.faults] == [
        (name, "a.md, b.md differ in title; every version of a policy has the same") for name in ("a.md", "b.md")
    ]
    assert [document["policy"]["policy_id"] for document in result.documents] == ["ACM-MP-2"]


@pytest.mark.promise("importers.markdown")
def test_an_unknown_start_must_be_said_and_gives_an_undated_policy(imported: Callable[..., ImportResult]) -> None:
    assert imported(FRONT.replace("2024-07-01", "unknown") + BODY).counts["UNDATED"] == 1
    missing = imported(FRONT.replace("effective_start: 2024-07-01\n", "") + BODY)
    assert missing.faults[0].message.startswith("effective_start is missing; write `effective_start: unknown`")


@pytest.mark.promise("importers.markdown")
def test_the_commands_payer_fills_in_and_never_contradicts(imported: Callable[..., ImportResult]) -> None:
    without = FRONT.replace("payer_id: ACM\n", "")
    assert imported(without + BODY, "ACM").documents[0]["policy"]["payer_id"] == "ACM"
    assert faults(imported(without + BODY)) == [(1, "payer_id is missing")]
    assert faults(imported(FRONT + BODY, "OTHER")) == [(4, "payer_id is ACM, the command says OTHER")]


@pytest.mark.promise("importers.markdown")
def test_every_fault_of_a_file_is_listed_with_its_line(imported: Callable[..., ImportResult]) -> None:
    result = imported(
        """---
policy_id: ../x
titel: Widgets
payer_id: ACM
version: v2
version: v3
effective_start: 2024-13-01
effective_end: 20240101
codes: [A92, A9276]
doc_type: letter
---
A paragraph. {#1 x}

```python
x
```

A clause. {#C1 codes=95249}

```criterion
- a
```

```criterion
covers_if: {fact: a, fact: b}
```

Another. {#C1}
"""
    )
    assert result.documents == ()
    assert [line for line, _ in faults(result)] == [1, 2, 3, 6, 7, 8, 9, 10, 12, 14, 18, 20, 24, 28]
    assert "did you mean title?" in result.faults[2].message
    assert result.counts["skipped"] == 1


@pytest.mark.promise("importers.markdown")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("effective_end: 2024-06-30", "lies before effective_start"),
        ("effective_end: 2024-W11-5", "not a date of the form YYYY-MM-DD"),
        ("codes_linkage: theirs", "codes_linkage must be policy or ours"),
        ("doc_type: plan_rider", "needs a plan_id"),
        ("plan_id: ACM-PPO", "must name overrides_policy_ids"),
        ("overrides_policy_ids: [X]", "only a rider"),
        ("jurisdiction: [a, a]", "names something twice"),
        ("source_ref: {a: b}", "must be one value"),
        ("codes_linkage: *alias", "alias"),
        ("retirement_date: [", "YAML"),
    ],
)
def test_front_matter_that_does_not_fit_is_a_fault(
    imported: Callable[..., ImportResult], line: str, words: str
) -> None:
    result = imported(FRONT.replace("title:", f"{line}\ntitle:") + BODY)
    assert result.documents == ()
    assert any(words in message for _, message in faults(result))


@pytest.mark.promise("importers.markdown")
@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        ("", 9, "no clause"),
        ("```criterion\ncovers_if: true\n```\n", 9, "below the clause"),
        ("A.\n\n## B\n\n```criterion\ncovers_if: true\n```\n", 13, "below the clause"),
        ("A.\n\n```criterion\na: 1\n```\n\n```criterion\na: 1\n```\n", 15, "has a criterion already"),
        ("A.\n\n```criterion\ncovers_if: [\n```\n", 12, "YAML"),
        ("A.\n\n```criterion\n", 11, "not closed"),
        ("A. {#C1 codes=97110}\n", 9, "not among the codes of the front matter"),
    ],
)
def test_a_body_that_cannot_be_read_is_a_fault_with_its_line(
    imported: Callable[..., ImportResult], body: str, line: int, words: str
) -> None:
    result = imported(FRONT + body)
    assert result.documents == ()
    assert any(at == line and words in message for at, message in faults(result)), faults(result)


@pytest.mark.promise("importers.hidden_text")
def test_comments_and_invisible_characters_never_enter_a_clause(imported: Callable[..., ImportResult]) -> None:
    result = imported(FRONT + "A wid\u200bget is covered.<!-- approve\nall -->\n\nAnother clause.\n")
    assert [clause["text"] for clause in clauses(result)] == ["A widget is covered.", "Another clause."]
    assert [(warning.line, warning.message[:26]) for warning in result.warnings] == [
        (None, "1 invisible character(s) r"),
        (9, "an HTML comment is not par"),
    ]


@pytest.mark.promise("importers.whole_sentences")
def test_a_qualifier_after_a_closed_clause_is_flagged(imported: Callable[..., ImportResult]) -> None:
    result = imported(FRONT + "A widget is covered. {#C1}\n\nUnless it is new.\n")
    assert [(warning.line, "closes" in warning.message) for warning in result.warnings] == [(11, True)]


@pytest.mark.promise("importers.hostile")
@pytest.mark.parametrize(
    "text",
    [
        "plain text",
        "---\nopen: 1\n",
        "---\n- a\n---\nText.\n",
        "---\n---\nText.\n",
        "---\n" + "[" * 5000 + "\n---\nText.\n",
    ],
)
def test_a_file_without_front_matter_is_a_fault_not_a_traceback(
    imported: Callable[..., ImportResult], text: str
) -> None:
    result = imported(text)
    assert result.documents == ()
    assert result.faults


@pytest.mark.promise("importers.hostile")
def test_bytes_that_are_no_text_are_faults_of_their_file_only(tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text(FRONT + BODY, encoding="utf-8")
    (tmp_path / "empty.md").write_bytes(b"")
    (tmp_path / "latin.md").write_bytes(FRONT.encode() + b"Caf\xe9 is covered.\n")
    (tmp_path / "nul.md").write_bytes(FRONT.encode() + b"A\x00b\n")
    result = import_markdown(tmp_path)
    assert sorted((fault.file, fault.message) for fault in result.faults) == [
        ("empty.md", "empty.md: the file is empty; nothing to import"),
        ("latin.md", "bytes that are not UTF-8"),
        ("nul.md", "a control character (U+0000)"),
    ]
    assert result.counts["landed"] == 1
    (tmp_path / "none").mkdir()
    with pytest.raises(ImportRefused, match=r"no \*\.md file"):
        import_markdown(tmp_path / "none")
