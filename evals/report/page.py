"""The whole page: one file, no network, nothing that runs but its own script."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from evals.record import Record
from evals.report import figures
from evals.report.cases import Fetch, case_list
from evals.report.markup import Html, plain, tag

HERE = Path(__file__).parent
PARTS = (
    ("scorecard", "Scorecard"),
    ("baseline", "Baseline"),
    ("references", "References"),
    ("curves", "Curves"),
    ("groups", "Groups"),
    ("cases", "Cases"),
    ("provenance", "Provenance"),
)


def coverage_page(
    card: Mapping[str, Any],
    records: Sequence[Record],
    fetch: Fetch,
    *,
    comparison: Mapping[str, Any] | None,
    failures: Sequence[str],
    latency: Mapping[str, Sequence[float]],
) -> str:
    """The page of a coverage run. `fetch` gives the clauses that cases open to."""
    card = {**card, "passes_gate": not failures}
    navigation = tag(
        "nav", (tag("a", name, href=f"#{place}") for place, name in PARTS), aria_label="Parts of this page"
    )
    count, digest = card["case_set"]["count"], str(card["case_set"]["digest"])[:12]
    body = [
        tag("a", "Skip to the cases", href="#cases", class_="skip"),
        tag("header", tag("h1", "Coverage evaluation"), tag("p", f"{count} cases · set {digest}"), navigation),
        tag(
            "main",
            figures.verdict(card, failures),
            figures.scorecard(card),
            figures.against_baseline(comparison),
            figures.references(card),
            figures.curves(card, [record.latency_s for record in records], latency),
            figures.models(card),
            figures.groups(card),
            case_list(records, fetch),
            figures.provenance(card),
        ),
    ]
    return page("Coverage evaluation", body)


def page(title: str, body: list[Html]) -> str:
    """A document whose policy lets it load nothing and run only the script and style that it holds."""
    style, script = (plain((HERE / name).read_text(encoding="utf-8")) for name in ("page.css", "page.js"))
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'; "
        "form-action 'none'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", style),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', body, tag('script', script)), lang='en')}\n"


def _hash(source: str) -> str:
    return f"sha256-{b64encode(sha256(source.encode('utf-8')).digest()).decode('ascii')}"
