"""The report as a reader uses it, in a real browser."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import Page, browser
from coverage_world import open_system

HOSTILE = (
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>T1DM. Fingersticks 5 a day."
)
REQUEST: dict[str, Any] = {
    "trap": "T7",
    "payer_id": "MHP",
    "plan_id": "MHP-HMO-BASE",
    "procedure_codes": ["A9276"],
    "diagnosis_codes": ["E10.9"],
    "as_of_date": "2024-03-15",
    "question": "Covered?",
    "gold_clause_ids": ["MHP-MP-0142.v1.C2"],
    "expected_outcome": "COVERED",
    "expected_gate": "DETERMINE",
}
NARRATIVES = {"hostile": HOSTILE, "plain": "T1DM. Fingersticks five times a day.", "late": "Type 2 diabetes. A1c 7.2."}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    open_system(folder / "home")
    cases = [{**REQUEST, "case_id": name, "narrative": words} for name, words in NARRATIVES.items()]
    (folder / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    command = [str(Path(sys.executable).parent / "cda"), "eval", "--cases", "cases.json", "--report", "report.html"]
    environment = {"CDA_HOME": str(folder / "home"), "CDA_EMBEDDER": "tfidf", "PATH": "/usr/bin:/bin"}
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return folder / "report.html"


@pytest.fixture
def page(report: Path, tmp_path: Path) -> Iterator[Page]:
    with browser(tmp_path / "profile") as opened:
        opened.open(report)
        yield opened


def shown(page: Page) -> int:
    count = page.value("[...document.querySelectorAll('.cases > li')].filter(e => !e.hidden).length")
    assert isinstance(count, int)
    return count


@pytest.mark.promise("evals.report-alone", "evals.report-escaped")
def test_nothing_is_fetched_nothing_is_blocked_and_a_hostile_chart_stays_text(page: Page) -> None:
    fetched = [e["params"]["request"]["url"] for e in page.events if e["method"] == "Network.requestWillBeSent"]
    assert [url.split(":")[0] for url in fetched] == ["file"]
    assert not [event for event in page.events if event["method"] in ("Log.entryAdded", "Runtime.exceptionThrown")]
    assert page.value("document.title") == "Coverage evaluation"
    assert page.value("document.querySelectorAll('img').length") == 0
    assert page.value("document.getElementById('case-hostile').textContent.includes('onerror')") is True


@pytest.mark.promise("evals.report-used")
def test_filters_narrow_the_cases_and_say_how_many_are_left(page: Page) -> None:
    assert shown(page) == 3
    page.value("document.getElementById('q').focus()")
    page.call("Input.insertText", text="fingersticks five")
    assert shown(page) == 1
    assert page.value("document.getElementById('shown').textContent") == "1 of 3 cases"
    page.press("Escape")
    assert shown(page) == 3
    page.value(
        "(e => { e.value = 'wrong'; e.dispatchEvent(new Event('input', {bubbles: true})); })"
        "(document.getElementById('result'))"
    )
    assert shown(page) == 1


@pytest.mark.promise("evals.report-used")
def test_the_keyboard_alone_reaches_the_search_and_opens_a_case(page: Page) -> None:
    page.press("/", "/")
    assert page.value("document.activeElement.id") == "q"
    for _ in range(20):
        page.press("Tab")
        if page.value(
            "document.activeElement.tagName === 'SUMMARY' && document.activeElement.closest('.cases') !== null"
        ):
            break
    page.press("Enter", "\r")
    opened = "document.querySelector('.cases details[open]')"
    assert page.value(f"{opened}.closest('li').id") == "case-hostile"
    headings = page.value(f"[...{opened}.querySelectorAll('h3')].map(e => e.textContent)")
    assert {"Chart", "Answer", "Criteria", "Verifier", "Gate"} <= set(headings)


@pytest.mark.promise("evals.report-used")
def test_a_link_to_a_case_opens_it(page: Page) -> None:
    page.value("location.hash = '#case-late'; new Promise(done => setTimeout(done, 200))")
    assert page.value("document.querySelector('#case-late details').open") is True


@pytest.mark.promise("evals.report-used")
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen_and_dark_is_dark(page: Page, width: int) -> None:
    grounds = {}
    for scheme in ("light", "dark"):
        page.screen(width, 900, scheme)
        page.value("document.querySelectorAll('.cases details').forEach(e => { e.open = true; })")
        assert page.value("document.documentElement.scrollWidth") <= width
        grounds[scheme] = page.value("getComputedStyle(document.body).backgroundColor")
    assert grounds == {"light": "rgb(251, 251, 249)", "dark": "rgb(20, 23, 26)"}
