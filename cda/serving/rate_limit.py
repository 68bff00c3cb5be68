"""Rate limits that hold over every process: a sliding window of calls in one SQLite file."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from time import time

from cda.serving.principal import Rate

_TABLE = (
    "CREATE TABLE IF NOT EXISTS passed (name TEXT NOT NULL, number INTEGER NOT NULL, at REAL NOT NULL, "
    "PRIMARY KEY (name, number)) WITHOUT ROWID"
)
_HELD = "SELECT 1 FROM passed WHERE name = ? AND number <= ? LIMIT 1"
_INDEX = "CREATE INDEX IF NOT EXISTS passed_by_time ON passed (name, at)"


class LimiterUnavailable(Exception):
    """The limiter cannot count, so nothing may pass."""


class RateLimiter:
    """Counts calls by name. The window slides: at no moment did more than `count` calls pass in the last `seconds`."""

    def __init__(self, file: Path, *, clock: Callable[[], float] = time) -> None:
        self._clock = clock
        self._lock = Lock()
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._db = sqlite3.connect(file, timeout=10, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=OFF")  # a count that a power cut loses is no loss
            self._db.execute(_TABLE)
            self._db.execute(_INDEX)
        except (sqlite3.Error, OSError) as error:
            raise LimiterUnavailable(f"the rate limiter's file {file} cannot be used ({error})") from None

    def take(self, name: str, rate: Rate) -> bool:
        """Count one call; False, and nothing counted, when the window is full."""
        return self._counted(name, rate, add=True)

    def full(self, name: str, rate: Rate) -> bool:
        """True when no further call would pass; nothing is counted."""
        return not self._counted(name, rate, add=False)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _counted(self, name: str, rate: Rate, *, add: bool) -> bool:
        try:
            with self._lock:
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    now = self._clock()
                    self._db.execute("DELETE FROM passed WHERE name = ? AND at <= ?", (name, now - rate.seconds))
                    newest = self._db.execute("SELECT max(number) FROM passed WHERE name = ?", (name,)).fetchone()[0]
                    # The calls that passed are numbered, so that a window is weighed by one look and no counting.
                    number = (newest or 0) + 1
                    oldest = (name, number - rate.count)
                    passes = self._db.execute(_HELD, oldest).fetchone() is None
                    if passes and add:
                        self._db.execute("INSERT INTO passed VALUES (?, ?, ?)", (name, number, now))
                finally:
                    self._db.execute("COMMIT")
                return passes
        except sqlite3.Error as error:
            raise LimiterUnavailable(type(error).__name__) from None
