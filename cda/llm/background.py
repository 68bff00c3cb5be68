"""One event loop in one thread: callers in any thread get an answer or a cancelled request, and never a hang."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from threading import Lock, Thread
from typing import Any, TypeVar

T = TypeVar("T")
GRACE_S = 5.0  # what a library that swallows its cancellation is given before the caller goes on without it


class Background:
    """Runs coroutines for callers that are not coroutines. Thread and loop start with the first one."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None
        self._closed = False

    def run(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        """The result of the work within the time; it is cancelled when that is over, or when the caller is interrupted.

        Raises TimeoutError, CancelledError after `close`, and what the work raises.
        """
        with self._lock:
            if self._closed:
                work.close()
                raise CancelledError
            future: Future[T] = asyncio.run_coroutine_threadsafe(_within(work, seconds), self._running())
        try:
            return future.result(seconds + GRACE_S)
        except BaseException:
            future.cancel()
            raise

    def pending(self) -> int:
        """How many tasks are under way."""
        loop = self._loop
        return 0 if loop is None or self._closed else len(asyncio.all_tasks(loop))

    def close(self, last: Coroutine[Any, Any, None]) -> None:
        """Cancel everything that is under way, run one last piece of work and stop the thread. Twice does nothing."""
        with self._lock:
            loop, thread, again = self._loop, self._thread, self._closed
            self._closed = True
        if again or loop is None or thread is None:
            last.close()
            return
        try:
            asyncio.run_coroutine_threadsafe(_wound_up(last), loop).result(2 * GRACE_S)
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(GRACE_S)
            if not thread.is_alive():
                loop.close()

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = Thread(target=self._loop.run_forever, name="cda-models", daemon=True)
            self._thread.start()
        return self._loop


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
