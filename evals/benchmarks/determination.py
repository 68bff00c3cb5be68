"""Latency of one determination, in process: `python -m evals.benchmarks.determination [--embedder E] [--runs N]`.

Each run asks a fresh request (the narrative's first words vary, so no cache of texts can answer) over the shipped
corpora with a narrative of about 600 characters. Prints one JSON document: p50, p95 and CPU time, in milliseconds.
"""

import argparse
import gc
import json
import sys
import time
from statistics import quantiles
from typing import Any

from cda.settings import load_settings
from cda.systems.coverage.system import CoverageSystem

NARRATIVE = (
    "Visit {number}. 34-year-old with type 1 diabetes since childhood, here for routine follow-up. Checks fingersticks "
    "five times a day and brings a log. Reports that she can feel her lows and has no hypoglycemia unawareness. No "
    "severe episodes this year. Basal-bolus regimen unchanged: glargine at bedtime, lispro with meals. Weight stable, "
    "blood pressure 118/74, foot exam normal, eye exam done in spring. Works night shifts and finds it hard to keep a "
    "regular meal schedule. Discussed carbohydrate counting and exercise. Plan: request personal-use sensor supplies, "
    "continue current insulin doses, labs in three months."
)


def request(number: int) -> dict[str, Any]:
    """One request; the number makes its texts new."""
    return {
        "payer_id": "MHP",
        "plan_id": "MHP-HMO-BASE",
        "procedure_codes": ["A9276"],
        "diagnosis_codes": ["E10.9"],
        "as_of_date": "2024-03-15",
        "narrative": NARRATIVE.format(number=number),
        "question": f"Is personal-use CGM covered for this member (request {number})?",
    }


def measure(embedder: str, runs: int) -> dict[str, Any]:
    """Time `runs` determinations after ten warm-up ones."""
    system = CoverageSystem.open(load_settings().model_copy(update={"embedder": embedder}))
    gc.set_threshold(50_000)  # as `cda` has it
    for number in range(10):
        system.ask(request(-number - 1))
    wall: list[float] = []
    cpu_start = time.process_time()
    for number in range(runs):
        start = time.perf_counter()
        result = system.ask(request(number))
        wall.append((time.perf_counter() - start) * 1000)
        assert result.gate.state == "DETERMINE", result.gate
    cpu = (time.process_time() - cpu_start) * 1000 / runs
    cuts = quantiles(wall, n=100)
    return {
        "embedder": embedder,
        "runs": runs,
        "p50_ms": round(cuts[49], 2),
        "p95_ms": round(cuts[94], 2),
        "cpu_ms": round(cpu, 2),
        "narrative_characters": len(NARRATIVE),
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embedder", action="append", choices=["tfidf", "minilm-int8"])
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    rows = [measure(embedder, options.runs) for embedder in options.embedder or ["tfidf", "minilm-int8"]]
    json.dump({"determination": rows}, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
