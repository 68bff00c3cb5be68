"""Rate limits that hold over every process: a sliding window of calls in one SQLite file."""

import sqlite3
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from threading import Lock
from time import time

from cda.serving.principal import Rate

_TABLE = (
    "CREATE TABLE IF NOT EXISTS passed (name TEXT NOT NULL, number INTEGER NOT NULL, at REAL NOT NULL, "
    "PRIMARY KEY (name, number)) WITHOUT ROWID"
)
_INDEX = "CREATE INDEX IF NOT EXISTS passed_by_age ON passed (at)"
# The calls that passed are numbered, so that a window is weighed by one look and no counting: it is full when the call
# `count` before the next one is still in it.
_NEXT = "(SELECT coalesce(max(number), 0) + 1 AS number FROM passed WHERE name = :name) AS next"
_FULL = "EXISTS (SELECT 1 FROM passed WHERE name = :name AND number = next.number - :count AND at > :edge)"
_TAKE = f"INSERT INTO passed SELECT :name, next.number, :now FROM {_NEXT} WHERE NOT {_FULL}"  # noqa: S608
_LOOK = f"SELECT {_FULL} FROM {_NEXT}"  # noqa: S608
# A clock that was set back leaves calls in the future; they count from now on, and not until it is there again.
_FUTURE = "UPDATE passed SET at = :now WHERE name = :name AND at > :now"
_FORGET = (
    "DELETE FROM passed WHERE name = :name AND at <= :edge AND number < "
    "(SELECT max(number) FROM passed WHERE name = :name)"
)
_FORGET_ALL = "DELETE FROM passed WHERE at <= ?"
LONGEST_S = 100_000  # no window is longer
FORGET_EVERY = 64  # calls of one name
LOCK_S = 3.0  # for other processes to count theirs


class LimiterUnavailable(Exception):
    """The limiter cannot count, so nothing may pass."""


class RateLimiter:
    """Counts calls by name. The window slides: at no moment did more than `count` calls pass in the last `seconds`."""

    def __init__(self, file: Path, *, clock: Callable[[], float] = time) -> None:
        self._clock = clock
        self._lock, self._turns = Lock(), count(1)
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._db = sqlite3.connect(file, timeout=LOCK_S, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=OFF")  # a count that a power cut loses is no loss
            self._db.execute(_TABLE)
            self._db.execute("DROP INDEX IF EXISTS passed_by_time")
            self._db.execute(_INDEX)
            self._db.execute(_FORGET_ALL, (clock() - LONGEST_S,))
        except (sqlite3.Error, OSError) as error:
            raise LimiterUnavailable(f"the rate limiter's file {file} cannot be used ({error})") from None

    def take(self, name: str, rate: Rate) -> bool:
        """Count one call; False, and nothing counted, when the window is full."""
        asked = self._asked(name, rate)
        if not self._run(_TAKE, asked).rowcount:
            self._run(_FUTURE, asked)
            return False
        if next(self._turns) % FORGET_EVERY == 0:
            self._run(_FORGET, asked)
        return True

    def full(self, name: str, rate: Rate) -> bool:
        """True when no further call would pass; nothing is counted."""
        asked = self._asked(name, rate)
        found = bool(self._run(_LOOK, asked).fetchone()[0])
        if found:
            self._run(_FUTURE, asked)
        return found

    def _asked(self, name: str, rate: Rate) -> dict[str, object]:
        now = self._clock()
        return {"name": name, "count": rate.count, "now": now, "edge": now - rate.seconds}

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _run(self, statement: str, asked: Mapping[str, object]) -> sqlite3.Cursor:
        """One statement, which SQLite makes a transaction of its own over all threads and processes."""
        try:
            with self._lock:
                return self._db.execute(statement, asked)
        except sqlite3.Error as error:
            raise LimiterUnavailable(type(error).__name__) from None
