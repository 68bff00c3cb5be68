import csv
import io
from collections.abc import Callable
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpus.importers.mcd import COLUMNS, import_mcd_csv
from corpus.importers.result import ImportRefused, ImportResult

ROW = {
    "contractor_name_type": "Northern Example Services, LLC\n(MAC - Part A, MAC - Part B)",
    "document_display_id": "L10001",
    "document_type": "LCD",
    "document_version": "3",
    "effective_date": "02/29/2024",
    "note": "",
    "retirement_date": "N/A",
    "title": "Widget Testing",
    "updated_on": "02/01/2024",
    "url": "https://www.example.org/lcd?id=10001&ver=3",
}


def listing(path: Path, *rows: dict[str, str]) -> Path:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, COLUMNS)
    writer.writeheader()
    writer.writerows({**ROW, **row} for row in rows)
    path.write_text(out.getvalue(), encoding="utf-8")
    return path


@pytest.fixture
def imported(tmp_path: Path) -> Callable[..., ImportResult]:
    return lambda *rows: import_mcd_csv(listing(tmp_path / "listing.csv", *rows))


def versions(result: ImportResult, index: int = 0) -> list[dict[str, Any]]:
    return list(result.documents[index]["policy"]["versions"])


@pytest.mark.promise("importers.windows")
def test_a_record_becomes_a_dated_policy_of_its_contractor_that_says_what_the_record_says(
    imported: Callable[..., ImportResult],
) -> None:
    result = imported({})
    policy = result.documents[0]["policy"]
    assert policy["policy_id"] == "L10001"
    assert policy["doc_type"] == "local_coverage_determination"
    assert policy["payer_id"] == "CMS"
    assert policy["jurisdiction"] == ["Northern Example Services, LLC (MAC - Part A, MAC - Part B)"]
    (version,) = policy["versions"]
    assert (version["effective_start"], version["effective_end"]) == (date(2024, 2, 29), None)
    assert version["source_ref"] == ROW["url"]
    assert version["clauses"][0]["text"] == (
        "Local coverage determination L10001, version 3, is titled “Widget Testing”. "
        "It is issued by Northern Example Services, LLC (MAC - Part A, MAC - Part B). "
        "It is effective 2024-02-29 and has no posted retirement date. The record was updated on 2024-02-01. "
        "The record holds no coverage criteria; they are in the document itself."
    )


@pytest.mark.promise("importers.never_determines")
def test_no_record_carries_a_criterion_or_a_code(imported: Callable[..., ImportResult]) -> None:
    result = imported({}, {"document_display_id": "A2", "document_type": "Article"})
    for document in result.documents:
        assert document["policy"]["codes"] == []
        assert all(clause["criterion"] is None for v in document["policy"]["versions"] for clause in v["clauses"])


@pytest.mark.promise("importers.windows")
def test_an_earlier_version_ends_the_day_before_the_next_listed_one(imported: Callable[..., ImportResult]) -> None:
    result = imported({"document_version": "10", "effective_date": "01/01/2026", "note": "Future"}, {})
    early, late = versions(result)
    assert (early["version"], early["effective_end"], early["window_provenance"]) == (
        "v3",
        date(2025, 12, 31),
        "next_version",
    )
    assert (late["version"], late["effective_start"], late["window_provenance"]) == ("v10", date(2026, 1, 1), "posted")


@pytest.mark.promise("importers.windows")
@pytest.mark.parametrize(
    ("retired", "end", "provenance", "gap"),
    [("06/30/2024", date(2024, 6, 30), "retirement", True), ("03/01/2025", date(2024, 12, 31), "next_version", False)],
)
def test_a_version_ends_at_its_retirement_or_its_successor_whichever_comes_first(
    imported: Callable[..., ImportResult], retired: str, end: date, provenance: str, gap: bool
) -> None:
    result = imported({"retirement_date": retired}, {"document_version": "4", "effective_date": "01/01/2025"})
    early = versions(result)[0]
    assert (early["effective_end"], early["window_provenance"], "gap_after" in early) == (end, provenance, gap)


@pytest.mark.promise("importers.windows")
@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"retirement_date": "02/28/2024"}], "version 3 retired on 2024-02-28, before it starts on 2024-02-29"),
        ([{"note": "Retired"}], "without a retirement date"),
        ([{}, {"effective_date": "03/01/2024"}], "listed with different content (lines 2 and 4)"),
        ([{}, {"document_version": "4"}], "version 4 does not start after version 3"),
        ([{}, {"document_version": "4", "effective_date": "N/A"}], "no effective date, the order is unknown"),
    ],
)
def test_contradictory_dates_land_as_ambiguous_and_are_listed(
    imported: Callable[..., ImportResult], rows: list[dict[str, str]], words: str
) -> None:
    result = imported(*rows)
    assert result.counts["landed"] == len(rows)
    assert {version["date_state"] for version in versions(result)} == {"AMBIGUOUS"}
    assert all(version["effective_start"] is None for version in versions(result))
    assert words in result.warnings[0].message


@pytest.mark.promise("importers.windows")
def test_a_record_without_an_effective_date_is_undated(imported: Callable[..., ImportResult]) -> None:
    result = imported({"effective_date": "N/A"})
    assert result.counts["UNDATED"] == 1
    assert versions(result)[0]["effective_start"] is None


@pytest.mark.promise("importers.windows")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 6), st.integers(0, 900), st.none() | st.integers(-50, 900)), min_size=1, max_size=5
    )
)
def test_windows_of_one_document_never_overlap(tmp_path: Path, facts: list[tuple[int, int, int | None]]) -> None:
    def us(days: int) -> str:
        return (date(2020, 1, 1) + timedelta(days=days)).strftime("%m/%d/%Y")

    rows = [
        {
            "document_version": str(version),
            "effective_date": us(start),
            "retirement_date": "N/A" if life is None else us(start + life),
        }
        for version, start, life in facts
    ]
    result = import_mcd_csv(listing(tmp_path / "listing.csv", *rows))
    assert result.counts["landed"] + result.counts["skipped"] == len(rows)
    dated = [version for version in versions(result) if version["date_state"] == "DATED"]
    for earlier, later in pairwise(dated):
        assert earlier["effective_end"] is not None
        assert earlier["effective_start"] <= earlier["effective_end"] < later["effective_start"]
        touching = earlier["effective_end"] + timedelta(days=1) == later["effective_start"]
        assert touching == ("gap_after" not in earlier)


@pytest.mark.promise("importers.faults_listed")
@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"effective_date": "2024-01-01"}, "effective_date: not a date of the form MM/DD/YYYY"),
        ({"effective_date": "02/30/2024"}, "effective_date"),
        ({"effective_date": "1/1/2024"}, "effective_date"),
        ({"retirement_date": "soon"}, "retirement_date"),
        ({"document_version": "0"}, "document_version"),
        ({"document_version": "3.0"}, "document_version"),
        ({"document_type": "NCD"}, "document_type: must be one of LCD, Article"),
        ({"document_type": "Article"}, "starts with A"),
        ({"title": "  "}, "title: empty"),
        ({"url": "javascript:alert(1)"}, "url: not an https address"),
        ({"document_display_id": "../../etc/passwd"}, "document_display_id"),
        ({"document_display_id": ""}, "document_display_id"),
        ({"title": "a\x00b"}, "title: a control character (U+0000)"),
        ({"title": "x" * 100_001}, "title: 100,001 characters"),
    ],
)
def test_a_bad_row_is_listed_and_its_neighbours_land(
    imported: Callable[..., ImportResult], row: dict[str, str], words: str
) -> None:
    result = imported({}, row, {"document_display_id": "L3"})
    assert [document["policy"]["policy_id"] for document in result.documents] == ["L10001", "L3"]
    (fault,) = result.faults
    assert fault.line == 4  # the header is one line, the first record two: its contractor cell holds a line end
    assert words in fault.message
    assert (result.counts["records"], result.counts["landed"], result.counts["skipped"]) == (3, 2, 1)


@pytest.mark.promise("importers.faults_listed")
def test_a_record_listed_twice_lands_once(imported: Callable[..., ImportResult]) -> None:
    result = imported({}, {})
    assert "repeats the record of line 2" in result.faults[0].message
    assert result.counts["DATED"] == 1


@pytest.mark.promise("importers.hostile")
def test_bytes_that_are_not_utf8_cost_their_own_row_only(tmp_path: Path) -> None:
    path = listing(tmp_path / "listing.csv", {"title": "Caf?"}, {"document_display_id": "L3"})
    path.write_bytes(path.read_bytes().replace(b"Caf?", b"Caf\xe9"))
    result = import_mcd_csv(path)
    assert [fault.message for fault in result.faults] == ["title: bytes that are not UTF-8"]
    assert result.counts["landed"] == 1


@pytest.mark.promise("importers.hostile")
def test_an_open_quote_is_a_fault_and_never_swallows_rows_in_silence(tmp_path: Path) -> None:
    path = listing(tmp_path / "listing.csv", {})
    with path.open("a", encoding="utf-8") as file:
        file.write('"open,L2,LCD\nrest\n')
    result = import_mcd_csv(path)
    assert result.counts["landed"] == 1
    assert "not CSV up to line 5" in result.faults[0].message


@pytest.mark.promise("importers.hostile")
def test_a_cell_beyond_the_readers_limit_is_a_fault(imported: Callable[..., ImportResult]) -> None:
    result = imported({}, {"title": "x" * 200_000}, {"document_display_id": "L3"})
    assert [document["policy"]["policy_id"] for document in result.documents] == ["L10001", "L3"]
    assert result.counts["skipped"] >= 1


@pytest.mark.promise("importers.hostile")
def test_a_formula_and_invisible_characters_in_a_title_land_as_plain_text_and_are_flagged(
    imported: Callable[..., ImportResult],
) -> None:
    result = imported({"title": '=HYPERLINK("x")\u202e'})
    assert result.documents[0]["policy"]["title"] == '=HYPERLINK("x")'
    assert {warning.message for warning in result.warnings} == {
        "the title starts like a spreadsheet formula; it is kept as plain text",
        "1 invisible character(s) removed",
    }


@pytest.mark.promise("importers.hostile")
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b'{"title": "x"}\n', "columns missing: contractor_name_type"),
        ("a,b\n".encode("utf-16"), "UTF-16"),
        (b"%PDF-1.7\n", "a PDF"),
        (b'"never closed', "no readable CSV header"),
    ],
)
def test_another_kind_of_file_is_refused_with_what_is_wrong(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "listing.csv"
    path.write_bytes(data)
    with pytest.raises(ImportRefused, match=r"listing\.csv") as refused:
        import_mcd_csv(path)
    assert words in str(refused.value)
    with pytest.raises(ImportRefused, match="cannot be read"):
        import_mcd_csv(tmp_path / "absent.csv")
