import json
import os
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from corpus.build import check
from corpus.importers.markdown import import_markdown
from corpus.importers.mcd import COLUMNS, import_mcd_csv
from corpus.importers.ncd import import_ncd_jsonl
from corpus.importers.result import Collector, ImportRefused, ImportResult
from corpus.importers.write import A_FILE, REPORT, write_import


def policy(policy_id: str, **more: Any) -> dict[str, Any]:
    day = date(2024, 1, 1)
    clause = {"id": "C1", "section": "Scope", "text": "Widgets: yes, \x85 and “no”.", "criterion": None}
    version = {"version": "v1", "effective_start": day, "retirement_date": day, "clauses": [clause]}
    return {"policy": {"policy_id": policy_id, "title": policy_id, "payer_id": "ACM", "versions": [version], **more}}


def result_of(*documents: dict[str, Any]) -> ImportResult:
    return Collector("source.csv", records=len(documents)).result(list(documents), landed=len(documents))


SOURCE = Path("source.csv")
Write = Callable[..., dict[str, Any]]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    return lambda result, out="out", source=SOURCE, **more: write_import(
        result, tmp_path / out, "mcd-csv", source, **more
    )


@pytest.mark.promise("importers.all_or_nothing")
def test_few_policies_have_a_file_each_and_many_share_files(write: Write, tmp_path: Path) -> None:
    few = write(result_of(policy("A-1"), policy("a-1"), policy("codes")), out="few")
    assert sorted(few["files"]) == ["A-1.yaml", "a-1-2.yaml", "codes-2.yaml"]
    many = write(result_of(*(policy(f"P{number}") for number in range(A_FILE + 1))), out="many")
    assert sorted(many["files"]) == ["policies-0001.yaml", "policies-0002.yaml"]
    assert json.loads((tmp_path / "many" / REPORT).read_text(encoding="utf-8")) == many


@pytest.mark.promise("importers.all_or_nothing")
def test_the_same_import_gives_the_same_bytes(write: Write, tmp_path: Path) -> None:
    for out in ("one", "two"):
        write(result_of(policy("A-1", codes=["A9276", "95249"])), out=out)
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == ["A-1.yaml", "codes.yaml", REPORT]
    assert all((tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes() for name in names)
    assert "&id" not in (tmp_path / "one" / "A-1.yaml").read_text(encoding="utf-8")


@pytest.mark.promise("importers.all_or_nothing")
def test_an_unedited_import_of_the_same_source_is_replaced_whole(write: Write, tmp_path: Path) -> None:
    write(result_of(policy("A-1"), policy("A-2")))
    write(result_of(policy("A-3")))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["A-3.yaml", REPORT]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def foreign(out: Path) -> None:
    out.mkdir()
    (out / "notes.txt").write_text("mine", encoding="utf-8")


def edited(out: Path) -> None:
    write_import(result_of(policy("A-1")), out, "mcd-csv", SOURCE)
    (out / "A-1.yaml").write_text("mine", encoding="utf-8")


def added(out: Path) -> None:
    write_import(result_of(policy("A-1")), out, "mcd-csv", SOURCE)
    (out / "mine.yaml").write_text("mine", encoding="utf-8")


def other_source(out: Path) -> None:
    write_import(result_of(policy("A-1")), out, "mcd-csv", Path("other.csv"))


def broken_report(out: Path) -> None:
    out.mkdir()
    (out / REPORT).write_text("[1]", encoding="utf-8")


def a_file(out: Path) -> None:
    out.write_text("mine", encoding="utf-8")


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.promise("importers.all_or_nothing")
@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (foreign, "not an import"),
        (edited, "edited"),
        (added, "edited"),
        (other_source, "holds the mcd-csv import of other.csv"),
        (broken_report, "not an import"),
        (a_file, "is a file"),
    ],
)
def test_what_is_not_this_import_is_never_overwritten(
    write: Write, tmp_path: Path, prepare: Callable[[Path], None], words: str
) -> None:
    prepare(tmp_path / "out")
    before = tree(tmp_path)
    with pytest.raises(ImportRefused, match=words):
        write(result_of(policy("A-9")))
    assert tree(tmp_path) == before


@pytest.mark.promise("importers.all_or_nothing")
def test_a_write_that_fails_half_way_leaves_nothing_and_keeps_the_earlier_import(write: Write, tmp_path: Path) -> None:
    write(result_of(policy("A-1")))
    before = tree(tmp_path)

    def full(done: int, total: int) -> None:
        raise OSError(28, os.strerror(28))

    with pytest.raises(ImportRefused, match="No space left"):
        write(result_of(policy("A-2")), progress=full)
    assert tree(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.promise("importers.hostile")
def test_no_id_leaves_the_target_folder(write: Write, tmp_path: Path) -> None:
    done = write(result_of(policy("../../evil"), policy("/etc/passwd"), policy("..")))
    assert sorted(done["files"]) == ["etc-passwd.yaml", "evil.yaml", "policy.yaml"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


BULLETIN = """---
policy_id: ACM-MP-1
title: "Widgets: yes"
payer_id: ACM
version: v1
effective_start: 2024-07-01
codes: [A9276, 0501T]
---
A widget is covered: always.

```criterion
covers_if: {fact: sore, op: "=", value: true}
```
"""


@pytest.mark.promise("importers.faults_listed")
def test_what_is_imported_passes_the_corpus_check(tmp_path: Path) -> None:
    row = "Example\n(MAC)", "L1", "LCD", "{}", "{}", "", "{}", "on", "N/A", "https://example.org/1"
    line = ",".join(f'"{cell}"' for cell in row)
    rows = [("1", "01/01/2020", "06/30/2020"), ("2", "01/01/2021", "N/A"), ("3", "01/01/2022", "N/A")]
    rows_of_another = [("1", "01/01/2020", "01/01/2019"), ("2", "01/01/2021", "N/A")]
    text = "\n".join(
        [",".join(COLUMNS), *(line.format(*cells) for cells in rows)]
        + [line.replace("L1", "L2").format(*cells) for cells in rows_of_another]
    )
    (tmp_path / "l.csv").write_text(text, encoding="utf-8")
    statement = {"title": "Widget", "text": "Covered:\n- effective July 1, 1999 for all."}
    (tmp_path / "n.jsonl").write_text(json.dumps(statement), encoding="utf-8")
    (tmp_path / "b.md").write_text(BULLETIN, encoding="utf-8")
    corpus = tmp_path / "corpus"
    write_import(import_mcd_csv(tmp_path / "l.csv"), corpus / "l", "mcd-csv", tmp_path / "l.csv")
    write_import(import_ncd_jsonl(tmp_path / "n.jsonl"), corpus / "n", "ncd-jsonl", tmp_path / "n.jsonl")
    write_import(import_markdown(tmp_path / "b.md"), corpus / "b", "markdown", tmp_path / "b.md")
    payers = "payer: {payer_id: CMS, name: Medicare}\n---\npayer: {payer_id: ACM, name: Acme}\n"
    (corpus / "payers.yaml").write_text(payers, encoding="utf-8")
    contents, faults = check([corpus], criterion_validator=lambda *_: [], fact_validator=lambda *_: [])
    assert faults == ()
    assert contents is not None
    found = {clause.clause_id: clause for clause in contents.clauses}
    assert sorted(found) == [
        "ACM-MP-1.v1.C1",
        "L1.v1.C1",
        "L1.v2.C1",
        "L1.v3.C1",
        "L2.v1.C1",
        "L2.v2.C1",
        "MCD-NCD-WIDGET.v1.C1",
    ]
    assert found["ACM-MP-1.v1.C1"].criterion == {"covers_if": {"fact": "sore", "op": "=", "value": True}}
    assert [found[f"L1.v{number}.C1"].in_effect(date(2021, 12, 31)) for number in (1, 2, 3)] == [False, True, False]
    assert not found["L2.v2.C1"].in_effect(date(2022, 1, 1))
    assert found["MCD-NCD-WIDGET.v1.C1"].effective_start == date(1999, 7, 1)
