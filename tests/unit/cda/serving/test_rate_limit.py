"""The sliding window, over threads and processes."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cda.serving.principal import Rate
from cda.serving.rate_limit import LimiterUnavailable, RateLimiter

pytestmark = pytest.mark.promise("kernel.limits")
ROOT = Path(__file__).parents[4]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=40))
def test_no_window_ever_holds_more_than_its_count(tmp_path_factory: pytest.TempPathFactory, gaps: list[int]) -> None:
    now = [0.0]
    limiter = RateLimiter(tmp_path_factory.mktemp("rate") / "rate.sqlite", clock=lambda: now[0])
    passed: list[float] = []
    for gap in gaps:
        now[0] += gap / 10
        if limiter.take("a", Rate(3, 2)):
            passed.append(now[0])
        else:
            assert sum(at > now[0] - 2 for at in passed) == 3, "a call is refused only when the window is full"

    assert all(sum(at - 2 < other <= at for other in passed) <= 3 for at in passed)


def test_a_refused_call_is_not_counted_and_names_are_apart(tmp_path: Path) -> None:
    now = [0.0]
    limiter = RateLimiter(tmp_path / "rate.sqlite", clock=lambda: now[0])

    assert [limiter.take("a", Rate(1, 10)) for _ in range(3)] == [True, False, False]
    assert limiter.take("b", Rate(1, 10))
    assert limiter.full("a", Rate(1, 10))
    now[0] = 10.0
    assert limiter.take("a", Rate(1, 10))


@pytest.mark.parametrize("jump", [-3600.0, -1.0, 3600.0])
def test_a_clock_that_jumps_shuts_nobody_out_for_longer_than_the_window(tmp_path: Path, jump: float) -> None:
    now = [10_000.0]
    limiter = RateLimiter(tmp_path / "rate.sqlite", clock=lambda: now[0])
    assert [limiter.take("a", Rate(2, 10)) for _ in range(3)] == [True, True, False]

    now[0] += jump
    assert limiter.take("a", Rate(2, 10)) is (jump > 0)
    assert limiter.full("a", Rate(2, 10)) is (jump < 0)
    now[0] += 10.0
    assert limiter.take("a", Rate(2, 10))


def test_what_no_window_needs_is_forgotten(tmp_path: Path) -> None:
    now = [0.0]
    limiter = RateLimiter(tmp_path / "rate.sqlite", clock=lambda: now[0])
    for _ in range(1000):
        now[0] += 1.0
        assert limiter.take("a", Rate(5, 5))
    limiter.take("b", Rate(1, 1))
    limiter.close()

    with sqlite3.connect(tmp_path / "rate.sqlite") as looking:
        (held,) = looking.execute("SELECT count(*) FROM passed").fetchone()
    looking.close()
    assert held < 100
    now[0] += 200_000.0
    later = RateLimiter(tmp_path / "rate.sqlite", clock=lambda: now[0])
    assert later.take("a", Rate(5, 5))
    with sqlite3.connect(tmp_path / "rate.sqlite") as looking:
        assert looking.execute("SELECT count(*) FROM passed").fetchone() == (1,)
    looking.close()


def test_two_processes_of_fifty_threads_pass_exactly_the_limit(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom concurrent.futures import ThreadPoolExecutor\nfrom pathlib import Path\n"
        "from cda.serving.principal import Rate\nfrom cda.serving.rate_limit import RateLimiter\n"
        "limiter = RateLimiter(Path(sys.argv[1]))\n"
        "with ThreadPoolExecutor(50) as pool:\n"
        "    print(sum(pool.map(lambda _: limiter.take('a', Rate(777, 600)), range(1000))))\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "rate.sqlite")]

    both = [subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) for _ in range(2)]
    passed = [int(process.communicate(timeout=120)[0]) for process in both]

    assert sum(passed) == 777


def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rate.sqlite").write_bytes(b"no database at all" * 100)

    with pytest.raises(LimiterUnavailable, match="cannot be used"):
        RateLimiter(tmp_path / "rate.sqlite")


def test_a_limiter_whose_file_goes_bad_lets_nothing_pass(tmp_path: Path) -> None:
    limiter = RateLimiter(tmp_path / "rate.sqlite")
    limiter.close()

    with pytest.raises(LimiterUnavailable):
        limiter.take("a", Rate(1, 1))
