import os
import threading
from contextvars import ContextVar

import pytest

from cda.harness import beside

pytestmark = pytest.mark.promise("speed.beside")


@pytest.fixture(autouse=True)
def no_idle_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "_idle", [])


def test_one_thread_serves_work_after_work_and_is_not_the_callers() -> None:
    seen: list[int] = []
    for _ in range(5):
        assert beside.finished(lambda: seen.append(threading.get_ident()), within_s=5)
    assert len(seen) == 5
    assert set(seen).isdisjoint({threading.get_ident()})
    assert len(set(seen)) == 1


def test_work_sees_its_own_callers_context() -> None:
    asking: ContextVar[str] = ContextVar("asking")
    seen: list[str] = []
    for caller in ("one", "two"):
        asking.set(caller)
        assert beside.finished(lambda: seen.append(asking.get()), within_s=5)
    assert seen == ["one", "two"]


def test_work_that_is_late_keeps_its_thread_until_it_is_done() -> None:
    release, ended = threading.Event(), threading.Event()

    def hang() -> None:
        release.wait(30)
        ended.set()

    assert not beside.finished(hang, within_s=0.01)
    assert beside._idle == []
    seen: list[str] = []
    assert beside.finished(lambda: seen.append("next"), within_s=5)
    assert seen == ["next"]
    assert len(beside._idle) == 1
    release.set()
    assert ended.wait(5)


def test_work_that_ends_its_thread_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda _: gone.set())

    def leave() -> None:
        raise KeyboardInterrupt

    assert beside.finished(leave, within_s=30)
    assert gone.wait(5)
    assert beside._idle == []
    assert beside.finished(lambda: None, within_s=5)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_waits_for_none_of_its_parents_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the list that is cleared in a child is the module's own
    assert beside.finished(lambda: None, within_s=5)
    child = os.fork()
    if child == 0:
        os._exit(0 if beside.finished(lambda: None, within_s=5) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
