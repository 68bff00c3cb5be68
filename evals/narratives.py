"""Scores the blind narrative rounds: `python -m evals.narratives FILE... [--out FILE]`.

Each `roundN.json` in `evals/cases/rounds` holds narratives by an author who had read the criteria but neither the fact
definitions nor the extractor. `roundN.first.json` beside it is the score at first sight, written before any mending.
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from cda.contracts.facts import Fact, FactState, Interval
from cda.settings import Settings, load_settings
from cda.systems.coverage.system import CoverageSystem
from evals.statistics import upper_bound_of_zero, wilson

REQUEST_FIELDS = ("payer_id", "plan_id", "procedure_codes", "diagnosis_codes", "as_of_date", "narrative", "question")


def load_cases(path: Path) -> list[dict[str, Any]]:
    """The cases of a file: a list, or {"cases": [...]}."""
    data = json.loads(path.read_text(encoding="utf-8"))
    cases: list[dict[str, Any]] = data["cases"] if isinstance(data, dict) else data
    return cases


def agrees(label: Any, fact: Fact) -> str:
    """How an extracted fact stands to the author's: right, missed, wrong (a value where the author has another or
    none), or abstained (the author has none, and so have we)."""
    if fact.state is not FactState.KNOWN:
        return "abstained" if label is None else "missed"
    if label is None:
        return "wrong"
    value = fact.value
    if isinstance(value, Interval):
        # An author's 2.77 months are 12 weeks.
        near = not isinstance(label, str) and 0.99 * value.lo <= float(label) <= 1.01 * value.hi
        return "right" if near else "wrong"
    return "right" if value == label else "wrong"


def score_case(system: CoverageSystem, case: dict[str, Any]) -> dict[str, Any]:
    """Ask one case without its structured facts and compare outcome, gate, citation and facts with the labels."""
    request = {name: case[name] for name in REQUEST_FIELDS if name in case}
    result = system.ask(request)
    outcome = result.determination.outcome.value if result.determination else "INSUFFICIENT_EVIDENCE"
    cited = {claim.citation.clause_id for claim in result.determination.claims} if result.determination else set()
    labels = case.get("facts") or {}
    found = system.read_facts(request, tuple(labels)) if labels else {}
    facts = {name: agrees(label, found[name]) for name, label in labels.items() if name in found}
    gold = set(case.get("gold_clause_ids") or ())
    return {
        "case_id": case["case_id"],
        "outcome": outcome,
        "gate": result.gate.state.value,
        "expected_outcome": case["expected_outcome"],
        "expected_gate": case["expected_gate"],
        "correct": outcome == case["expected_outcome"] and result.gate.state.value == case["expected_gate"],
        "false_auto": result.gate.state.value == "DETERMINE" and outcome != case["expected_outcome"],
        "gold_cited": gold <= cited,
        "facts": facts,
        "wrong_values": {name: str(found[name].value) for name, verdict in facts.items() if verdict == "wrong"},
        "reasons": list(result.gate.reasons),
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Totals with 95 % intervals."""
    total = len(rows)
    both = sum(row["correct"] for row in rows)
    false_auto = sum(row["false_auto"] for row in rows)
    determined = [row for row in rows if row["gate"] == "DETERMINE"]
    verdicts = Counter(verdict for row in rows for verdict in row["facts"].values())
    return {
        "cases": total,
        "both_correct": both,
        "both_correct_rate": round(both / total, 4),
        "both_correct_interval": [round(end, 4) for end in wilson(both, total)],
        "determined": len(determined),
        "false_auto_determine": false_auto,
        "false_auto_upper_bound_95": round(upper_bound_of_zero(total), 4) if not false_auto else None,
        "gold_cited_in_determined": sum(row["gold_cited"] for row in determined),
        "fact_values": dict(sorted(verdicts.items())),
        "misses": [row["case_id"] for row in rows if not row["correct"]],
    }


def main(arguments: list[str] | None = None) -> int:
    """Score the given files together; exit 1 on a false auto-determination."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, help="write summary and rows as JSON")
    parser.add_argument("--embedder", default="tfidf", help="retrieval's embedder; facts do not depend on it")
    options = parser.parse_args(arguments)
    settings: Settings = load_settings().model_copy(update={"embedder": options.embedder})
    system = CoverageSystem.open(settings)
    rows = [score_case(system, case) for path in options.files for case in load_cases(path)]
    totals = summary(rows)
    document = {"summary": totals, "rows": rows}
    if options.out:
        options.out.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    json.dump(totals, sys.stdout, indent=1)
    sys.stdout.write("\n")
    return 1 if totals["false_auto_determine"] else 0


if __name__ == "__main__":
    sys.exit(main())
