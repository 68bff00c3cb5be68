"""Runs samples over processes or threads: ordered, resumable, with progress. No answer is taken from a cache.

Each worker process opens the system once and is handed chunks of cases. Where a model is asked, samples run in threads
instead: they share one client, whose limit of requests in flight holds over all of them. Records come back in any
order and are put into the order of the samples, so that the result does not depend on the number of workers.
"""

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from cda.contracts.model_client import FailureKind
from cda.errors import InterruptedRun, UnavailableError
from evals.asking import Asked, Asker, answer_in_worker, open_worker, plain_worlds
from evals.journal import Journal
from evals.record import Record, Sample
from evals.shipped_corpus import Worlds
from evals.suite import Say

CHUNK = 4  # small, so that a kill loses little and no worker waits at the end; handing one over costs under 1 ms
CLOSED = frozenset({FailureKind.UNAUTHORISED.value, FailureKind.UNKNOWN_MODEL.value})
"""What fails every sample alike: the run ends instead of scoring it."""
IN_THREADS = 16  # samples under way where a model is asked: enough to keep its requests in flight, few enough to wait
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
    threads: bool = False,
    finish: bool = True,
) -> list[Record]:
    """The records of all samples, in their order. finish: nothing is left to do with the journal.

    Raises InterruptedRun (what was done is kept) when it is stopped, UnavailableError when the model's service lets
    nobody in before the first answer.
    """
    done: dict[Sample, Record] = journal.resume(item.sample for item in asked)
    left = [item for item in asked if item.sample not in done]
    if done:
        say(f"going on after a stopped run: {len(done)} of {len(asked)} cases were answered")
    progress = _Progress(len(asked), len(done), say)
    chunks = [left[start : start + CHUNK] for start in range(0, len(left), CHUNK)]
    alone = concurrency <= 1 or len(left) < FEW
    source: Iterator[list[str]]
    if threads:
        source = _over_threads(left, asker, concurrency)
    elif alone:
        source = _here(chunks, asker)
    else:
        source = _over_processes(chunks, worlds, min(concurrency, len(chunks)))
    try:
        for lines in source:
            records = [Record.from_json(line) for line in lines]
            _refuse_closed(records, bool(done))
            journal.append(lines)
            done |= {record.sample: record for record in records}
            progress.heard(len(done))
    except KeyboardInterrupt:
        raise InterruptedRun(f"stopped after {len(done)} of {len(asked)} cases; the same command goes on") from None
    except BrokenProcessPool:
        raise InterruptedRun(
            f"a worker process died after {len(done)} of {len(asked)} cases; the same command goes on, "
            "--concurrency 1 needs least memory"
        ) from None
    if finish:
        journal.finish()
    return [done[item.sample] for item in asked]


def _here(chunks: Sequence[Sequence[Asked]], asker: Asker) -> Iterator[list[str]]:
    for chunk in chunks:
        yield [asker.answer(item).to_json() for item in chunk]


def _over_threads(left: Sequence[Asked], asker: Asker, workers: int) -> Iterator[list[str]]:
    def answered(item: Asked) -> list[str]:
        return [asker.answer(item).to_json()]

    pool = ThreadPoolExecutor(workers, thread_name_prefix="sample")
    try:
        futures = [pool.submit(answered, item) for item in left]
        for future in as_completed(futures):
            yield future.result()
    finally:
        # What is in flight is cancelled by closing the client; here only what has not begun.
        pool.shutdown(wait=False, cancel_futures=True)


def _refuse_closed(records: Sequence[Record], answered: bool) -> None:
    """Raise when the model's service lets nobody in."""
    for record in records:
        for reason in record.reasons:
            if reason.split(":", 1)[0] in CLOSED:
                raise (InterruptedRun if answered else UnavailableError)(reason)


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
