"""Every fault of authored files is found at once; one broken file a mistake, with the words its message must hold."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from corpus.build import build, check
from corpus.errors import CorpusError, CorpusFaults

pytestmark = pytest.mark.promise("corpus.every_fault")

HERE = Path(__file__).parent
BROKEN = sorted((HERE / "broken").glob("*.yaml"))


def names_undefined_facts_and_nothing_else(criterion: Mapping[str, Any], facts: Mapping[str, Any]) -> list[str]:
    def names(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            if "fact" in node:
                yield node["fact"]
            for inner in node.values():
                yield from names(inner)

    return [f"undefined fact {name}" for name in names(criterion) if name not in facts]


def wants_a_type_and_nothing_else(name: str, definition: Mapping[str, Any]) -> list[str]:
    return [] if "type" in definition else ["the stub wants a type"]


LENIENT: dict[str, Any] = {
    "criterion_validator": names_undefined_facts_and_nothing_else,
    "fact_validator": wants_a_type_and_nothing_else,
}


def expected(file: Path) -> list[tuple[int, str, str]]:
    lines = [line.removeprefix("# fault: ") for line in file.read_text("utf-8").splitlines() if line[:8] == "# fault:"]
    return [(int(line), id_, words) for line, id_, words in (text.split(" | ", 2) for text in lines)]


@pytest.mark.parametrize("file", BROKEN, ids=lambda file: file.stem)
def test_a_mistake_is_named_with_its_line_and_what_to_change(file: Path) -> None:
    contents, faults = check([HERE / "sound.yaml", file], **LENIENT)
    wanted = expected(file)
    assert wanted
    assert contents is None
    assert len(faults) == len(wanted), faults
    for fault in faults:
        assert fault.file == file.as_posix()
        assert any((fault.line, fault.id) == (line, id_) and words in fault.message for line, id_, words in wanted), (
            fault
        )


def test_the_sound_file_has_no_fault() -> None:
    contents, faults = check([HERE / "sound.yaml"], **LENIENT)
    assert faults == ()
    assert contents is not None
    assert {clause.clause_id for clause in contents.clauses} == {"ACM-MP-0001.v1.C1", "ACM-MP-0001.v2.C1"}


def test_all_broken_files_together_hide_none_of_the_faults_they_have_apart() -> None:
    _, faults = check([HERE / "sound.yaml", *BROKEN], **LENIENT)
    found = {(fault.file, fault.line, fault.id) for fault in faults}
    assert {(file.as_posix(), line, id_) for file in BROKEN for line, id_, _ in expected(file)} <= found


def test_a_fault_of_form_does_not_make_what_refers_to_it_a_fault_too(tmp_path: Path, sound: Path) -> None:
    (tmp_path / "policy.yaml").write_text(
        "policy: {policy_id: ACM-MP-7, doc_type: provider_faq, payer_id: ACM, versions: [{version: v1,"
        " effective_start: 2024-01-01, clauses: [{id: C1, section: S, text: T.}]}]}\n"
        "---\n"
        "rider: {rider_id: ACM-RID-7, title: R, payer_id: ACM, plan_id: ACM-GOLD, overrides_policy_ids: [ACM-MP-7],"
        " effective_start: 2024-01-01, clauses: [{id: C1, section: Rider, codes: [A9276], text: T.,"
        " criterion: {states: so, contradicts: [ACM-MP-7.v1.C1]}}]}\n",
        encoding="utf-8",
    )
    _, faults = check([sound, tmp_path], **LENIENT)
    assert [fault.message for fault in faults] == ["'title' is missing; write it"]


def test_an_ambiguous_version_may_have_dates_that_contradict_one_another(tmp_path: Path, sound: Path) -> None:
    (tmp_path / "policy.yaml").write_text(
        "policy: {policy_id: ACM-MP-7, title: T, doc_type: billing_article, payer_id: ACM, versions: [{version: v1,"
        " effective_start: 2024-01-01, retirement_date: 2023-01-01, date_state: AMBIGUOUS,"
        " clauses: [{id: C1, section: S, text: T.}]}]}\n",
        encoding="utf-8",
    )
    contents, faults = check([sound, tmp_path], **LENIENT)
    assert faults == ()
    assert contents is not None


def test_a_gap_with_its_reason_is_no_fault(tmp_path: Path, sound: Path) -> None:
    text = (HERE / "broken" / "gap_between_versions.yaml").read_text("utf-8")
    (tmp_path / "policy.yaml").write_text(
        text.replace("effective_end: 2024-06-30", "effective_end: 2024-06-30\n      gap_after: withdrawn in July"),
        "utf-8",
    )
    assert check([sound, tmp_path], **LENIENT)[1] == ()


def test_a_file_that_is_not_utf8_is_a_fault_of_that_file(tmp_path: Path, sound: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"policy: {title: caf\xe9}\n")
    _, faults = check([sound, tmp_path], **LENIENT)
    assert [(fault.file, fault.message) for fault in faults] == [
        ((tmp_path / "latin.yaml").as_posix(), "is not UTF-8 text")
    ]


def test_a_source_that_is_not_there_or_empty_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no authored corpus at"):
        check([tmp_path / "nowhere"], **LENIENT)
    with pytest.raises(CorpusError, match=r"no \.yaml file under"):
        check([tmp_path], **LENIENT)


@pytest.mark.promise("corpus.sound_only")
def test_nothing_is_written_when_there_is_a_fault(tmp_path: Path, sound: Path) -> None:
    out = tmp_path / "store.sqlite"
    build([sound], out, **LENIENT)
    before = out.read_bytes()
    with pytest.raises(CorpusFaults, match="3 fault") as caught:
        build([sound, HERE / "broken" / "two_faults_in_one_file.yaml"], out, **LENIENT)
    assert len(caught.value.faults) == 3
    assert out.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store.sqlite"]
