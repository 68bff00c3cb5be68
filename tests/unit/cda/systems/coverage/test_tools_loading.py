import threading

import anyio
import pytest
from conformance.tiny_corpus import WordSearch
from mcp import Client

from backends.errors import IndexAbsent
from cda.errors import PolicyToolError
from cda.systems.coverage.loading_search import ClauseSearch, LoadingSearch
from cda.systems.coverage.server import policy_server


def _refused(search: LoadingSearch) -> PolicyToolError:
    with pytest.raises(PolicyToolError) as refused:
        search.search(["insulin"])
    return refused.value


@pytest.mark.promise("tools.loading")
def test_a_search_during_the_load_says_so_and_the_next_one_answers() -> None:
    go, opened = threading.Event(), []

    def slow() -> ClauseSearch:
        assert go.wait(30)
        opened.append(1)
        return WordSearch()

    search = LoadingSearch(slow, patience_s=0.05)
    error = _refused(search)
    assert error.code == "search_unavailable"
    assert "still loading" in str(error)
    go.set()
    patient = LoadingSearch(slow, patience_s=30)
    patient.start()
    assert [answer.query for answer in patient.search(["insulin"], k=2)] == ["insulin"]
    assert patient.search(["insulin"], k=2) == WordSearch().search(["insulin"], k=2)


@pytest.mark.promise("tools.loading")
def test_the_index_is_opened_once_for_all_threads() -> None:
    opened: list[int] = []

    def once() -> ClauseSearch:
        opened.append(1)
        return WordSearch()

    search = LoadingSearch(once, patience_s=30)
    threads = [threading.Thread(target=search.search, args=(["insulin"],)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert opened == [1]


@pytest.mark.promise("tools.loading", "tools.no_echo")
@pytest.mark.parametrize(
    ("error", "words", "hidden"),
    [
        (IndexAbsent("there is no index; run `cda corpus index`"), "run `cda corpus index`", "nothing"),
        (RuntimeError("secret /home/someone"), "RuntimeError", "secret"),
    ],
)
def test_a_failed_load_is_named_and_tried_again(error: Exception, words: str, hidden: str) -> None:
    outcomes: list[Exception | ClauseSearch] = [error, WordSearch()]

    def next_outcome() -> ClauseSearch:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    search = LoadingSearch(next_outcome, patience_s=30)
    refused = _refused(search)
    assert refused.code == "search_unavailable"
    assert words in str(refused)
    assert hidden not in str(refused)
    assert search.search(["insulin"], k=1)


@pytest.mark.promise("server.greeting", "tools.loading")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_handshake_and_look_ups_do_not_wait_for_the_index(mode: str) -> None:
    end = threading.Event()

    def never_in_time() -> ClauseSearch:
        end.wait(60)
        return WordSearch()

    search = LoadingSearch(never_in_time, patience_s=0.05)

    class Tools:
        search_policies = staticmethod(search.search)

        def get_plan_riders(self, *_: object, **__: object) -> tuple[()]:
            return ()

    async def talk() -> None:
        server = policy_server(Tools(), on_start=search.start)  # type: ignore[arg-type]
        with anyio.fail_after(10):
            async with Client(server, mode=mode) as client:
                riders = await client.call_tool("get_plan_riders", {"plan_id": "ACM-GOLD"})
                assert riders.structured_content == {"riders": []}
                found = await client.call_tool("search_policies", {"query": "insulin"})
                assert found.is_error
                assert "still loading" in found.content[0].text  # type: ignore[union-attr]

    anyio.run(talk)
    end.set()


@pytest.mark.promise("server.quiet_log")
def test_a_crash_in_a_tool_is_named_by_place_and_never_by_message(caplog: pytest.LogCaptureFixture) -> None:
    class Tools:
        def get_clause_by_id(self, clause_id: str) -> None:
            raise KeyError(clause_id)

    async def talk() -> str:
        async with Client(policy_server(Tools())) as client:  # type: ignore[arg-type]
            answer = await client.call_tool("get_clause_by_id", {"clause_id": "123456789"})
            assert answer.is_error
            return str(answer.content)

    answer = anyio.run(talk)
    assert "internal_error" in answer
    assert "KeyError at" in caplog.text
    assert "123456789" not in caplog.text + answer
