"""The claims server at size: `python -m evals.benchmarks.claims [--days 334] [--calls 600] [--flood 0] [--json]`.

Writes 3,000 invented claims a day (334 days are 1,002,000), then times every tool with ids drawn from a seed: through
the tools alone, and through `cda mcp claims` over stdio and HTTP with key, limit and ledger. The device's own fsync is
timed in the same run, since a call waits for two of them. `--flood N` sends N calls in all from 2 x 50 threads to two
servers that share keys, limiter and ledger, and counts what came back. Limit held: 20 ms p95 a tool.
"""

import argparse
import http.client
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter, process_time, sleep
from typing import Any
from urllib.parse import urlsplit

from cda.ledger import verify
from cda.ledger.keys import read_ring
from cda.serving.key_store import make_key
from cda.systems.claims.seed import CLAIMS_A_DAY, CODES, PLANS, member_count, seed_database
from cda.systems.claims.server import served
from cda.systems.claims.store import ClaimsStore
from cda.systems.claims.tools import ClaimsTools

LIMIT_MS = 20.0
COMMAND = [sys.executable, "-c", "from cda.cli import main; main()", "mcp", "claims"]
HTTP = (*COMMAND, "--transport", "http", "--port", "0")
ERA = "2026-07-28"
Arguments = dict[str, Any]


def asked(days: int, count: int) -> dict[str, list[Arguments]]:
    """`count` calls of every tool, of ids that are there."""
    draw, claims, members = random.Random(1), days * CLAIMS_A_DAY, member_count(days)
    plans, codes = [plan[0] for plan in PLANS], list(CODES)
    makers: dict[str, Callable[[], Arguments]] = {
        "get_claim": lambda: {"claim_id": f"CLM-{draw.randrange(claims):08d}"},
        "list_member_claims": lambda: {"member_id": f"MBR-{draw.randrange(members):06d}", "limit": 100},
        "get_coverage_rule": lambda: {"plan_id": draw.choice(plans), "procedure_code": draw.choice(codes)},
        "get_member_ytd_summary": lambda: {"member_id": f"MBR-{draw.randrange(members):06d}", "year": 2025},
        "get_claim_notes": lambda: {"claim_id": f"CLM-{draw.randrange(claims):08d}"},
    }
    return {tool: [make() for _ in range(count)] for tool, make in makers.items()}


def timed(run: Callable[[Arguments], object], calls: Sequence[Arguments]) -> dict[str, float]:
    """Milliseconds a call, after ten that warm the file cache."""
    for arguments in calls[:10]:
        run(arguments)
    walls, cpu = [], process_time()
    for arguments in calls:
        begun = perf_counter()
        run(arguments)
        walls.append((perf_counter() - begun) * 1000)
    cpu = (process_time() - cpu) * 1000 / len(calls)
    return {
        "p50_ms": round(median(walls), 2),
        "p95_ms": round(quantiles(walls, n=20)[-1], 2),
        "own_cpu_ms": round(cpu, 2),
    }


def measure_tools(database: Path, calls: Mapping[str, Sequence[Arguments]]) -> dict[str, Any]:
    """Every tool without server, key or ledger."""
    tools = {tool.name: tool for tool in served(ClaimsTools(ClaimsStore(database)))}
    return {
        name: timed(lambda sent, tool=tools[name]: tool.answer_to(tool.read(sent)), asked_for)  # type: ignore[misc]
        for name, asked_for in calls.items()
    }


def measure_fsync(folder: Path, runs: int = 200) -> dict[str, float]:
    """Milliseconds of a 400-byte append and its fsync in the folder that holds the ledger."""
    descriptor = os.open(folder / "fsync-probe", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def append(_: Arguments) -> None:
        os.write(descriptor, b"x" * 400)
        os.fsync(descriptor)

    try:
        return timed(append, [{}] * runs)
    finally:
        os.close(descriptor)


def measure_stdio(environment: Mapping[str, str], calls: Mapping[str, Sequence[Arguments]]) -> dict[str, Any]:
    """Every tool over stdio."""
    with subprocess.Popen(
        COMMAND, env=dict(environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        reader, writer = process.stdout, process.stdin

        def ask(method: str, params: Any) -> Any:
            writer.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n")
            writer.flush()
            return json.loads(reader.readline())

        client = {"name": "benchmark", "version": "1"}
        ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        writer.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

        def call(tool: str, arguments: Arguments) -> None:
            answer = ask("tools/call", {"name": tool, "arguments": arguments})
            assert not answer["result"]["isError"], answer

        figures = {tool: timed(lambda sent, tool=tool: call(tool, sent), of) for tool, of in calls.items()}  # type: ignore[misc]
        writer.close()
    return figures


@contextmanager
def http_server(environment: Mapping[str, str], log: Path, command: Sequence[str] = HTTP) -> Iterator[str]:
    """A server on a free port of the loopback; gives host and port."""
    with log.open("wb") as err:
        process = subprocess.Popen(list(command), env=dict(environment), stdout=subprocess.DEVNULL, stderr=err)
    try:
        while not (found := re.search(r"serving (http\S+)\n", log.read_text(encoding="utf-8"))):
            assert process.poll() is None, log.read_text(encoding="utf-8")
            sleep(0.05)
        yield urlsplit(found[1]).netloc
    finally:
        process.terminate()
        process.wait(timeout=60)


def post(connection: http.client.HTTPConnection, secret: str, tool: str, arguments: Arguments) -> str:
    """The body of one call, whole in itself."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": ERA,
        "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    headers = {
        "Authorization": f"Bearer {secret}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": ERA,
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    connection.request("POST", "/mcp", body, headers)
    return connection.getresponse().read().decode()


def measure_http(
    environment: Mapping[str, str], calls: Mapping[str, Sequence[Arguments]], root: Path
) -> dict[str, Any]:
    """Every tool over streamable HTTP, one kept connection."""
    with http_server(environment, root / "http-log") as place:
        connection = http.client.HTTPConnection(place, timeout=60)

        def call(tool: str, arguments: Arguments) -> None:
            body = post(connection, environment["CDA_API_KEY"], tool, arguments)
            assert '"isError":false' in body, body

        figures = {tool: timed(lambda sent, tool=tool: call(tool, sent), of) for tool, of in calls.items()}  # type: ignore[misc]
        connection.close()
    return figures


def flood(environment: Mapping[str, str], count: int, root: Path) -> dict[str, Any]:
    """`count` calls from 2 x 50 threads to two servers; three quarters of them are what the limit lets pass."""
    limit = count * 3 // 4
    limited = {**environment, "CDA_RATE_LIMIT": f"{limit}/86400"}
    with ExitStack() as stack:
        places = [stack.enter_context(http_server(limited, root / f"flood-log-{number}")) for number in range(2)]
        begun = perf_counter()

        def client(number: int) -> Counter[str]:
            connection = http.client.HTTPConnection(places[number % 2], timeout=600)
            told: Counter[str] = Counter()
            for _ in range(number, count, 100):
                body = post(connection, environment["CDA_API_KEY"], "get_claim", {"claim_id": "CLM-00000042"})
                told["limited" if "rate_limited" in body else "ok" if '"isError":false' in body else body[:200]] += 1
            connection.close()
            return told

        with ThreadPoolExecutor(100) as pool:
            counts = sum(pool.map(client, range(100)), Counter[str]())
        seconds = perf_counter() - begun
    verdict = verify(root / "ledger", root / "ledger-head", read_ring(root / "ledger-keys"))
    return {
        "calls": count,
        "limit": limit,
        "answers": dict(counts),
        "exact": counts == {"ok": limit, "limited": count - limit},
        "calls_per_s": round(count / seconds),
        "ledger_sound": verdict.sound,
        "ledger_records": verdict.records,
        "open_intents": len(verdict.open_intents),
    }


def main() -> None:
    """Print the figures; exit 1 when a tool is slower than the limit or a count is off."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=334)
    parser.add_argument("--calls", type=int, default=600, help="calls of each tool and way")
    parser.add_argument("--flood", type=int, default=0, help="calls to count, such as 200000")
    parser.add_argument("--database", type=Path, help="a database of --days that is there already")
    parser.add_argument("--json", action="store_true", help="print one JSON document and no table")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        root = Path(folder)
        figures: dict[str, Any] = {"claims": options.days * CLAIMS_A_DAY}
        database = options.database or root / "claims.sqlite"
        if options.database is None:
            begun, cpu = perf_counter(), process_time()
            seed_database(database, days=options.days)
            figures["seed"] = {"wall_s": round(perf_counter() - begun, 1), "cpu_s": round(process_time() - cpu, 1)}
        figures["database_mb"] = round(database.stat().st_size / 2**20)
        environment = {
            "CDA_HOME": folder,
            "CDA_CLAIMS_DB": str(database),
            "CDA_RATE_LIMIT": "1000000/60",
            "CDA_API_KEY": make_key(root / "keys.json", key_id="benchmark", tools=["all"]),
            "PATH": os.environ.get("PATH", ""),
        }
        calls = asked(options.days, options.calls)
        figures["tools"] = measure_tools(database, calls)
        figures["fsync"] = {"append": measure_fsync(root)}
        figures["stdio"] = measure_stdio(environment, calls)
        figures["http"] = measure_http(environment, calls, root)
        if options.flood:
            figures["flood"] = flood({**environment, "CDA_HOME": str(_fresh(root))}, options.flood, root / "flood")
    slow = [
        f"{way}.{tool}"
        for way in ("tools", "stdio", "http")
        for tool, held in figures[way].items()
        if held["p95_ms"] > LIMIT_MS
    ]
    flooded = figures.get("flood", {"exact": True, "ledger_sound": True})
    broken = bool(slow) or not (flooded["exact"] and flooded["ledger_sound"])
    _print(figures | {"limit_p95_ms": LIMIT_MS, "slow": slow}, as_json=options.json)
    sys.exit(1 if broken else 0)


def _fresh(root: Path) -> Path:
    """A home of its own for the flood, so that its ledger holds nothing else; with the same keys."""
    home = root / "flood"
    home.mkdir()
    copied = home / "keys.json"
    copied.write_bytes((root / "keys.json").read_bytes())
    copied.chmod(0o600)
    return home


def _print(figures: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(figures, indent=1))
        return
    print("| way | tool | p50 ms | p95 ms | CPU of the caller ms |\n|---|---|---|---|---|")
    for way in ("tools", "stdio", "http", "fsync"):
        for tool, held in figures[way].items():
            print(f"| {way} | {tool} | {held['p50_ms']} | {held['p95_ms']} | {held['own_cpu_ms']} |")
    print(json.dumps({name: value for name, value in figures.items() if name not in ("tools", "stdio", "http")}))


if __name__ == "__main__":
    main()
