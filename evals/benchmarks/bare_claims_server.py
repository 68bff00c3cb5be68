"""The claims tools without the kernel, for measuring beside the real server: no key, no limit, no ledger, invented data
only. `python -m evals.benchmarks.bare_claims_server [http]`; CDA_HOME has the database."""

import sys

from cda.serving.quiet_log import log_quietly
from cda.serving.tool_server import ToolServer
from cda.serving.transport import Http, serve_http, serve_stdio
from cda.serving.wire import reserve_stdout
from cda.settings import load_settings
from cda.systems.claims.server import served
from cda.systems.claims.store import ClaimsStore
from cda.systems.claims.tools import ClaimsTools


def main() -> None:
    """Serve until the client goes or a signal comes."""
    tools = served(ClaimsTools(ClaimsStore(load_settings().claims_db_path)))
    server = ToolServer("bare", title="Bare", version="0", instructions="", tools=tools)
    if "http" in sys.argv[1:]:
        serve_http(server, Http(port=0))
        return
    wire = reserve_stdout()
    log_quietly()
    serve_stdio(server, wire)


if __name__ == "__main__":
    main()
