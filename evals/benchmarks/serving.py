"""What the kernel costs: `python -m evals.benchmarks.serving [--calls 1500] [--json]`.

Three times, in process, over stdio and over HTTP: two claims servers over one database, one bare (the same tools, no
key, no limit, no ledger) and one with everything, are asked in turn, call by call; between two calls an append and its
fsync are timed on the disk of the ledger, twice, since a call waits for two records. The kernel's part is what the
guarded call takes more than the bare one and the two syncs beside it, of their medians and of their quietest tenths,
since other work on the machine lengthens whatever runs longer. Limit held: 1.5 ms p50 each time.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from cda.serving.kernel import Call as Asked
from cda.serving.key_store import make_key
from cda.settings import load_settings
from cda.systems.claims.seed import seed_database
from cda.systems.claims.server import claims_server, served
from cda.systems.claims.store import ClaimsStore
from cda.systems.claims.tools import ClaimsTools
from evals.benchmarks.claims import COMMAND, HTTP, http_server, post

LIMIT_MS = 1.5
WAYS = ("in process", "stdio", "http")
BARE = [sys.executable, "-m", "evals.benchmarks.bare_claims_server"]
SENT = {"claim_id": "CLM-00000042"}
Call = Callable[[], None]


def in_process(environment: Mapping[str, str]) -> tuple[Call, Call]:
    """The tool alone, and the tool behind the kernel."""
    os.environ.update(environment)
    server = claims_server(load_settings())
    tool = served(ClaimsTools(ClaimsStore(load_settings().claims_db_path)))[0]

    def bare() -> None:
        tool.answer_to(tool.read(SENT)).model_dump(mode="json")

    def guarded() -> None:
        call = Asked(peer="here", secret=environment["CDA_API_KEY"], tool=tool.name, arguments=SENT)
        server.kernel.admit(call)
        server.kernel.answer(call)

    return bare, guarded


@contextmanager
def over_stdio(command: list[str], environment: Mapping[str, str]) -> Iterator[Call]:
    """A call of one tool over stdio."""
    with subprocess.Popen(
        command, env=dict(environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        reader, writer = process.stdout, process.stdin

        def ask(method: str, params: Any) -> Any:
            writer.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n")
            writer.flush()
            return json.loads(reader.readline())

        def call() -> None:
            assert not ask("tools/call", {"name": "get_claim", "arguments": SENT})["result"]["isError"]

        client = {"name": "benchmark", "version": "1"}
        ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        writer.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        yield call
        writer.close()


@contextmanager
def over_http(command: list[str], environment: Mapping[str, str], root: Path) -> Iterator[Call]:
    """A call of one tool over one kept connection."""
    with http_server(environment, root / f"log-{os.urandom(4).hex()}", command) as place:
        connection = HTTPConnection(place, timeout=60)

        def call() -> None:
            assert '"isError":false' in post(connection, environment["CDA_API_KEY"], "get_claim", SENT)

        yield call
        connection.close()


def beside(calls: Mapping[str, Call], count: int) -> dict[str, list[float]]:
    """Milliseconds of each kind of call, asked in turn, after twenty rounds that warm up."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(count + 20):
        for name, call in calls.items():
            begun = perf_counter()
            call()
            if turn >= 20:
                taken[name].append((perf_counter() - begun) * 1000)
    return taken


def syncing(folder: Path) -> tuple[Call, Callable[[], None]]:
    """Two appends of a record's size, each synced, as a call of a tool waits for them; and what closes the file."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / "fsync-probe", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def call() -> None:
        for _ in range(2):
            os.write(descriptor, b"x" * 420)
            os.fsync(descriptor)

    return call, lambda: os.close(descriptor)


def summed(taken: Mapping[str, list[float]]) -> dict[str, Any]:
    """Percentiles of each kind, and the kernel's own part: guarded, less bare, less the two syncs."""
    figures: dict[str, Any] = {
        name: {
            "p10_ms": round(quantiles(times, n=10)[0], 2),
            "p50_ms": round(median(times), 2),
            "p95_ms": round(quantiles(times, n=20)[-1], 2),
        }
        for name, times in taken.items()
    }
    for at in ("p10", "p50"):
        guarded, bare, syncs = (figures[name][f"{at}_ms"] for name in ("guarded", "bare", "two syncs"))
        figures[f"kernel_{at}_ms"] = round(guarded - bare - syncs, 2)
    return figures


def throughput(calls: list[Call], count: int) -> int:
    """Calls a second from as many clients as there are."""
    begun = perf_counter()
    with ThreadPoolExecutor(len(calls)) as pool:
        for done in [pool.submit(lambda call=call: [call() for _ in range(count // len(calls))]) for call in calls]:  # type: ignore[misc]
            done.result()
    return round(count / (perf_counter() - begun))


def main() -> None:
    """Print the figures; exit 1 when the kernel's part is over the limit on a transport."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1500, help="calls of each server on each transport")
    parser.add_argument("--json", action="store_true", help="print one JSON document and no table")
    options = parser.parse_args()
    figures: dict[str, Any] = {"limit_ms": LIMIT_MS, "calls": options.calls}
    with TemporaryDirectory() as folder:
        root = Path(folder)
        seed_database(root / "claims.sqlite", days=1)
        environment = {
            "CDA_HOME": folder,
            "CDA_RATE_LIMIT": "1000000/60",
            "CDA_API_KEY": make_key(root / "keys.json", key_id="benchmark", tools=["all"]),
            "PATH": os.environ.get("PATH", ""),
        }
        sync, close = syncing(root / "ledger-probe")
        bare, guarded = in_process(environment)
        figures["in process"] = summed(beside({"bare": bare, "guarded": guarded, "two syncs": sync}, options.calls))
        with over_stdio(BARE, environment) as bare, over_stdio(COMMAND, environment) as guarded:
            calls = {"bare": bare, "guarded": guarded, "two syncs": sync}
            figures["stdio"] = summed(beside(calls, options.calls))
        with over_http([*BARE, "http"], environment, root) as bare, over_http(list(HTTP), environment, root) as guarded:
            calls = {"bare": bare, "guarded": guarded, "two syncs": sync}
            figures["http"] = summed(beside(calls, options.calls))
        for name, command in (("bare", [*BARE, "http"]), ("guarded", list(HTTP))):
            with ExitStack() as stack, http_server(environment, root / f"log-{name}", command) as place:
                clients = [stack.enter_context(_client(place, environment["CDA_API_KEY"])) for _ in range(8)]
                figures[f"{name}_calls_per_s"] = throughput(clients, options.calls)
        close()
    slow = [way for way in WAYS if figures[way]["kernel_p50_ms"] > LIMIT_MS]
    _print(figures | {"over_the_limit": slow}, as_json=options.json)
    sys.exit(1 if slow else 0)


@contextmanager
def _client(place: str, secret: str) -> Iterator[Call]:
    connection = HTTPConnection(place, timeout=60)

    def call() -> None:
        assert '"isError":false' in post(connection, secret, "get_claim", SENT)

    yield call
    connection.close()


def _print(figures: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(figures, indent=1))
        return
    print("| way | bare p10 / p50 / p95 ms | guarded | two syncs | kernel's part p10 / p50 ms |")
    print("|---|---|---|---|---|")
    for way in WAYS:
        held = figures[way]
        kinds = [" / ".join(map(str, held[name].values())) for name in ("bare", "guarded", "two syncs")]
        print(f"| {way} | {' | '.join(kinds)} | {held['kernel_p10_ms']} / {held['kernel_p50_ms']} |")
    print(json.dumps({name: value for name, value in figures.items() if name not in WAYS}))


if __name__ == "__main__":
    main()
