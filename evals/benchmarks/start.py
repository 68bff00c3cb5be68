"""Time from a cold shell: `python -m evals.benchmarks.start [--runs N]`.

Whole processes, store and index already built: `cda --help`, and `cda ask` with either embedder. Prints one JSON
document of wall seconds, minimum and median. Limits held: help under 0.3 s, ask under 1 s.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

REQUEST = Path(__file__).parents[2] / "docs" / "examples" / "cgm-2024-03-15.json"
CDA = [sys.executable, "-c", "from cda.cli import main; main()"]


def timed(arguments: list[str], environment: dict[str, str], runs: int) -> dict[str, float]:
    """Wall seconds of a command, after one run that warms the file cache and builds what is missing."""
    walls = []
    for _ in range(runs + 1):
        started = time.perf_counter()
        subprocess.run([*CDA, *arguments], env=environment, check=True, capture_output=True, timeout=300)
        walls.append(time.perf_counter() - started)
    return {"min_s": round(min(walls[1:]), 3), "median_s": round(median(walls[1:]), 3)}


def measure(runs: int) -> dict[str, Any]:
    """All commands, in a home of their own."""
    with tempfile.TemporaryDirectory() as home:
        # An installed product keeps its bytecode; a shell that forbids it would time the compiler.
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        base = {**kept, "CDA_HOME": home}
        return {
            "help": timed(["--help"], base, runs),
            **{
                f"ask ({embedder})": timed(
                    ["ask", "--request", str(REQUEST), "--json"], {**base, "CDA_EMBEDDER": embedder}, runs
                )
                for embedder in ("tfidf", "minilm-int8")
            },
        }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    json.dump({"start": measure(parser.parse_args().runs)}, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
