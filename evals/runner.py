"""Runs cases over processes: ordered, resumable, with progress. Answers are computed anew, never taken from a cache.

Each worker process opens the system once and is handed chunks of cases; records come back in any order and are put
into the order of the cases, so that the result does not depend on the number of workers.
"""

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from cda.errors import InterruptedRun
from evals.asking import Asked, Asker, answer_in_worker, open_worker, plain_worlds
from evals.journal import Journal
from evals.record import Record
from evals.shipped_corpus import Worlds
from evals.suite import Say

CHUNK = 4  # small, so that a kill loses little and no worker waits at the end; handing one over costs under 1 ms
FEW = 24  # below this, starting workers takes longer than asking


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_cases(
    asked: Sequence[Asked],
    *,
    asker: Asker,
    worlds: Worlds,
    journal: Journal,
    concurrency: int,
    say: Say,
) -> list[Record]:
    """The records of all cases, in their order. Raises InterruptedRun (what was done is kept) when it is stopped."""
    done = journal.resume(item.case.case_id for item in asked)
    left = [item for item in asked if item.case.case_id not in done]
    if done:
        say(f"going on after a stopped run: {len(done)} of {len(asked)} cases were answered")
    progress = _Progress(len(asked), len(done), say)
    chunks = [left[start : start + CHUNK] for start in range(0, len(left), CHUNK)]
    alone = concurrency <= 1 or len(left) < FEW
    source = _here(chunks, asker) if alone else _over_processes(chunks, worlds, min(concurrency, len(chunks)))
    try:
        for lines in source:
            journal.append(lines)
            records = [Record.from_json(line) for line in lines]
            done |= {record.case_id: record for record in records}
            progress.heard(len(done))
    except KeyboardInterrupt:
        raise InterruptedRun(f"stopped after {len(done)} of {len(asked)} cases; the same command goes on") from None
    except BrokenProcessPool:
        raise InterruptedRun(
            f"a worker process died after {len(done)} of {len(asked)} cases; the same command goes on, "
            "--concurrency 1 needs least memory"
        ) from None
    journal.finish()
    return [done[item.case.case_id] for item in asked]


def _here(chunks: Sequence[Sequence[Asked]], asker: Asker) -> Iterator[list[str]]:
    for chunk in chunks:
        yield [asker.answer(item).to_json() for item in chunk]


def _over_processes(chunks: Sequence[Sequence[Asked]], worlds: Worlds, workers: int) -> Iterator[list[str]]:
    # Spawned, not forked: the parent holds open indexes and threads.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=open_worker, initargs=(plain_worlds(worlds),))
    try:
        futures: list[Future[list[str]]] = [pool.submit(answer_in_worker, chunk) for chunk in chunks]
        for future in as_completed(futures):
            yield future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class _Progress:
    """Says how far the run is, at each tenth."""

    def __init__(self, total: int, done: int, say: Say) -> None:
        self._total, self._first, self._say = total, done, say
        self._started = time.monotonic()
        self._tenth = 10 * done // max(total, 1)

    def heard(self, done: int) -> None:
        """`done` cases are answered."""
        tenth = 10 * done // max(self._total, 1)
        if tenth > self._tenth:
            self._tenth = tenth
            rate = (done - self._first) / max(time.monotonic() - self._started, 1e-9)
            self._say(f"{done} of {self._total} cases, {rate:.0f} a second")
