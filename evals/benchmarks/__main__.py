"""All benchmarks in turn, each in its own process: `python -m evals.benchmarks`, or `make bench`."""

import subprocess
import sys

for name in ("start", "determination", "throughput", "search", "text", "claims", "serving"):
    subprocess.run([sys.executable, "-m", f"evals.benchmarks.{name}"], check=True)
