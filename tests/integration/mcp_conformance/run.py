"""The public MCP conformance runner against the real claims server: `make mcp-conformance`.

Needs npm and the network once, for the pinned runner and a Node that it runs on. Runs the scenarios that two revisions
of the protocol require. Exit 1 when a check fails that `expected-failures.yaml` does not name, or when one that it
names passes; 3 without the runner.
"""

import argparse
import asyncio
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import yaml

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

from integration.claims_servers import Site  # noqa: E402 - a script finds the tests' own modules by itself
from key_adder import key_adder  # noqa: E402

PACKAGES = ("@modelcontextprotocol/conformance@0.2.0-alpha.12", "node@22.23.3")
REVISIONS = ("2025-11-25", "2026-07-28")
# Scenarios that want nothing of a server but the protocol: each must pass whole, but for what the file names.
GENERIC = frozenset(
    (
        *("server-initialize", "server-session-lifecycle", "server-stateless", "ping", "tools-list"),
        *("tools-call-error", "http-header-validation", "dns-rebinding-protection", "caching"),
        *("server-sse-multiple-streams", "sep-2164-resource-not-found", "resources-list", "prompts-list"),
    )
)
Check = tuple[str, str]  # a scenario and the id of one of its checks


def installed(folder: Path) -> tuple[Path, Path]:
    """The Node binary and the runner's script, fetched when they are not there."""
    node = folder / "node_modules" / "node" / "bin" / "node"
    script = folder / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    if not (node.exists() and script.exists()):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}', encoding="ascii")
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", *PACKAGES], cwd=folder, check=True)
    return node, script


async def results(node: Path, script: Path, out: Path) -> None:
    """Run both revisions against one server; one folder a scenario appears under `out`."""
    site = Site.at(out / "home")
    with site.http() as address:
        place = urlsplit(address)
        assert place.hostname is not None
        assert place.port is not None
        async with key_adder(place.hostname, place.port, site.secret) as port:
            for revision in REVISIONS:
                command = [node, script, "server", "--url", f"http://127.0.0.1:{port}/mcp"]
                command += ["--requirements", revision, "-o", out / revision]
                process = await asyncio.create_subprocess_exec(*map(str, command), stdout=subprocess.DEVNULL)
                await process.wait()


def checks(out: Path) -> dict[Check, str]:
    """Every check and its status; a check that fails in one revision has failed."""
    found: dict[Check, str] = {}
    for file in sorted(out.glob("*/server-*/checks.json")):
        named = re.match(r"server-(.+)-\d{4}-\d{2}-\d{2}T", file.parent.name)
        assert named is not None
        for check in json.loads(file.read_text(encoding="utf-8")):
            key = (named[1], check["id"])
            if found.get(key) != "FAILURE":
                found[key] = check["status"]
    return found


def expected() -> set[Check]:
    """What the file names."""
    groups = yaml.safe_load((HERE / "expected-failures.yaml").read_text(encoding="utf-8"))
    return {(scenario, check) for group in groups.values() for scenario, named in group.items() for check in named}


def main() -> None:
    """Print one line a generic scenario and the sum; exit as the module says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runner", type=Path, default=Path("build/mcp-conformance"), help="where the runner is kept")
    options = parser.parse_args()
    try:
        node, script = installed(options.runner.resolve())
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"the runner cannot be fetched ({type(error).__name__}); it needs npm and the network", file=sys.stderr)
        sys.exit(3)
    with TemporaryDirectory() as folder:
        asyncio.run(results(node, script, Path(folder)))
        found = checks(Path(folder))
    failed = {key for key, status in found.items() if status == "FAILURE"}
    for scenario in sorted(GENERIC):
        counts = Counter(status for (name, _), status in found.items() if name == scenario)
        print(f"{scenario}: " + ", ".join(f"{count} {status.lower()}" for status, count in sorted(counts.items())))
    surprising, stale = sorted(failed - expected()), sorted(expected() - failed)
    print(f"{len(found)} checks: {len(failed)} failed, {len(expected())} are expected to")
    for title, odd in (("fails and is not expected to", surprising), ("is expected to fail and does not", stale)):
        for scenario, check in odd:
            print(f"{title}: {scenario}: {check}")
    sys.exit(1 if surprising or stale or GENERIC - {name for name, _ in found} else 0)


if __name__ == "__main__":
    main()
