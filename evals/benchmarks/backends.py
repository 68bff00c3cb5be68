"""Vector backends side by side: `python -m evals.benchmarks.backends [--rows 100000] [--rounds 4] [--json]`.

One set of vectors, one filter (payer, and a day inside the window), the ten best: asked of the local files, of pgvector
on an embedded server, and of two known peers, Chroma and sqlite-vec (the extra `bench`; left out when they are not
installed). The engines take turns in rounds, so that a busy minute of the machine hits them all. Every answer is
compared with a plain product over all eligible vectors.

Held: pgvector finds every one of the true ten at 1 % of 20,000 rows; local is at least 5 times as quick as the quicker
peer by median wall time at the full size (10 is the target). Exit 1 when one is broken, or when no peer was there.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, Protocol

import numpy as np

from backends.base import IndexSpec, Record, VectorBackend, Vectors
from backends.embedded import EmbeddedPostgres
from backends.filters import All, Eq, Ge, Le, Where
from backends.local import LocalBackend
from backends.migrations import migrate
from backends.pgvector import PgVectorBackend
from backends.postgres import Database
from backends.schema import CODES_NONE, JURISDICTION_ANY, PLAN_ANY, POLICY, Meta, day_number

DIM, K = 384, 10
QUERIES = 50  # a round
PAYERS = tuple(f"PAY{i}" for i in range(8))
YEARS = 6
SPEC = IndexSpec(POLICY, "drawn from a seed", DIM)
TARGET = "bench"
FLOOR, WANTED = 5.0, 10.0


@dataclass(frozen=True, slots=True)
class Question:
    """A query vector, and what may answer it."""

    vector: Vectors  # shape (384,)
    payer: str
    day: int

    @property
    def where(self) -> Where:
        """The filter in the house's language."""
        first, last = POLICY["effective_start_i"], POLICY["effective_end_i"]
        return All((Eq(POLICY["payer_id"], self.payer), Le(first, self.day), Ge(last, self.day)))


class Data:
    """Clause-like rows from a seed: unit vectors, 8 payers, windows of which `selectivity` admit a payer's day."""

    def __init__(self, rows: int, selectivity: float, seed: int = 7) -> None:
        random = np.random.default_rng(seed)
        self.vectors: Vectors = random.standard_normal((rows, DIM), dtype=np.float32)
        self.vectors /= np.linalg.norm(self.vectors, axis=1, keepdims=True)
        self.ids = [f"MP-{i // 10:05}.v{1 + i // 5 % 2}.C{i % 5 + 1}" for i in range(rows)]
        days = YEARS * 365
        share = selectivity * len(PAYERS)
        width = round(days * share / (1 - share))  # starts are drawn from `width` days before the first day asked for
        start = random.integers(-width, days, rows)
        self.payer = np.asarray(random.integers(0, len(PAYERS), rows))
        self.start = np.asarray([_day(int(day)) for day in start])
        self.end = np.asarray([_day(int(day) + width) for day in start])
        self._random = random

    def questions(self, count: int) -> list[Question]:
        """New ones with each call."""
        drawn = self._random.standard_normal((count, DIM), dtype=np.float32)
        drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
        return [
            Question(vector, PAYERS[self._random.integers(0, 8)], _day(int(self._random.integers(0, YEARS * 365))))
            for vector in drawn
        ]

    def admitted(self, asked: Question) -> "np.ndarray[Any, np.dtype[np.bool_]]":
        """A mask of the rows that may answer."""
        mask: np.ndarray[Any, np.dtype[np.bool_]] = (
            (self.payer == PAYERS.index(asked.payer)) & (self.start <= asked.day) & (asked.day <= self.end)
        )
        return mask

    def best(self, asked: Question) -> set[str]:
        """The true ten, by a plain product."""
        rows = np.flatnonzero(self.admitted(asked))
        order = np.argsort(-(self.vectors[rows] @ asked.vector), kind="stable")[:K]
        return {self.ids[row] for row in rows[order]}

    def meta(self, row: int) -> Meta:
        """The row's fields."""
        return {
            "payer_id": PAYERS[self.payer[row]],
            "policy_id": self.ids[row].split(".")[0],
            "version": "v1",
            "section": "Coverage Criteria",
            "source": "policy",
            "doc_type": "medical_policy_bulletin",
            "plan_id": PLAN_ANY,
            "codes": (CODES_NONE,),
            "jurisdiction": (JURISDICTION_ANY,),
            "effective_start_i": int(self.start[row]),
            "effective_end_i": int(self.end[row]),
        }

    def records(self) -> Iterator[Record]:
        """Every row as a backend takes it."""
        return (Record(i, self.vectors[row], self.meta(row), f"h{row}") for row, i in enumerate(self.ids))


def _day(offset: int) -> int:
    return day_number(date(2019, 1, 1) + timedelta(days=offset))


class Engine(Protocol):
    """What is measured: load once, then answer one question at a time with ids."""

    def load(self, data: Data) -> None:
        """Take all rows."""
        ...

    def ask(self, asked: Question) -> list[str]:
        """At most ten ids."""
        ...


class Ours:
    """One of this product's backends."""

    def __init__(self, backend: VectorBackend) -> None:
        self._backend = backend

    def load(self, data: Data) -> None:
        """All in one write."""
        self._backend.ensure(TARGET, SPEC)
        self._backend.upsert(TARGET, SPEC, data.records())

    def ask(self, asked: Question) -> list[str]:
        """Through the protocol, as the product does."""
        pages = self._backend.search(TARGET, SPEC, asked.vector[None, :], k=K, where=asked.where)
        return [hit.id for hit in pages[0].hits]


class Chroma:
    """chromadb, persistent, cosine, filtered by metadata."""

    def __init__(self, folder: Path) -> None:
        import chromadb
        from chromadb.config import Settings

        quiet = Settings(anonymized_telemetry=False)
        self._client = chromadb.PersistentClient(path=str(folder / "chroma"), settings=quiet)
        self._rows = self._client.create_collection(
            "bench", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
        )

    def load(self, data: Data) -> None:
        """In batches of 5,000, the largest it takes."""
        for first in range(0, len(data.ids), 5000):
            rows = range(first, min(first + 5000, len(data.ids)))
            metas: Any = [
                {"payer_id": PAYERS[data.payer[r]], "from": int(data.start[r]), "to": int(data.end[r])} for r in rows
            ]
            self._rows.add(ids=[data.ids[r] for r in rows], embeddings=data.vectors[first : rows.stop], metadatas=metas)

    def ask(self, asked: Question) -> list[str]:
        """Distances only: no documents, no metadata."""
        where: Any = {"$and": [{"payer_id": asked.payer}, {"from": {"$lte": asked.day}}, {"to": {"$gte": asked.day}}]}
        vectors = asked.vector[None, :]
        found = self._rows.query(query_embeddings=vectors, n_results=K, where=where, include=["distances"])
        return list(found["ids"][0])


class SqliteVec:
    """sqlite-vec: the payer as partition key, the window as metadata columns."""

    def __init__(self, folder: Path) -> None:
        import sqlite3

        import sqlite_vec

        connect: Callable[[str], Any] = sqlite3.connect
        if not hasattr(sqlite3.Connection, "enable_load_extension"):
            import pysqlite3  # this Python was built without loading of extensions

            connect = pysqlite3.connect
        self._file = connect(str(folder / "vec.sqlite"))
        self._file.enable_load_extension(True)
        sqlite_vec.load(self._file)
        self._file.execute(
            f"CREATE VIRTUAL TABLE bench USING vec0(embedding float[{DIM}] distance_metric=cosine,"
            " payer_id text partition key, start integer, stop integer, +id text)"
        )

    def load(self, data: Data) -> None:
        """In one transaction."""
        with self._file:
            self._file.executemany(
                "INSERT INTO bench (embedding, payer_id, start, stop, id) VALUES (?, ?, ?, ?, ?)",
                (
                    (data.vectors[r].tobytes(), PAYERS[data.payer[r]], int(data.start[r]), int(data.end[r]), i)
                    for r, i in enumerate(data.ids)
                ),
            )

    def ask(self, asked: Question) -> list[str]:
        """The filter inside its own scan."""
        rows = self._file.execute(
            "SELECT id FROM bench WHERE embedding MATCH ? AND k = ? AND payer_id = ? AND start <= ? AND stop >= ?",
            (asked.vector.tobytes(), K, asked.payer, asked.day, asked.day),
        )
        return [name for (name,) in rows]


PEERS: dict[str, Callable[[Path], Engine]] = {"chroma": Chroma, "sqlite-vec": SqliteVec}


@contextmanager
def embedded_database(folder: Path) -> Iterator[str]:
    """The address of a migrated database on a server of this run's own."""
    server = EmbeddedPostgres(folder / "postgres", options={"shared_buffers": "512MB"})
    server.up()
    try:
        database = Database(server.url)
        migrate(database)
        database.close()
        yield server.url
    finally:
        server.down()


def measure_recall(folder: Path) -> dict[str, Any]:
    """pgvector against the plain product: 20,000 rows, of which a filter admits 1 %."""
    data = Data(20_000, 0.01)
    asked = data.questions(100)
    with embedded_database(folder) as url:
        exact, near = PgVectorBackend(Database(url)), PgVectorBackend(Database(url), hnsw=True)
        try:
            engine = Ours(exact)
            engine.load(data)
            figures: dict[str, Any] = {
                "rows": len(data.ids),
                "selectivity": round(float(np.mean([data.admitted(one).mean() for one in asked])), 4),
                "recall": _recall(data, engine, asked),
            }
            near.upsert(TARGET, SPEC, [])  # nothing to write, and the approximate index over what is there
            figures["recall_with_hnsw_index_and_exact_search"] = _recall(data, engine, asked)
            figures["recall_of_hnsw"] = _recall(data, Ours(near), asked)
        finally:
            exact.close()
            near.close()
    return figures


def _recall(data: Data, engine: Engine, asked: Sequence[Question]) -> float:
    pairs = [(data.best(one), set(engine.ask(one))) for one in asked]
    return round(sum(len(best & found) for best, found in pairs) / sum(len(best) for best, _ in pairs), 4)


def measure_speed(
    rows: int, selectivity: float, rounds: int, folder: Path, wanted: Sequence[str] = tuple(PEERS)
) -> dict[str, Any]:
    """Every engine over the same rows and questions, in turns; of the peers those wanted."""
    data = Data(rows, selectivity)
    with embedded_database(folder) as url:
        pgvector = PgVectorBackend(Database(url))
        engines: dict[str, Engine] = {"local": Ours(LocalBackend(folder / "local")), "pgvector": Ours(pgvector)}
        absent = []
        for name, make in PEERS.items():
            if name not in wanted:
                continue
            try:
                engines[name] = make(folder)
            except ModuleNotFoundError:
                absent.append(name)
        try:
            figures = _take_turns(data, engines, rounds)
        finally:
            pgvector.close()
    asked = data.questions(QUERIES)
    admitted = float(np.mean([data.admitted(one).sum() for one in asked]))
    floor = admitted * DIM * 4 / bytes_per_second() * 1000
    peers = [figures[name]["p50_ms"] for name in PEERS if name in figures]
    quickest = min(peers) if peers else None
    return {
        "rows": rows,
        "eligible_rows": round(admitted),
        "engines": figures,
        "absent": absent,
        "memory_floor_ms": round(floor, 3),
        "local_to_memory_floor": round(figures["local"]["p50_ms"] / floor, 2),
        "local_times_quicker_than_the_quicker_peer": quickest and round(quickest / figures["local"]["p50_ms"], 1),
    }


def _take_turns(data: Data, engines: dict[str, Engine], rounds: int) -> dict[str, Any]:
    loads: dict[str, float] = {}
    for name, engine in engines.items():
        begun = perf_counter()
        engine.load(data)
        loads[name] = perf_counter() - begun
        print(f"{name}: loaded in {loads[name]:.1f} s", file=sys.stderr)
    walls: dict[str, list[float]] = {name: [] for name in engines}
    cpus: dict[str, list[float]] = {name: [] for name in engines}
    kept: dict[str, list[int]] = {name: [] for name in engines}
    for _ in range(rounds):
        asked = data.questions(QUERIES)
        best = [data.best(one) for one in asked]
        for name, engine in engines.items():
            for one in asked[:3]:
                engine.ask(one)  # the one before has filled the caches with its own
            for one, true in zip(asked, best, strict=True):
                cpu, begun = process_time(), perf_counter()
                found = engine.ask(one)
                walls[name].append((perf_counter() - begun) * 1000)
                cpus[name].append((process_time() - cpu) * 1000)
                kept[name].append(len(true & set(found)))
    return {
        name: {
            "p50_ms": round(median(walls[name]), 3),
            "p95_ms": round(quantiles(walls[name], n=20)[-1], 3),
            # A server's own work is not in its client's CPU time.
            "cpu_ms": None if name == "pgvector" else round(median(cpus[name]), 3),
            "recall": round(sum(kept[name]) / (K * len(kept[name])), 4),
            "load_s": round(loads[name], 1),
        }
        for name in engines
    }


def bytes_per_second() -> float:
    """What one thread reads from memory: the best of several passes over 256 MB."""
    held = np.ones(1 << 25, dtype=np.uint64)
    passes = []
    for _ in range(8):
        begun = perf_counter()
        held.max()
        passes.append(perf_counter() - begun)
    return held.nbytes / min(passes)


def main() -> None:
    """Measure, print, and exit 1 when a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--selectivity", type=float, default=0.053, help="share of the rows that a filter admits")
    parser.add_argument("--rounds", type=int, default=4, help=f"of {QUERIES} questions to each engine")
    parser.add_argument("--peer", action="append", choices=list(PEERS), help="only this one; default: each")
    parser.add_argument("--json", action="store_true", help="print one JSON document and no table")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="cda-bench-") as root:
        Path(root).chmod(0o755)  # as root, the embedded server's account must pass
        for part in ("recall", "speed"):
            (Path(root) / part).mkdir()
        recall = measure_recall(Path(root) / "recall")
        speed = measure_speed(
            options.rows, options.selectivity, options.rounds, Path(root) / "speed", options.peer or tuple(PEERS)
        )
    machine = {"cores": os.cpu_count(), "load_1m": round(os.getloadavg()[0], 1)}
    machine["read_gb_per_s"] = round(bytes_per_second() / 1e9, 1)
    ratio = speed["local_times_quicker_than_the_quicker_peer"]
    broken = [
        name
        for name, held in {
            "pgvector finds the true ten at 1 %": recall["recall"] == 1.0,
            f"local is {FLOOR:g} times as quick as the quicker peer": ratio is not None and ratio >= FLOOR,
        }.items()
        if not held
    ]
    if options.json:
        print(json.dumps({"machine": machine, "recall": recall, "speed": speed, "broken": broken}, indent=1))
    else:
        _print_tables(machine, recall, speed, broken)
    sys.exit(1 if broken else 0)


def _print_tables(machine: dict[str, Any], recall: dict[str, Any], speed: dict[str, Any], broken: list[str]) -> None:
    print(f"machine: {json.dumps(machine)}\n\n| engine | p50 ms | p95 ms | CPU ms | recall@10 | load s |")
    print("|---|---|---|---|---|---|")
    for name, row in speed["engines"].items():
        cells = (row[cell] for cell in ("p50_ms", "p95_ms", "cpu_ms", "recall", "load_s"))
        print(f"| {name} | " + " | ".join("" if cell is None else str(cell) for cell in cells) + " |")
    print(f"\n{json.dumps({name: value for name, value in speed.items() if name != 'engines'})}")
    print(f"recall: {json.dumps(recall)}\nbroken: {broken or 'nothing'}")


if __name__ == "__main__":
    main()
