"""Runs the importers and the dated search on real public files: `python -m evals.real_input FOLDER`.

FOLDER holds `ncd_extracts.jsonl` and a `mcd_documents_*.csv` (public Medicare coverage data; not shipped). Everything
is imported, compiled together with the shipped corpora and indexed; then titles taken from the records are searched as
of several dates, and every hit is held against its own window. Exit 1 when one lies outside it, or when an undated
clause determines anything.
"""

import argparse
import json
import sys
import tempfile
import time
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from cda.settings import load_settings
from cda.systems.coverage.authored_corpus import build_corpus
from cda.systems.coverage.setting_up import open_search
from cda.systems.coverage.system import CoverageSystem
from corpus.importers.mcd import import_mcd_csv
from corpus.importers.ncd import import_ncd_jsonl
from corpus.importers.write import write_import
from corpus.model import Clause, DateState
from corpus.store import CorpusStore

STEP = 37  # every 37th record is searched for, which spreads over contractors and dates


def import_all(folder: Path, out: Path) -> dict[str, Any]:
    """Import both files into `out`; the two reports' counts."""
    counts: dict[str, Any] = {}
    for name, path, read in (
        ("ncd-jsonl", folder / "ncd_extracts.jsonl", import_ncd_jsonl),
        ("mcd-csv", next(iter(sorted(folder.glob("mcd_documents_*.csv")))), import_mcd_csv),
    ):
        started = time.perf_counter()
        result = read(path)
        write_import(result, out / name, name, path)
        counts[name] = {
            **result.counts,
            "skipped": len(result.faults),
            "seconds": round(time.perf_counter() - started, 2),
        }
    return counts


def days_of(clause: Clause) -> list[date]:
    """Both sides of both ends of a window."""
    start, end = clause.effective_start, clause.effective_end
    ends = [day for day in (start, end) if day is not None]
    return sorted({day + timedelta(days=shift) for day in ends for shift in (-1, 0, 1)})


def search_by_date(store: CorpusStore, embedder: str, home: Path) -> dict[str, int]:
    """Search for records' titles as of the days around their windows; count hits and hits outside their window."""
    settings = load_settings().model_copy(update={"embedder": embedder, "home": home})
    search = open_search(settings, store, say=lambda _: None)
    dated = [clause for clause in store.clauses() if clause.payer_id == "CMS" and clause.date_state is DateState.DATED]
    totals = {"searches": 0, "hits": 0, "outside_window": 0, "undated_hits": 0, "own_record_missed": 0}
    for clause in dated[::STEP]:
        for day in days_of(clause):
            answer = search.search([clause.policy_title], payer_id="CMS", as_of=day, k=25)[0]
            found = [hit.clause for hit in answer.hits]
            totals["searches"] += 1
            totals["hits"] += len(found)
            totals["outside_window"] += sum(not hit.in_effect(day) for hit in found)
            totals["undated_hits"] += sum(hit.date_state != "DATED" for hit in found)
            same = any(hit.policy_title == clause.policy_title for hit in found)
            totals["own_record_missed"] += clause.in_effect(day) and not same
    return totals


def acupuncture(system: CoverageSystem) -> dict[str, str]:
    """The gate and outcome of one member on both sides of the effective date and of the implementation date."""
    facts = {
        "chronic_low_back_pain_weeks": 20,
        "low_back_pain_nonspecific": True,
        "low_back_pain_surgical_or_pregnancy": False,
        "acupuncture_visits_this_year": 0,
        "fibromyalgia": "absent",
    }
    answers = {}
    for day in ("2020-01-20", "2020-01-21", "2020-06-23", "2020-06-24"):
        result = system.ask(
            {
                "payer_id": "CMS",
                "plan_id": "CMS-MEDICARE",
                "procedure_codes": ["97810"],
                "diagnosis_codes": ["M54.50"],
                "as_of_date": day,
                "narrative": "",
                "question": "Is acupuncture covered?",
                "facts": facts,
            }
        )
        outcome = result.determination.outcome.value if result.determination else "none"
        answers[day] = f"{result.gate.state.value} {outcome}"
    return answers


def main() -> int:
    """Print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--embedder", default="tfidf", choices=["tfidf", "minilm-int8"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        document: dict[str, Any] = {"imported": import_all(options.folder, home / "imported")}
        started = time.perf_counter()
        build_corpus(["builtin", home / "imported"], home / "corpus.sqlite")
        document["build_seconds"] = round(time.perf_counter() - started, 2)
        with CorpusStore.open(home / "corpus.sqlite") as store:
            document["search"] = search_by_date(store, options.embedder, home)
        settings = load_settings().model_copy(
            update={"embedder": options.embedder, "home": home, "store": None, "trace_dir": None}
        )
        document["acupuncture"] = acupuncture(CoverageSystem.open(settings))
    json.dump(document, sys.stdout, indent=1)
    sys.stdout.write("\n")
    flipped = [document["acupuncture"][day].split()[1] for day in sorted(document["acupuncture"])]
    sound = document["search"]["outside_window"] == 0 == document["search"]["undated_hits"]
    return 0 if sound and flipped == ["NOT_COVERED", "COVERED", "COVERED", "COVERED"] else 1


if __name__ == "__main__":
    sys.exit(main())
