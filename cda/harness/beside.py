"""Work beside the caller, who waits for it no longer than he wants.

Threads are used again: starting one took 1.5 ms of a run's 22, most of it memory that every new thread asks for anew.
"""

import os
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from threading import Event, Thread

_idle: list["_Worker"] = []
# A forked child has none of its parent's threads.
os.register_at_fork(after_in_child=_idle.clear)


def finished(work: Callable[[], None], *, within_s: float) -> bool:
    """Run `work` on another thread, in the caller's context; False when it is not done after that time. It then goes
    on, and its thread with it until it is: only a thread that has nothing to do is used again."""
    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
    done = Event()
    worker.jobs.put((partial(copy_context().run, work), done))
    return done.wait(within_s)


class _Worker:
    def __init__(self) -> None:
        self.jobs: SimpleQueue[tuple[Callable[[], object], Event]] = SimpleQueue()
        Thread(target=self._run, name="cda-run", daemon=True).start()

    def _run(self) -> None:
        while True:
            self._do(*self.jobs.get())

    def _do(self, work: Callable[[], object], done: Event) -> None:
        try:
            work()
            _idle.append(self)
        finally:
            done.set()  # also when the work ends this thread
