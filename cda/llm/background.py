"""One event loop in one thread: callers in any thread get an answer or a cancelled request, and never a hang."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from threading import Lock, Thread
from typing import Any, TypeVar

T = TypeVar("T")
_STARTING = Lock()
GRACE_S = 5.0  # what a library that swallows its cancellation is given before the caller goes on without it


class Background:
    """Runs coroutines for callers that are not coroutines. The loop starts with the first one."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="cda-models", daemon=True)
        self._started = self._closed = False

    def run(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        """The result of the work within the time; it is cancelled when that is over, or when the caller is interrupted.

        Raises TimeoutError, CancelledError after `close`, and what the work raises.
        """
        if self._closed:
            work.close()
            raise CancelledError
        if not self._started:
            self._start()
        future: Future[T] = asyncio.run_coroutine_threadsafe(_within(work, seconds), self._loop)
        try:
            return future.result(seconds + GRACE_S)
        except BaseException:
            future.cancel()
            raise

    def pending(self) -> int:
        """How many tasks are under way."""
        return len(asyncio.all_tasks(self._loop)) if not self._closed else 0

    def close(self, last: Coroutine[Any, Any, None]) -> None:
        """Cancel everything that is under way, run one last piece of work and stop the thread. Twice does nothing."""
        if self._closed or not self._started:
            last.close()
            if not self._closed:
                self._loop.close()
            self._closed = True
            return
        self._closed = True
        asyncio.run_coroutine_threadsafe(_wound_up(last), self._loop).result(2 * GRACE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(GRACE_S)
        self._loop.close()

    def _start(self) -> None:
        with _STARTING:
            if not self._started:
                self._thread.start()
                self._started = True


async def _within(work: Coroutine[Any, Any, T], seconds: float) -> T:
    async with asyncio.timeout(seconds):
        return await work


async def _wound_up(last: Coroutine[Any, Any, None]) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    async with asyncio.timeout(GRACE_S):
        await last
