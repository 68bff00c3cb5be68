"""A search that is opened in the background, so that a server can greet its client before any index is loaded."""

import logging
import threading
from collections.abc import Callable, Sequence
from datetime import date
from typing import Protocol

from backends.errors import BackendError
from cda.contracts.policy_tools import SearchAnswer
from cda.errors import CdaError, PolicyToolError
from corpus.errors import CorpusError

_log = logging.getLogger(__name__)

PATIENCE_S = 20.0  # clients give a call 30 to 60 s; an answer that says why must come before that


class ClauseSearch(Protocol):
    """Finds and hydrates clauses; arguments are already checked (see `PolicyTools.search_policies`)."""

    def search(
        self,
        queries: Sequence[str],
        *,
        payer_id: str | None = None,
        plan_id: str | None = None,
        as_of: date | None = None,
        codes: Sequence[str] = (),
        k: int = 8,
        include_superseded: bool = False,
    ) -> list[SearchAnswer]:
        """One answer a query, in order."""
        ...


class LoadingSearch:
    """Opens a search once, on a thread; calls wait for it up to `patience_s` seconds.

    `search` raises search_unavailable while it is still loading after that time, and when opening failed;
    the next call after a failure tries to open it again.
    """

    def __init__(self, open_search: Callable[[], ClauseSearch], *, patience_s: float = PATIENCE_S) -> None:
        self._open_search = open_search
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._attempt: _Attempt | None = None

    def start(self) -> None:
        """Begin to load, when that has not begun or has failed; returns at once."""
        self._current()

    def search(
        self,
        queries: Sequence[str],
        *,
        payer_id: str | None = None,
        plan_id: str | None = None,
        as_of: date | None = None,
        codes: Sequence[str] = (),
        k: int = 8,
        include_superseded: bool = False,
    ) -> list[SearchAnswer]:
        """Wait for the search, then ask it."""
        attempt = self._current()
        if not attempt.done.wait(self._patience_s):
            raise PolicyToolError(
                "search_unavailable", "the search index is still loading; ask again in a moment (look-ups work now)"
            )
        if attempt.search is None:
            raise PolicyToolError("search_unavailable", attempt.failure)
        return attempt.search.search(
            queries,
            payer_id=payer_id,
            plan_id=plan_id,
            as_of=as_of,
            codes=codes,
            k=k,
            include_superseded=include_superseded,
        )

    def _current(self) -> "_Attempt":
        with self._lock:
            if self._attempt is None or self._attempt.failed:
                self._attempt = _Attempt(self._open_search)
            return self._attempt


class _Attempt:
    """One try at opening the search; `done` is set when it has ended either way."""

    def __init__(self, open_search: Callable[[], ClauseSearch]) -> None:
        self.done = threading.Event()
        self.search: ClauseSearch | None = None
        self.failure = ""
        self._open_search = open_search
        threading.Thread(target=self._run, name="open-search", daemon=True).start()

    @property
    def failed(self) -> bool:
        return self.done.is_set() and self.search is None

    def _run(self) -> None:
        try:
            self.search = self._open_search()
        except (BackendError, CdaError, CorpusError) as error:
            self.failure = f"the search could not be opened: {error}"
        except (
            Exception
        ) as error:  # a thread's error would be lost; its text may name anything, so only its kind is kept
            self.failure = f"the search could not be opened ({type(error).__name__}); see `cda doctor`"
        finally:
            self.done.set()
        if self.search is None:
            _log.error("%s", self.failure)
