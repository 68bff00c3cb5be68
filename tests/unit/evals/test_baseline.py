import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from eval_world import PROVENANCE

from cda.errors import UsageError, exit_code
from evals import baseline_setting
from evals.baseline import entry_of, read_baseline, write_baseline
from evals.baseline_setting import BaselineRefused, commit_to_name, set_to
from evals.comparison import compare, refuse_other_cases, told
from evals.provenance import Tree, working_tree
from evals.suite import Decision, Run


def run(*, right: bool = True, recall: float = 1.0, digest: str = "d1", **provenance: Any) -> Run:
    return Run(
        scorecard={
            "case_set": {"count": 2, "digest": digest},
            "recall": recall,
            "latency_s": 0.3,
            "intervals": {"recall": [0.9, 1.0]},
            "provenance": PROVENANCE | provenance,
        },
        decisions={"A": Decision("COVERED DETERMINE", True), "B": Decision("COVERED REVIEW", right)},
        figures={"recall": True},
        failures=(),
        lines=(),
    )


def entry(**changes: Any) -> dict[str, Any]:
    return entry_of(run(**changes), "abc", None)


def hushed(_: str) -> None:
    return None


@pytest.mark.promise("evals.baseline")
def test_what_is_written_is_read_and_another_suite_is_left_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    write_baseline("coverage", entry(), file)
    write_baseline("retrieval", entry(recall=0.5), file)
    assert read_baseline("coverage", file) == entry()
    assert read_baseline("guidance", file) is None
    assert "latency" not in file.read_text(encoding="utf-8")


@pytest.mark.promise("evals.baseline")
@pytest.mark.parametrize(
    "edit",
    [
        lambda d: d["suites"]["coverage"]["figures"].update(recall=0.9),
        lambda d: d["suites"]["coverage"]["cases"].update(B="right COVERED REVIEW"),
        lambda d: d["suites"]["coverage"]["provenance"].update(embedder="another"),
        lambda d: d.pop("digest"),
        lambda d: d.update(format=7),
    ],
)
def test_an_edited_baseline_is_refused(tmp_path: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    file = tmp_path / "baseline.json"
    write_baseline("coverage", entry(right=False), file)
    document = json.loads(file.read_text(encoding="utf-8"))
    edit(document)
    file.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(UsageError, match="version control"):
        read_baseline("coverage", file)


@pytest.mark.promise("evals.baseline")
def test_what_is_worse_needs_a_reason_and_the_reason_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "baseline.json"
    kept: list[dict[str, Any]] = []
    monkeypatch.setattr(baseline_setting, "write_baseline", lambda suite, held: kept.append(held))
    worse = compare(entry(), run(right=False))
    with pytest.raises(BaselineRefused, match=r"B: was right, is wrong.*--accept") as refused:
        set_to("coverage", run(right=False), worse, commit="abc", accept=None, say=hushed)
    assert exit_code(refused.value) == 1
    assert not file.exists()
    assert not kept
    set_to("coverage", run(right=False), worse, commit="abc", accept="the label was wrong", say=hushed)
    assert kept[0]["accepted"] == "the label was wrong"


@pytest.mark.promise("evals.baseline")
def test_a_dirty_tree_is_refused_and_no_git_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline_setting, "working_tree", lambda: Tree("abc", ("cda/x.py",)))
    with pytest.raises(UsageError, match=r"uncommitted changes \(cda/x.py\)"):
        commit_to_name(hushed)
    monkeypatch.setattr(baseline_setting, "working_tree", lambda: Tree(None))
    said: list[str] = []
    assert commit_to_name(said.append) is None
    assert "not checked" in said[0]


@pytest.mark.promise("evals.baseline")
def test_the_tree_is_read_from_git_and_the_baseline_itself_does_not_count(tmp_path: Path) -> None:
    assert working_tree(tmp_path) == Tree(None)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    (tmp_path / "a.txt").write_text("a", encoding="utf-8")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "a"], check=True)
    clean = working_tree(tmp_path)
    assert len(clean.commit or "") == 40
    assert clean.dirty == ()
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "baseline.json").write_text("{}", encoding="utf-8")
    (tmp_path / "a.txt").write_text("b", encoding="utf-8")
    subprocess.run([*git, "add", "evals"], check=True)
    assert working_tree(tmp_path).dirty == ("a.txt",)


@pytest.mark.promise("evals.diff")
def test_other_cases_are_not_compared() -> None:
    with pytest.raises(UsageError, match="the baseline has no such suite"):
        refuse_other_cases(None, run().scorecard["case_set"])
    with pytest.raises(UsageError, match="are not the baseline's"):
        refuse_other_cases(entry(), run(digest="d2").scorecard["case_set"])
    sets = {"count": 2, "digest": "x", "sets": {"floor": {"count": 2, "digest": "f"}}}
    with pytest.raises(UsageError, match="knows no set floor"):
        refuse_other_cases(entry(), sets)
    refuse_other_cases({**entry(), "case_set": {**sets, "digest": "whole"}}, sets)


@pytest.mark.promise("evals.diff")
def test_like_for_like_every_worse_figure_and_every_case_that_turned_wrong_is_a_regression() -> None:
    found = compare(entry(), run(right=False, recall=0.9))
    assert found["label"] == "like for like"
    assert found["regressions"] == ["B: was right, is wrong", "recall: was 1.0, is 0.9"]
    assert compare(entry(), run())["regressions"] == []


@pytest.mark.promise("evals.diff")
def test_where_a_part_moved_it_is_named_and_only_flips_are_held_against_the_run() -> None:
    found = compare(entry(), run(right=False, recall=0.9, embedder="minilm-int8"))
    assert found["label"] == "NOT like for like: moved embedder"
    assert found["moved"] == {"embedder": ["tfidf", "minilm-int8"]}
    assert found["regressions"] == ["B: was right, is wrong"]
    assert any("moved embedder: tfidf -> minilm-int8" in line for line in told(found))
    assert any("the same: backend local, reranker adaptive, lexical tantivy" in line for line in told(found))


@pytest.mark.promise("evals.mcnemar")
def test_a_comparison_says_what_it_cannot_see() -> None:
    found = compare(entry(), run(right=False))
    assert (found["only_baseline_right"], found["only_this_right"], found["mcnemar_p"]) == (1, 0, 1.0)
    assert found["smallest_visible"] == {"flips": 6, "difference": 3.0, "alpha": 0.05}
    assert "cannot be told from chance" in told(found)[-1]
