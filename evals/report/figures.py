"""The page's sections about the run as a whole: verdict, scorecard, baseline, references, groups, provenance."""

from collections.abc import Mapping, Sequence
from typing import Any

from evals.report.charts import interval_bar, latency_histogram, risk_coverage_plot
from evals.report.markup import Child, Html, table, tag

Card = Mapping[str, Any]
WORDS = {
    "gold_clause_recall": "gold clauses in hand",
    "stale_retrieval_rate": "clauses in hand out of effect",
    "wrong_payer_rate": "clauses of another payer",
    "wrong_plan_rate": "clauses of another plan",
    "citation_faithfulness": "citations that pass every step",
    "gold_cited_rate": "cases that cite all gold clauses",
    "governing_citation_rate": "citations that govern the request",
    "determination_accuracy": "outcome right",
    "gate_correctness": "gate right",
    "both_correct": "outcome and gate right",
    "auto_determine_rate": "determined alone",
    "auto_determine_of_determinable": "determined of what can be",
    "appropriate_refusal_rate": "refused where refusal is due",
}
COUNTS = {
    "false_auto_determine": "false auto-determinations",
    "unwarranted_auto_determine": "determined where review or refusal was due",
    "hallucinated_clauses": "citations of clauses that do not exist",
    "stale_citations": "citations out of effect",
}


def section(title: str, *children: Child, id_: str) -> Html:
    """A part of the page with its heading."""
    return tag("section", tag("h2", title), *children, id=id_)


def verdict(card: Card, failures: Sequence[str]) -> Html:
    """The first thing to know: whether the gate is green, and the four figures that matter most."""
    good = not failures
    tiles = [
        _tile("outcome and gate right", _share(card["both_correct"]), card["intervals"]["both_correct"]),
        _tile("determined of what can be", _share(card["auto_determine_of_determinable"]), None),
        _tile(
            "false auto-determinations", str(card["false_auto_determine"]), None, bad=card["false_auto_determine"] > 0
        ),
        _tile("median latency", f"{1000 * (card['p50_latency_s'] or 0):.0f} ms", None),
    ]
    return tag(
        "div",
        tag("p", tag("strong", "Gate green" if good else "Gate red"), class_=f"badge {'good' if good else 'bad'}"),
        tag("ul", (tag("li", failure) for failure in failures), class_="failures") if failures else None,
        tag("div", tiles, class_="tiles"),
    )


def scorecard(card: Card) -> Html:
    """Every figure with its interval."""
    rows: list[list[Child]] = [
        [words, _share(card[name]), interval_bar(card[name], card["intervals"].get(name)), _ends(card, name)]
        for name, words in WORDS.items()
    ]
    rows += [[words, card[name], "", _zero_bound(card, name)] for name, words in COUNTS.items()]
    rows.append(["tokens in, out", f"{card['input_tokens']}, {card['output_tokens']}", "", f"USD {card['usd']}"])
    note = tag(
        "p",
        "Shares of cases have Wilson intervals, pooled shares a bootstrap over policy families. A change of fewer than "
        f"{100 * card['smallest_visible_difference']:.1f} points, all one way, cannot be told from chance here.",
        class_="note",
    )
    return section("Scorecard", table(["figure", "value", "0 to 1", "95 %"], rows, "Figures"), note, id_="scorecard")


def models(card: Card) -> Html | None:
    """What repeats, money and a judge have to say; None where no model was asked and nothing was repeated."""
    rows: list[list[Child]] = []
    if repeats := card.get("repeats"):
        k = repeats["k"]
        rows += [
            [f"mean of {k} repeats", _share(repeats["mean"]), _between(repeats["mean_interval"])],
            [f"right all {k} times", _share(repeats["pass_hat_k"]), _between(repeats["pass_hat_k_interval"])],
            [f"right at least once in {k}", _share(repeats["pass_at_k"]), ""],
            ["cases answered in several ways", len(repeats["unstable"]), ", ".join(repeats["unstable"][:20])],
        ]
    for role in card.get("spent", {}).get("roles", ()):
        tokens = sum(role[name] for name in ("input_tokens", "cache_read_tokens", "cache_write_tokens"))
        told = f"{tokens} tokens in, {role['output_tokens']} out, USD {role['usd']}"
        rows.append(
            [f"{role['role']} ({role['model']})", f"{role['calls']} calls, {role['failed_calls']} failed", told]
        )
    said = card.get("opinions")
    for name, score in (said["scores"] if said else {}).items():
        rows.append([f"judged {name}, of 5", f"{score['mean']:.2f}", _between(score["interval"])])
    if not rows:
        return None
    note = "Costs are of all starts of this run. The judge saw neither labels nor traces, and no gate hears it."
    return section(
        "Models",
        table(["what", "value", ""], rows, "Repeats, costs, opinions"),
        tag("p", note, class_="note"),
        id_="models",
    )


def _between(ends: Sequence[float]) -> str:
    return f"{ends[0]:.3f} to {ends[1]:.3f}"


def against_baseline(comparison: Mapping[str, Any] | None) -> Html:
    """What changed since the baseline."""
    if comparison is None:
        words = "There is no baseline over these cases."
        return section("Against the baseline", tag("p", words, class_="note"), id_="baseline")
    moved = [tag("li", f"{name}: {before} → {after}") for name, (before, after) in comparison["moved"].items()]
    rows = [[WORDS.get(n, COUNTS.get(n, n)), p["before"], p["after"]] for n, p in comparison["figures"].items()]
    flips = [
        [tag("a", flip["case_id"], href=f"#case-{flip['case_id']}"), flip["kind"], flip["before"], flip["after"]]
        for flip in comparison["flips"]
    ]
    return section(
        "Against the baseline",
        tag("p", comparison["label"], ". McNemar's exact p ", f"{comparison['mcnemar_p']:.3f}", "."),
        tag("ul", moved) if moved else None,
        table(["figure", "baseline", "this run"], rows, "Figures then and now") if rows else None,
        table(["case", "change", "then", "now"], flips, "Answers that changed")
        if flips
        else tag("p", "No answer changed.", class_="note"),
        id_="baseline",
    )


def references(card: Card) -> Html:
    """What answerers that know nothing would score."""
    rows: list[list[Child]] = [
        [
            name.replace("_", " "),
            _share(row["both_correct"]),
            _share(row["auto_determine_of_determinable"]),
            row["false_auto_determine"],
            _share(row["appropriate_refusal_rate"]),
            "passes" if row["passes_gate"] else "fails",
        ]
        for name, row in {"this run": {**card, "passes_gate": card["passes_gate"]}, **card["references"]}.items()
    ]
    head = ["answerer", "both right", "determined of what can be", "false auto", "refused where due", "gate"]
    return section("Beside answerers that know nothing", table(head, rows, "References"), id_="references")


def curves(card: Card, latencies: Sequence[float], ends: Mapping[str, Sequence[float]]) -> Html:
    """Abstention and latency."""
    determined = card["auto_determine_rate"] or 0.0
    count = card["case_set"]["count"]
    auto = (determined, card["false_auto_determine"] / max(determined * count, 1))
    area = card["abstention"]["area_under_risk_coverage"]
    error = card["calibration"]["expected_calibration_error"]
    bins = [
        [f"{b['from']:.1f} to {b['to']:.1f}", b["count"], b["confidence"], b["accuracy"]]
        for b in card["calibration"]["bins"]
    ]
    spread = ", ".join(
        f"{name[:3]} {1000 * ends[name][0]:.0f} to {1000 * ends[name][1]:.0f} ms"
        for name in ("p50_latency_s", "p95_latency_s")
    )
    return section(
        "Abstention and latency",
        tag(
            "div",
            tag(
                "figure",
                risk_coverage_plot(card["abstention"]["curve"], auto),
                tag(
                    "figcaption",
                    f"Risk against coverage by confidence (area {area}). The ring is what the gate let through alone.",
                ),
            ),
            tag(
                "figure",
                latency_histogram(latencies),
                tag("figcaption", f"Latency of a case; 95 % over families: {spread}."),
            ),
            class_="charts",
        ),
        table(
            ["confidence", "cases", "mean confidence", "outcome right"],
            bins,
            f"Calibration, expected error {error}",
        ),
        id_="curves",
    )


def groups(card: Card) -> Html:
    """Rights and misses by set, law, trap and stress."""
    parts: list[Child] = []
    for key, title in (("per_set", "By set"), ("per_stress", "By stress"), ("per_trap", "By trap")):
        rows = [_group_row(name, row) for name, row in card[key].items()]
        if rows:
            shown = table(["", "right", "0 to 1", "false auto", "missed"], rows, title)
            parts.append(tag("details", tag("summary", title), shown, open=key != "per_trap"))
    laws = [
        [law.replace("_", " "), f"{row['held']} of {row['pairs']}", ", ".join(row["broken"]) or "none"]
        for law, row in card["laws"].items()
    ]
    if laws:
        parts.append(table(["law", "holds", "broken"], laws, "Metamorphic laws"))
    return section("By group", *parts, id_="groups")


def provenance(card: Card) -> Html:
    """What produced the figures."""
    rows = [[name.replace("_", " "), tag("code", str(value))] for name, value in card["provenance"].items()]
    traces = [["traces", tag("code", str(card["traces"]))]] if "traces" in card else []
    digest = [["case set", tag("code", f"{card['case_set']['count']} cases, {card['case_set']['digest']}")]]
    return section("Provenance", table(["part", "value"], digest + traces + rows, "Provenance"), id_="provenance")


def _group_row(name: str, row: Card) -> list[Child]:
    missed = [[tag("a", miss, href=f"#case-{miss}"), " "] for miss in row["misses"]]
    right = row["count"] - len(row["misses"])
    bar = interval_bar(row["both_correct"], row["interval"])
    return [name, f"{right} of {row['count']}", bar, row["false_auto_determine"], missed or "none"]


def _tile(words: str, value: str, ends: Sequence[float] | None, *, bad: bool = False) -> Html:
    spread = tag("small", f"95 %: {ends[0]:.3f} to {ends[1]:.3f}") if ends else None
    return tag("div", tag("span", value, class_="big bad" if bad else "big"), tag("span", words), spread, class_="tile")


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}".rstrip("0").rstrip(".") if value not in (0, 1) else f"{value:.0f}"


def _ends(card: Card, name: str) -> str:
    ends = card["intervals"].get(name)
    return f"{ends[0]:.3f} to {ends[1]:.3f}" if ends and card[name] is not None else ""


def _zero_bound(card: Card, name: str) -> str:
    if name != "false_auto_determine" or card[name]:
        return ""
    return f"none in {card['case_set']['count']} allows {100 * card['false_auto_upper_bound_95']:.1f} % at most"
