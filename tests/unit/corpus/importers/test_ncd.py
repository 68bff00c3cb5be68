import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpus.importers.ncd import import_ncd_jsonl
from corpus.importers.result import ImportRefused, ImportResult

RECORD = {
    "title": "WidgetTherapyForKnees",
    "ncd_id": 900,
    "ncd_version": 2,
    "url": "https://www.example.org/ncd?id=900",
    "text": "//Widget Therapy for Knees\nWidget therapy is covered for one knee.",
}


@pytest.fixture
def imported(tmp_path: Path) -> Callable[..., ImportResult]:
    def run(*records: dict[str, Any] | str) -> ImportResult:
        path = tmp_path / "statements.jsonl"
        lines = [record if isinstance(record, str) else json.dumps({**RECORD, **record}) for record in records]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return import_ncd_jsonl(path)

    return run


def version(result: ImportResult) -> dict[str, Any]:
    (only,) = result.documents[0]["policy"]["versions"]
    return dict(only)


def texts(result: ImportResult) -> list[tuple[str, str]]:
    return [(clause["section"], clause["text"]) for clause in version(result)["clauses"]]


@pytest.mark.promise("importers.never_determines")
def test_a_statement_without_a_date_lands_undated_without_codes_and_criteria(
    imported: Callable[..., ImportResult],
) -> None:
    result = imported({})
    policy = result.documents[0]["policy"]
    assert (policy["policy_id"], policy["title"]) == ("MCD-NCD-900", "Widget Therapy for Knees")
    assert (policy["payer_id"], policy["codes"]) == ("CMS", [])
    assert (version(result)["version"], version(result)["date_state"]) == ("v2", "UNDATED")
    assert version(result)["source_ref"] == RECORD["url"]
    assert version(result)["clauses"] == [
        {"id": "C1", "section": "Statement", "text": "Widget therapy is covered for one knee.", "criterion": None}
    ]


@pytest.mark.promise("importers.prose_dates")
@pytest.mark.parametrize(
    "lead",
    [
        "Effective for services performed on or after",
        "Effective for claims with dates of service on or after",
        "This rule is effective",
        "Coverage is effective on",
        "Effective on or after",
    ],
)
def test_a_single_effective_date_that_opens_the_text_dates_the_statement(
    imported: Callable[..., ImportResult], lead: str
) -> None:
    result = imported({"text": f"Not Covered:\n\n{lead} December 8, 2008, the widget is not covered."})
    assert (version(result)["date_state"], version(result)["effective_start"]) == ("DATED", date(2008, 12, 8))
    assert version(result)["window_provenance"] == "posted"


@pytest.mark.promise("importers.prose_dates")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Effective July 1, 1999, knees are covered.\n\nEffective April 26, 2006, hips are covered.", "several"),
        ("A test is required (effective April 3. 2013) each year.", "cannot be read: April 3. 2013"),
        ("It is effective February 30, 2010 for all.", "cannot be read"),
        ("It is no longer effective March 1, 2010.", "an end or a negation"),
        ("It is effective March 1, 2010 through May 1, 2012.", "an end or a negation"),
        ("Knees are covered.\n\nEffective April 26, 2006, hips are covered.", "below the first clause"),
    ],
)
def test_several_unreadable_or_late_dates_are_ambiguous_and_listed(
    imported: Callable[..., ImportResult], text: str, words: str
) -> None:
    result = imported({"text": text})
    assert (version(result)["date_state"], version(result)["effective_start"]) == ("AMBIGUOUS", None)
    assert words in result.warnings[0].message


@pytest.mark.promise("importers.prose_dates")
@pytest.mark.parametrize(
    "text",
    [
        "The widget proved effective in trials published December 8, 2008 and is covered.",
        "Published December 8, 2008, this covers the widget.",
        "The widget is safe and effective for knees until May 1, 2020 at the latest.",
    ],
)
def test_a_date_that_is_not_an_effective_date_dates_nothing(imported: Callable[..., ImportResult], text: str) -> None:
    assert version(imported({"text": text}))["date_state"] == "UNDATED"


@pytest.mark.promise("importers.whole_sentences")
def test_a_heading_stays_with_all_its_items(imported: Callable[..., ImportResult]) -> None:
    result = imported({"text": "Covered:\n=>knees\n\n=>hips\n\nNon-Covered :\n =>elbows\nLimiations\n-> once a year"})
    assert texts(result) == [
        ("Coverage Criteria", "Covered:\n- knees\n- hips"),
        ("Exclusions", "Non-Covered :\n- elbows"),
        ("Limitations", "Limiations\n- once a year"),
    ]


@pytest.mark.promise("importers.whole_sentences")
def test_paragraphs_part_at_blank_lines_but_never_from_a_lead_in_or_before_a_qualifier(
    imported: Callable[..., ImportResult],
) -> None:
    result = imported(
        {
            "text": "A knee is covered.\n\nUnless it is new.\n\nA hip is defined as\n\n=> old, and\n=> sore.\n\n"
            "The rest is local.\n\nhowever, not in May."
        }
    )
    assert [text for _, text in texts(result)] == [
        "A knee is covered.\nUnless it is new.",
        "A hip is defined as\n- old, and\n- sore.",
        "The rest is local.\nhowever, not in May.",
    ]


@pytest.mark.promise("importers.whole_sentences")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "The widget is covered.",
                "Unless the knee is new.",
                "EXCEPT in May.",
                "Provided a physician asks.",
                "It applies when:",
                "- the knee is sore",
                "2) the hip is sore.",
                "Covered:",
                "Not Covered:",
            ]
        ),
        min_size=1,
        max_size=9,
    ),
    st.sampled_from(["\n", "\n\n"]),
)
def test_no_clause_starts_with_a_qualifier_and_no_word_is_lost(tmp_path: Path, parts: list[str], gap: str) -> None:
    path = tmp_path / "statements.jsonl"
    text = gap.join(["Widgets are a service of Medicare.", *parts])
    path.write_text(json.dumps({**RECORD, "text": "//Widget Therapy for Knees\n" + text}), encoding="utf-8")
    read = texts(import_ncd_jsonl(path))
    assert not [text for _, text in read if text.lower().startswith(("unless", "except", "provided", "- ", "2)"))]
    kept = "\n".join(text for _, text in read).split("\n")
    headings = {"Covered:", "Not Covered:"}
    assert [line for line in kept if line not in headings] == [
        line for line in text.split("\n") if line and line not in headings
    ]


@pytest.mark.promise("importers.faults_listed")
@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"text": ""}, "no text beyond its title"),
        ({"text": "//Widget Therapy for Knees"}, "no text beyond its title"),
        ({"text": "# Widget Therapy for Knees\nNo Issues"}, "no text beyond its title"),
        ({"text": "Issues: need to find the value set for knees."}, "no text beyond its title"),
        ({"text": None}, "text: missing or not text"),
        ({"text": "a\x07b is covered here."}, "text: a control character (U+0007)"),
        ({"title": " "}, "title: empty"),
        ({"ncd_id": "108"}, "ncd_id"),
        ({"ncd_version": 0}, "ncd_version"),
        ({"url": "file:///etc/passwd"}, "url"),
        ("{not json", "not JSON"),
        ("[]", "not a JSON object"),
        ("[" * 50_000, "not JSON"),
        ({"text": "x" * 100_001}, "the limit is 100,000"),
    ],
)
def test_a_statement_that_cannot_be_cited_is_listed_and_the_next_lands(
    imported: Callable[..., ImportResult], record: dict[str, Any] | str, words: str
) -> None:
    result = imported(record, {"ncd_id": 901})
    (fault,) = result.faults
    assert fault.line == 1
    assert words in fault.message
    assert [document["policy"]["policy_id"] for document in result.documents] == ["MCD-NCD-901"]
    assert (result.counts["records"], result.counts["landed"], result.counts["skipped"]) == (2, 1, 1)


@pytest.mark.promise("importers.faults_listed")
def test_a_second_statement_with_the_same_id_is_listed(imported: Callable[..., ImportResult]) -> None:
    result = imported({}, {"text": "Something else is covered here."})
    assert "the id of the statement of line 1" in result.faults[0].message
    assert result.counts["policies"] == 1


@pytest.mark.promise("importers.hostile")
def test_a_title_never_becomes_a_path(imported: Callable[..., ImportResult]) -> None:
    result = imported({"ncd_id": None, "title": "../../etc/pass wd\\con"})
    assert result.documents[0]["policy"]["policy_id"] == "MCD-NCD-ETC-PASS-WD-CON"


@pytest.mark.promise("importers.hidden_text")
def test_invisible_characters_are_removed_and_flagged(imported: Callable[..., ImportResult]) -> None:
    result = imported({"text": "The wid\u200bget is co\u00advered."})
    assert texts(result)[0][1] == "The widget is covered."
    assert result.warnings[0].message == "2 invisible character(s) removed"


@pytest.mark.promise("importers.hostile")
@pytest.mark.parametrize("data", [b"", b"a,b\n1,2\n", b'{"entry": 1}\n'])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(data)
    with pytest.raises(ImportRefused, match=r"x\.jsonl"):
        import_ncd_jsonl(path)
