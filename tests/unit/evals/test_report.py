import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from eval_world import PROVENANCE, record
from hypothesis import given
from hypothesis import strategies as st

from evals.case_files import CoverageSet
from evals.record import Record
from evals.references import REFERENCES
from evals.report.markup import Html, plain, table, tag, text
from evals.report.page import coverage_page
from evals.scorecard import coverage_scorecard, latency_intervals

HOSTILE = "</script></style><img src=x onerror=alert(1)>\"'&<!--\u202e"


def detail(words: str) -> str:
    """A record's detail, in which every text that a chart or a model could hold is `words`."""
    claim = {
        "text": f"{words}: met",
        "citation": {"clause_id": words, "quote": words, "start": 0, "end": 1, "clause_sha256": words},
        "criterion": "covers_if",
        "status": "met",
        "evidence": [{"fact": words, "value": words, "quote": words, "start": 0, "end": len(words)}],
    }
    loose = {**claim, "criterion": None, "evidence": []}
    shown = {
        "request": {
            "payer_id": words,
            "plan_id": words,
            "procedure_codes": [words],
            "diagnosis_codes": [words],
            "as_of_date": words,
        },
        "facts": {words: words},
        "question": words,
        "narrative": words,
        "gold": [words, f"{words}2"],
        "rationale": words,
        "corpus": "",
        "determination": {
            "summary": words,
            "claims": [claim, {**claim, "criterion": "covers_if.all.0"}, loose, loose],
            "missing_facts": [{"label": words, "clause_id": words}],
            "noted_conflicts": [{"text": words}],
        },
        "checks": [
            {
                "claim_index": 0,
                "exists": False,
                "quote_verbatim": True,
                "quote_whole": True,
                "in_effect_on_as_of": True,
                "governs_request": True,
                "supports_claim": True,
                "reason": words,
            }
        ],
        "flags": [{"field": "narrative", "start": 0, "end": 2}],
        "retrieved": [words],
    }
    return json.dumps(shown)


def page(*records: Record) -> str:
    card = coverage_scorecard([CoverageSet("floor", ())], records, PROVENANCE)
    card["references"] = {name: {**card, "passes_gate": False} for name in REFERENCES}
    comparison = {
        "label": "like for like",
        "moved": {},
        "figures": {"both_correct": {"before": 1.0, "after": 0.9}},
        "flips": [{"case_id": HOSTILE, "kind": "worse", "before": HOSTILE, "after": "x"}],
        "mcnemar_p": 1.0,
    }
    return coverage_page(
        card,
        records,
        lambda clause_id, corpus: None,
        comparison=comparison,
        failures=[HOSTILE],
        latency=latency_intervals(records),
    )


class Elements(HTMLParser):
    """Every element with its attributes, in order."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.mark.promise("evals.report-escaped")
def test_a_hostile_chart_adds_no_element_to_the_page() -> None:
    names = ("trap", "family", "set", "outcome", "reasons", "unmet", "stress", "run_id")

    def with_words(words: str) -> list[str]:
        changes: dict[str, Any] = dict.fromkeys(names, words)
        changes |= dict.fromkeys(("reasons", "unmet", "stress"), (words,))
        shown = page(record(words, detail=detail(words), **changes))
        return [name for name, _ in Elements(shown).found]

    assert with_words(HOSTILE) == with_words("x" * len(HOSTILE))
    assert "img" not in with_words(HOSTILE)


@pytest.mark.promise("evals.report-escaped")
@given(st.text())
def test_any_text_is_text(words: str) -> None:
    shown = tag("p", words, title=words)
    elements = Elements(shown).found
    assert [name for name, _ in elements] == ["p"]
    assert "<" not in text(words)


@pytest.mark.promise("evals.report-escaped")
def test_only_markup_made_here_is_markup() -> None:
    assert tag("b", Html("<i>"), "<i>") == "<b><i>&lt;i&gt;</b>"
    assert table(["<"], [["<", "<"]], "<").count("&lt;") == 5
    with pytest.raises(ValueError, match="end tag"):
        plain("</script>")


@pytest.mark.promise("evals.report-alone")
def test_the_page_loads_nothing_and_its_policy_allows_only_its_own_script_and_style() -> None:
    shown = page(record(detail=detail("words")))
    elements = Elements(shown).found
    assert not [held for _, held in elements if {"src", "srcset", "data", "action", "style"} & held.keys()]
    assert all(str(held["href"]).startswith("#") for name, held in elements if "href" in held)
    assert not [name for name, _ in elements if name in ("link", "iframe", "object", "embed", "base", "img")]
    assert not [key for _, held in elements for key in held if key.startswith("on")]
    policy = next(str(held["content"]) for _, held in elements if held.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.search(r"https?://", shown)


@pytest.mark.promise("evals.report-used")
def test_a_case_shows_narrative_criteria_steps_and_reasons() -> None:
    shown = page(record("C-7", reasons=("confidence: 0.35 is below 0.70",), detail=detail("the chart's words")))
    assert 'id="case-C-7"' in shown
    for part in ("Chart", "Criteria", "Verifier", "Gate", "Why this is expected"):
        assert f"<h3>{part}</h3>" in shown
    assert "confidence: 0.35 is below 0.70" in shown
    assert "is not in the corpus" in shown
