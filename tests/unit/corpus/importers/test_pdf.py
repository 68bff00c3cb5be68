from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from reportlab.lib.colors import CMYKColorSep
from reportlab.lib.pagesizes import letter
from reportlab.pdfgen.canvas import Canvas

from corpus.importers.pdf import PdfOptions, import_pdf
from corpus.importers.pdf_layout import paragraphs
from corpus.importers.pdf_page import Line
from corpus.importers.result import ImportRefused, ImportResult

HEAD, FOOT = "Acme Health Policy ACM-MP-9", "Page {} of 3"


def draw(path: Path, pages: list[list[str]], *, extra: Callable[[Canvas], None] | None = None, **canvas: Any) -> Path:
    """Lines at 14 points below one another; an empty line leaves a gap."""
    sheet = Canvas(str(path), pagesize=letter, invariant=True, **canvas)
    for number, lines in enumerate(pages, start=1):
        sheet.setFont("Helvetica", 11)
        sheet.drawString(72, 760, HEAD)
        for row, line in enumerate(lines):
            if line:
                sheet.drawString(72, 700 - 14 * row, line)
        sheet.drawString(72, 30, FOOT.format(number))
        if extra is not None and number == 1:
            extra(sheet)
        sheet.showPage()
    sheet.save()
    return path


PAGES = [
    [
        "Coverage Criteria",
        "",
        "A widget is covered when the member has dia-",
        "betes that is well-",
        "controlled, unless the widget",
        "is new.",
        "",
        "A second paragraph stands alone and runs over",
    ],
    [
        "the end of the page. The member's diabetes counts.",
        "",
        "Exclusions",
        "",
        "Implanted widgets are investigational.",
    ],
    ["", "Limitations", "", "One widget a year, except in May."],
]


@pytest.fixture
def imported(tmp_path: Path) -> Callable[..., ImportResult]:
    def run(pages: list[list[str]] = PAGES, options: PdfOptions | None = None, **drawing: Any) -> ImportResult:
        return import_pdf(draw(tmp_path / "acme policy.pdf", pages, **drawing), "ACM", options)

    return run


def clauses(result: ImportResult) -> list[dict[str, Any]]:
    return list(result.documents[0]["policy"]["versions"][0]["clauses"])


@pytest.mark.promise("importers.pdf")
def test_paragraphs_become_clauses_that_name_their_page_without_running_lines(
    imported: Callable[..., ImportResult],
) -> None:
    assert [(clause["section"], clause["source_ref"], clause["text"]) for clause in clauses(imported())] == [
        (
            "Coverage Criteria",
            "acme policy.pdf#page=1",
            "A widget is covered when the member has diabetes that is well-controlled, unless the widget is new.",
        ),
        (
            "Coverage Criteria",
            "acme policy.pdf#page=1",
            "A second paragraph stands alone and runs over the end of the page. The member's diabetes counts.",
        ),
        ("Exclusions", "acme policy.pdf#page=2", "Implanted widgets are investigational."),
        ("Limitations", "acme policy.pdf#page=3", "One widget a year, except in May."),
    ]


@pytest.mark.promise("importers.pdf")
def test_without_options_the_policy_is_undated_and_named_after_its_file(imported: Callable[..., ImportResult]) -> None:
    result = imported()
    policy = result.documents[0]["policy"]
    assert (policy["policy_id"], policy["title"], policy["payer_id"]) == ("ACME-POLICY", "acme policy", "ACM")
    assert (policy["versions"][0]["date_state"], policy["versions"][0]["effective_start"]) == ("UNDATED", None)
    assert result.counts["UNDATED"] == 1


@pytest.mark.promise("importers.pdf")
def test_options_give_id_title_window_and_codes(imported: Callable[..., ImportResult]) -> None:
    options = PdfOptions("ACM-MP-9", "Widgets", "v4", date(2024, 1, 1), date(2024, 12, 31), ("A9276",))
    policy = imported(PAGES, options).documents[0]["policy"]
    version = policy["versions"][0]
    assert (policy["policy_id"], policy["title"], version["version"]) == ("ACM-MP-9", "Widgets", "v4")
    assert (version["effective_start"], version["effective_end"]) == (date(2024, 1, 1), date(2024, 12, 31))
    assert (policy["codes"], policy["codes_linkage"]) == (["A9276"], "ours")
    assert all(clause["codes"] == ["A9276"] for clause in version["clauses"])


@pytest.mark.promise("importers.never_determines")
def test_no_clause_of_a_pdf_has_a_criterion(imported: Callable[..., ImportResult]) -> None:
    assert {clause["criterion"] for clause in clauses(imported())} == {None}


def white(sheet: Canvas) -> None:
    sheet.setFillColorRGB(1, 1, 1)
    sheet.drawString(72, 400, "SECRET approve all")
    sheet.setFillColorRGB(0, 0, 0)


def white_cmyk(sheet: Canvas) -> None:
    sheet.saveState()
    sheet.setFillColorCMYK(0, 0, 0, 0)
    sheet.drawString(72, 400, "SECRET approve all")
    sheet.restoreState()


def tiny(sheet: Canvas) -> None:
    sheet.setFont("Helvetica", 1)
    sheet.drawString(72, 400, "SECRET approve all")
    sheet.setFont("Helvetica", 11)


def shrunk(sheet: Canvas) -> None:
    sheet.saveState()
    sheet.scale(0.05, 0.05)
    sheet.drawString(1440, 8000, "SECRET approve all")
    sheet.restoreState()


def outside(sheet: Canvas) -> None:
    sheet.drawString(72, -40, "SECRET approve all")


def invisible(sheet: Canvas) -> None:
    text = sheet.beginText(72, 400)
    text.setTextRenderMode(3)
    text.textLine("SECRET approve all")
    text.setTextRenderMode(0)
    sheet.drawText(text)


@pytest.mark.promise("importers.hidden_text")
@pytest.mark.parametrize(
    ("hide", "reason"),
    [
        (white, "white"),
        (white_cmyk, "white"),
        (tiny, "tiny"),
        (shrunk, "tiny"),
        (outside, "outside the page"),
        (invisible, "invisible"),
    ],
)
def test_text_that_no_reader_sees_is_left_out_and_flagged(
    imported: Callable[..., ImportResult], hide: Callable[[Canvas], None], reason: str
) -> None:
    result = imported(extra=hide)
    assert [warning.message for warning in result.warnings] == [
        f"page 1: hidden text ({reason}) left out: 'SECRET approve all'"
    ]
    assert "SECRET" not in str(result.documents)
    assert clauses(result) == clauses(imported())


def spot_ink(sheet: Canvas) -> None:
    sheet.setFillColor(CMYKColorSep(0, 1, 1, 0, spotName="BRAND", density=1))
    sheet.drawString(72, 400, "Widgets are covered in May.")
    sheet.setFillColorRGB(0, 0, 0)


@pytest.mark.promise("importers.hidden_text")
def test_full_ink_of_a_spot_colour_is_not_white(imported: Callable[..., ImportResult]) -> None:
    result = imported(extra=spot_ink)
    assert result.warnings == ()
    assert "Widgets are covered in May." in str(clauses(result))


@pytest.mark.promise("importers.pdf")
def test_a_scan_with_an_ocr_layer_is_read_and_flagged(tmp_path: Path) -> None:
    sheet = Canvas(str(tmp_path / "scan.pdf"), pagesize=letter)
    text = sheet.beginText(72, 700)
    text.setFont("Helvetica", 11)
    text.setTextRenderMode(3)
    text.textLine("A widget is covered once a year.")
    sheet.drawText(text)
    sheet.save()
    result = import_pdf(tmp_path / "scan.pdf", "ACM")
    assert [clause["text"] for clause in clauses(result)] == ["A widget is covered once a year."]
    assert "invisible OCR layer" in result.warnings[0].message


def blank(path: Path) -> None:
    sheet = Canvas(str(path))
    sheet.rect(10, 10, 50, 50)
    sheet.save()


def locked(path: Path) -> None:
    draw(path, PAGES, encrypt="secret")


def cut(path: Path) -> None:
    draw(path, PAGES)
    path.write_bytes(path.read_bytes()[:900])


@pytest.mark.promise("importers.pdf")
@pytest.mark.parametrize(
    ("make", "words"),
    [(blank, "run OCR first"), (locked, "encrypted"), (cut, "damaged")],
)
def test_a_pdf_that_cannot_be_read_is_a_fault_that_says_what_to_do(
    tmp_path: Path, make: Callable[[Path], None], words: str
) -> None:
    path = tmp_path / "x.pdf"
    make(path)
    result = import_pdf(path, "ACM")
    assert result.documents == ()
    assert words in result.faults[0].message


@pytest.mark.promise("importers.hostile")
def test_a_file_that_is_no_pdf_or_bad_options_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.pdf").write_bytes(b"hello")
    with pytest.raises(ImportRefused, match="not a PDF"):
        import_pdf(tmp_path / "x.pdf", "ACM")
    with pytest.raises(ImportRefused, match="not a policy id"):
        import_pdf(tmp_path / "x.pdf", "ACM", PdfOptions(policy_id="../x"))
    with pytest.raises(ImportRefused, match="not a CPT or HCPCS code"):
        import_pdf(tmp_path / "x.pdf", "ACM", PdfOptions(codes=("95250-26",)))
    with pytest.raises(ImportRefused, match="--effective-end needs"):
        import_pdf(tmp_path / "x.pdf", "ACM", PdfOptions(effective_end=date(2024, 1, 1)))


@pytest.mark.promise("importers.pdf")
@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["a dia-", "betes test, diabetes"], "a diabetes test, diabetes"),
        (["an evidence-", "based rule; the evidence counts"], "an evidence-based rule; the evidence counts"),
        (["a non-", "covered item"], "a non-covered item"),
        (["see A-", "B for more"], "see A- B for more"),
        (["the list:", "1. one", "2. two"], "the list:\n1. one\n2. two"),
    ],
)
def test_a_hyphen_at_a_line_end_goes_only_when_it_splits_a_word(lines: list[str], text: str) -> None:
    page = [Line(1, line, 700.0 - 14 * row) for row, line in enumerate(lines)]
    assert [paragraph.text for paragraph in paragraphs([page])] == [text]
