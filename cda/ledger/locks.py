"""Locks between processes, with an end to waiting: who holds one and hangs must not hang everybody else."""

import errno
import fcntl
import os
from threading import Event, Thread


def lock(descriptor: int, patience_s: float, *, shared: bool = False) -> None:
    """Hold the file of the descriptor until it is closed: alone, or with others who share it. OSError when another
    holds it for too long."""
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        # Waiting in the kernel's own queue is fair, where asking again and again is not; but it cannot be given up, so
        # a thread waits, on a twin of the descriptor: when it comes too late, it lets go of what nobody wants any more.
        held, twin = Event(), os.dup(descriptor)
        Thread(target=_wait, args=(twin, kind, held), daemon=True).start()
        if not held.wait(patience_s):
            raise OSError(errno.ETIMEDOUT, "another process holds its lock and does not let go") from None


def _wait(twin: int, kind: int, held: Event) -> None:
    try:
        fcntl.flock(twin, kind)
        held.set()
    finally:
        os.close(twin)
