"""What a change of 1 % costs: `python -m evals.benchmarks.lifecycle [--rows 20000] [--embedder drawn] [--json]`.

A corpus of clause-like records goes through the index life-cycle on pgvector (an embedded server of this run's own)
and, when CDA_PINECONE_HOST names a loopback address, on Pinecone (the wire double; never a real account): once whole,
once again as it is, and once with 1 % of the texts changed.

Held: the second run embeds and writes nothing; the third writes and embeds 1 %, and takes at most 2 % of the time of
the first. Exit 1 when one is broken. `--embedder drawn` draws vectors from a seed instead of embedding; then the time
is that of everything but the embedding, and only writes are held.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np

from backends.base import IndexSpec, VectorBackend
from backends.factory import BackendConfig, open_backend
from backends.pgvector import PgVectorBackend
from backends.pinecone_config import PineconeConfig
from backends.postgres import Database
from backends.schema import POLICY
from cda.contracts.embedding import Embedder, Vectors
from cda.retrieval.embedders import for_building
from cda.retrieval.embedding_cache import EmbeddingCache
from cda.retrieval.lifecycle.goal import Goal, Wanted
from cda.retrieval.lifecycle.run import LifeCycle
from cda.retrieval.lifecycle.shared_files import FolderFiles
from cda.settings import load_settings
from evals.benchmarks.backends import Data, embedded_database

MOST = 0.02  # of the full run
CHANGED = 0.01
WORDS = ("member", "coverage", "criteria", "documented", "therapy", "weeks", "monitor", "insulin", "not", "unless")


class Drawn:
    """Unit vectors drawn from a text's own digest: no model, the same for the same text."""

    identity, dim = "drawn from a seed", 384

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One vector a text."""
        seeds = [int.from_bytes(sha256(text.encode("utf-8")).digest()[:8], "big") for text in texts]
        rows = [np.random.default_rng(seed).standard_normal(self.dim, dtype=np.float32) for seed in seeds]
        vectors: Vectors = np.asarray(rows, dtype=np.float32).reshape(len(texts), self.dim)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors


def goal_of(rows: int, embedder: Embedder, changed: float = 0.0) -> Goal:
    """So many records; of every hundred, the first has other words when 1 % is changed."""
    data, random = Data(rows, 0.053), np.random.default_rng(11)
    picked = random.integers(0, len(WORDS), (rows, 60))
    records: dict[str, Wanted] = {}
    for row, name in enumerate(data.ids):
        words = " ".join(WORDS[word] for word in picked[row])
        other = changed and row % round(1 / changed) == 0
        text = f"Clause {name} of policy {row}: {words}" + (" as amended" if other else "")
        records[name] = Wanted(name, data.meta(row), sha256(text.encode("utf-8")).hexdigest(), text)
    digest = sha256(f"{rows} {changed}".encode()).hexdigest()
    return Goal(IndexSpec(POLICY, embedder.identity, embedder.dim), digest, records)


def measure(backend: VectorBackend, embedder: Embedder, rows: int, folder: Path) -> dict[str, Any]:
    """The three runs on one backend."""
    folder.mkdir()
    cache = EmbeddingCache(folder / "embeddings.sqlite")
    first, third = goal_of(rows, embedder), goal_of(rows, embedder, CHANGED)
    runs: dict[str, dict[str, Any]] = {}
    for name, goal in (("whole", first), ("again", first), ("changed", third)):
        files, journals = FolderFiles(folder / "manifests"), folder / "journals"
        before = backend.usage()
        cpu, begun = process_time(), perf_counter()
        report = LifeCycle(backend, files, goal, embedder, cache=cache, journals=journals).index()
        runs[name] = {
            "s": round(perf_counter() - begun, 2),
            "cpu_s": round(process_time() - cpu, 2),
            "embedded": report.embedded,
            "upserted": report.upserted,
            "requests": backend.usage().requests - before.requests,
            "bytes_sent": backend.usage().bytes_sent - before.bytes_sent,
            "state": report.state,
        }
        print(f"{backend.capabilities().name}, {name}: {json.dumps(runs[name])}", file=sys.stderr)
    cache.close()
    return {
        "runs": runs,
        "writes_share": round(runs["changed"]["upserted"] / runs["whole"]["upserted"], 4),
        "time_share": round(runs["changed"]["s"] / runs["whole"]["s"], 4),
        "cpu_share": round(runs["changed"]["cpu_s"] / runs["whole"]["cpu_s"], 4),
    }


def pinecone_double() -> VectorBackend | None:
    """The backend over the double, None when no loopback address is set. It waits longer than the product does: the
    double is one process, and so is this."""
    settings = load_settings()
    key, host = settings.pinecone_api_key, settings.pinecone_host or ""
    if key is None or not host.startswith(("http://127.0.0.1:", "http://localhost:")):
        return None
    patient = PineconeConfig(key, "bench-lifecycle", "bench", host=host, read_deadline_s=300, write_deadline_s=300)
    return open_backend(BackendConfig("pinecone", Path(), patient))


def broken(figures: Mapping[str, Any], *, timed: bool) -> list[str]:
    """The limits that do not hold."""
    found = []
    for name, held in figures.items():
        runs = held["runs"]
        if any(run["state"] != "live" for run in runs.values()):
            found.append(f"{name}: a run did not end live")
        if runs["again"]["embedded"] or runs["again"]["upserted"]:
            found.append(f"{name}: the second identical run wrote or embedded")
        if held["writes_share"] > MOST or runs["changed"]["embedded"] > MOST * runs["whole"]["embedded"]:
            found.append(f"{name}: 1 % changed writes or embeds more than {MOST:.0%}")
        if timed and held["time_share"] > MOST:
            found.append(f"{name}: 1 % changed takes {held['time_share']:.1%} of the time, more than {MOST:.0%}")
    return found


def main() -> None:
    """Measure, print, and exit 1 when a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--embedder", choices=("minilm-int8", "drawn"), default="minilm-int8")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    figures = {}
    with TemporaryDirectory(prefix="cda-bench-") as root:
        Path(root).chmod(0o755)  # as root, the embedded server's account must pass
        embedder: Embedder = Drawn()
        if options.embedder != "drawn":
            embedder = for_building(options.embedder, list, Path(root))
        (Path(root) / "server").mkdir()
        with embedded_database(Path(root) / "server") as url:
            pgvector = PgVectorBackend(Database(url))
            figures["pgvector"] = measure(pgvector, embedder, options.rows, Path(root) / "pgvector")
            pgvector.close()
        if (pinecone := pinecone_double()) is not None:
            figures["pinecone"] = measure(pinecone, embedder, options.rows, Path(root) / "pinecone")
            pinecone.close()
    missed = broken(figures, timed=options.embedder != "drawn")
    if options.json:
        print(json.dumps({"rows": options.rows, "embedder": embedder.identity, **figures, "broken": missed}, indent=1))
    else:
        for name, held in figures.items():
            print(f"{name}: " + json.dumps({key: value for key, value in held.items() if key != "runs"}))
        print(f"broken: {missed or 'nothing'}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
