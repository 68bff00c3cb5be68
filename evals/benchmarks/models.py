"""How close a run that asks a model comes to what its limit of requests in flight allows.

    PYTHONPATH=tests python -m doubles.messages_server --seconds 20 &      # a service that takes its time
    CDA_MODEL=anthropic:claude-sonnet-5 ANTHROPIC_API_KEY=the-key ANTHROPIC_BASE_URL=http://127.0.0.1:5081 \\
        python -m evals.benchmarks.models --seconds 20

Asks the cases of two sets with the hybrid reasoner, one call each, and prints one JSON document: calls, wall and CPU
time, the ideal (calls x seconds / limit) and the ratio of wall time to it. Not part of `make bench`: it needs a
service.
"""

import argparse
import json
import sys
import time
from typing import Any

from cda.settings import load_settings
from evals.runner import IN_THREADS
from evals.suite import Options
from evals.suites.coverage import prepare

SETS = ("floor", "adversarial")


def measure(cases: int, seconds: float) -> dict[str, Any]:
    """One run over the first `cases` of the sets."""
    settings = load_settings().model_copy(update={"reasoner": "hybrid"})
    options = Options(settings, sets=SETS, limit=cases, concurrency=max(IN_THREADS, 2 * settings.model_concurrency))
    started, cpu = time.perf_counter(), time.process_time()
    run = prepare(options).run(lambda text: print(text, file=sys.stderr, flush=True))
    wall, used = time.perf_counter() - started, time.process_time() - cpu
    calls = run.scorecard["spent"]["calls"]
    ideal = calls * seconds / settings.model_concurrency
    return {
        "cases": run.scorecard["case_set"]["count"],
        "calls": calls,
        "failed_calls": run.scorecard["spent"]["failed_calls"],
        "in_flight": settings.model_concurrency,
        "seconds_a_call": seconds,
        "wall_s": round(wall, 2),
        "cpu_s": round(used, 2),
        "ideal_s": round(ideal, 2),
        "ratio": round(wall / ideal, 3),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=152)
    parser.add_argument("--seconds", type=float, default=20.0, help="What the service takes for every question.")
    given = parser.parse_args()
    print(json.dumps(measure(given.cases, given.seconds), indent=2))


if __name__ == "__main__":
    main()
