"""The page's list of cases: one line each, opening to narrative, criteria, clauses, verifier steps and gate reasons."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from cda.contracts.policy_tools import ClauseView
from cda.harness.verifier import STEPS
from cda.systems.coverage.render import plain_value
from evals.record import Record
from evals.report.markup import Child, Html, table, tag

Fetch = Callable[[str, str], ClauseView | None]
"""A clause by its id and the name of the overlay that its case is asked under."""
Clauses = Callable[[str], ClauseView | None]
GATES = ("DETERMINE", "REVIEW", "REFUSE", "HALT")


def case_list(records: Sequence[Record], fetch: Fetch) -> Html:
    """Filters, a count that is spoken when it changes, and the cases."""
    sets = sorted({record.set for record in records})
    filters = tag(
        "form",
        tag("label", "Search ", tag("input", type="search", id="q", placeholder="id, trap, words of the chart ( / )")),
        _choice("set", "Set", sets),
        _choice("gate", "Gate", GATES),
        _choice("result", "Result", ["right", "wrong", "false auto"]),
        tag("output", f"{len(records)} of {len(records)} cases", id="shown", aria_live="polite"),
        id="filters",
        role="search",
        aria_label="Filter the cases",
    )
    head = tag(
        "div",
        (tag("span", name) for name in ("case", "expected", "answered", "result")),
        class_="head",
        aria_hidden="true",
    )
    return tag(
        "section",
        tag("h2", "Cases"),
        filters,
        head,
        tag("ul", [_case(record, fetch) for record in records], class_="cases"),
        id="cases",
    )


def _choice(name: str, label: str, values: Iterable[str]) -> Html:
    options = [tag("option", "all", value=""), *(tag("option", value, value=value) for value in values)]
    return tag("label", f"{label} ", tag("select", options, id=name))


def _case(record: Record, fetch: Fetch) -> Html:
    result = "false auto" if record.false_auto else "right" if record.correct else "wrong"
    line = tag(
        "summary",
        tag("span", tag("b", record.case_id), " ", tag("small", record.set), class_="id"),
        tag("span", _answer(record.expected_outcome, record.expected_gate), class_="expected"),
        tag("span", _answer(record.outcome, record.gate), class_="answered"),
        tag("span", result, class_=f"mark {'good' if result == 'right' else 'bad'}"),
    )
    detail: Mapping[str, Any] = json.loads(record.detail)
    searched = " ".join((record.case_id, record.trap, *record.stress, detail["narrative"])).lower()
    return tag(
        "li",
        tag("details", line, tag("div", _opened(record, detail, fetch), class_="opened")),
        id=f"case-{record.case_id}",
        data_set=record.set,
        data_gate=record.gate,
        data_result=result,
        data_text=searched,
    )


def _answer(outcome: str, gate: str) -> Child:
    return [tag("span", gate, class_=f"gate {gate.lower()}"), " ", outcome.replace("_", " ").lower()]


def _opened(record: Record, detail: Mapping[str, Any], from_corpus: Fetch) -> Child:
    def fetch(clause_id: str) -> ClauseView | None:
        return from_corpus(clause_id, detail["corpus"])

    answer = detail["determination"]
    claims: Sequence[Mapping[str, Any]] = answer["claims"] if answer else ()
    return [
        tag("p", _asked(detail), class_="asked"),
        tag("p", detail["question"], class_="question") if detail["question"] else None,
        _part("Chart", _narrative(detail, claims)),
        _part("Facts given", _given(detail["facts"])) if detail["facts"] else None,
        _part("Answer", tag("p", answer["summary"]), _missing(answer)) if answer else None,
        _part("Criteria", [_clause_tree(name, claims, fetch) for name in _cited(claims)]) if claims else None,
        _part("Gold clauses not cited", [_clause_text(name, fetch) for name in _uncited(detail, claims)])
        if _uncited(detail, claims)
        else None,
        _part("Verifier", _steps(detail["checks"])) if detail["checks"] else None,
        _part("Gate", _reasons(record)),
        _part("Why this is expected", tag("p", detail["rationale"])) if detail["rationale"] else None,
        tag("p", f"{1000 * record.latency_s:.1f} ms · trace ", tag("code", record.run_id), class_="note"),
    ]


def _asked(detail: Mapping[str, Any]) -> str:
    request = detail["request"]
    codes = " ".join([*request["procedure_codes"], *request["diagnosis_codes"]])
    return (
        f"{request['payer_id'] or 'no payer'} · {request['plan_id'] or 'no plan'} · {codes} · {request['as_of_date']}"
    )


def _part(title: str, *children: Child) -> Html:
    return tag("div", tag("h3", title), *children, class_="part")


def _narrative(detail: Mapping[str, Any], claims: Sequence[Mapping[str, Any]]) -> Html:
    """The chart with the words that were evidence, and those that were fenced off, marked where they stand."""
    words = str(detail["narrative"])
    spans = [
        (piece["start"], piece["end"], "used")
        for claim in claims
        for piece in claim["evidence"]
        if piece["end"] is not None
    ]
    spans += [(flag["start"], flag["end"], "fenced") for flag in detail["flags"] if flag["field"] == "narrative"]
    edges = sorted({0, len(words), *(edge for start, end, _ in spans for edge in (start, end))})
    pieces: list[Child] = []
    for left, right in pairwise(edges):
        kinds = sorted({kind for start, end, kind in spans if start <= left and right <= end})
        pieces.append(tag("mark", words[left:right], class_=" ".join(kinds)) if kinds else words[left:right])
    return tag("blockquote", pieces or "(empty)", class_="chart-text")


def _given(facts: Mapping[str, Any]) -> Html:
    return tag("ul", [tag("li", f"{name}: {value}") for name, value in facts.items()])


def _missing(answer: Mapping[str, Any]) -> Child:
    items = [tag("li", f"missing: {fact['label']} ({fact['clause_id']})") for fact in answer["missing_facts"]]
    items += [tag("li", f"conflict: {conflict['text']}") for conflict in answer["noted_conflicts"]]
    return tag("ul", items) if items else None


def _cited(claims: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(claim["citation"]["clause_id"] for claim in claims))


def _uncited(detail: Mapping[str, Any], claims: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted(set(detail["gold"]) - set(_cited(claims)))


def _clause_tree(clause_id: str, claims: Sequence[Mapping[str, Any]], fetch: Clauses) -> Html:
    """The clause, and under it what was claimed of its criterion, nested as the criterion is."""
    own = [claim for claim in claims if claim["citation"]["clause_id"] == clause_id]
    paths = [str(claim["criterion"] or "") for claim in own]

    def parent(path: str) -> int | None:
        above = [(len(other), -place) for place, other in enumerate(paths) if other and path.startswith(f"{other}.")]
        return -max(above)[1] if above else None

    def branch(above: int | None) -> Child:
        below = [place for place, path in enumerate(paths) if parent(path) == above]
        return tag("ul", [_node(own[place], branch(place)) for place in below]) if below else None

    return tag("div", _clause_text(clause_id, fetch), branch(None), class_="tree")


def _node(claim: Mapping[str, Any], below: Child) -> Html:
    """What was claimed of one node; its evidence where nothing stands below it, since there it is shown again."""
    words = str(claim["text"]).rsplit(": ", 1)[0]
    status = str(claim["status"])
    mark = tag("span", status.replace("_", " "), class_=f"status {status}")
    shown = [] if below else [tag("li", _piece(piece)) for piece in claim["evidence"]]
    return tag("li", mark, " ", words, below, tag("ul", shown, class_="evidence") if shown else None)


def _piece(piece: Mapping[str, Any]) -> str:
    said = f" “{piece['quote']}”" if piece["quote"] else ""
    return f"{piece['fact'].replace('_', ' ')}: {plain_value(piece['value'])}{said}"


def _clause_text(clause_id: str, fetch: Clauses) -> Html:
    clause = fetch(clause_id)
    if clause is None:
        return tag("p", tag("code", clause_id), " is not in the corpus", class_="clause")
    window = (
        f"{clause.effective_start} to {clause.effective_end or 'open'}" if clause.effective_start else clause.date_state
    )
    return tag(
        "div",
        tag("p", tag("code", clause_id), " ", tag("small", f"{clause.policy_title} · {clause.section} · {window}")),
        tag("blockquote", clause.text),
        class_="clause",
    )


def _steps(checks: Sequence[Mapping[str, Any]]) -> Html:
    rows: list[list[Child]] = [
        [
            f"claim {check['claim_index'] + 1}",
            *(tag("span", "✓" if check[step] else "✗", class_="good" if check[step] else "bad") for step in STEPS),
            check["reason"],
        ]
        for check in checks
    ]
    return table(["", *(step.replace("_", " ") for step in STEPS), "reason"], rows, "Steps of each claim")


def _reasons(record: Record) -> Child:
    reasons = [tag("li", reason) for reason in record.reasons]
    unmet = [tag("li", f"not given, though expected: {kind}", class_="bad") for kind in record.unmet]
    if not reasons and not unmet:
        return tag("p", "no reason against issuing it", class_="note")
    return tag("ul", reasons, unmet)
