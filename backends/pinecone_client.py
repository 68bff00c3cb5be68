"""Pinecone's client library under our deadlines, our errors and our counts; what it is asked for stands elsewhere.

The library tries a request up to four times by itself; `backends.deadlines` bounds the whole by wall clock and goes on
where it gives up.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pinecone import Pinecone

from backends.base import Usage
from backends.deadlines import Call, DeadlineOver, start
from backends.errors import AccessRefused
from backends.pinecone_config import PineconeConfig
from backends.pinecone_errors import PASSING, translated, unavailable

T = TypeVar("T")

ATTEMPTS = 4  # of the library for one request


class PineconeClient:
    """The connections of one account. Every verb of a subclass may raise BackendUnavailable, AccessRefused or
    BackendError; verbs that `begin_` return at once and raise from `finished`."""

    def __init__(self, config: PineconeConfig) -> None:
        self.config = config
        self._pool = ThreadPoolExecutor(max_workers=16, thread_name_prefix="pinecone")
        self._lock = threading.Lock()
        self._counting = threading.Lock()
        self._usage = Usage()
        key = config.api_key.get_secret_value()
        if not key.isascii() or not key.isprintable() or key != key.strip() or not key:
            raise AccessRefused("the key in PINECONE_API_KEY holds blanks or other signs that no key has")
        self._client = Pinecone(
            api_key=key,
            host=config.host,
            timeout=config.read_deadline_s / ATTEMPTS,
            connection_pool_maxsize=32,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(index={self.config.index!r})"

    @property
    def usage(self) -> Usage:
        """Counted since the object was made."""
        return self._usage

    def finished(self, what: str, call: Call[T]) -> T:
        """The result of begun work; `what` names it in an error."""
        try:
            return call.result()
        except DeadlineOver as over:
            raise unavailable(what, over.last) from None
        except Exception as error:  # the one place where the library's errors become ours
            raise translated(what, error) from None

    def close(self) -> None:
        """Let what is under way end by itself and take no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    def _begin(self, work: Callable[[], T], deadline_s: float) -> Call[T]:
        return start(
            self._pool,
            work,
            deadline_s=deadline_s,
            passing=lambda error: isinstance(error, PASSING),
            asked_pause=lambda error: getattr(error, "retry_after", None),
        )

    def _read(self, what: str, work: Callable[[], T]) -> T:
        return self.finished(what, self._begin(work, self.config.read_deadline_s))

    def _write(self, what: str, work: Callable[[], T]) -> T:
        return self.finished(what, self._begin(work, self.config.write_deadline_s))

    def _count(self, *, bytes_sent: int = 0, read_units: float | None = None) -> None:
        with self._counting:
            held = self._usage
            self._usage = Usage(
                held.requests + 1, held.bytes_sent + bytes_sent, held.read_units + int(read_units or 0), 0
            )
