"""What an index has cost so far, one document a backend, added to by every run.

Dollars are an estimate: published prices of the service as of 2026-11, for what was counted here. What questions cost
is not in it.
"""

from dataclasses import asdict, dataclass, replace
from decimal import Decimal

from backends.base import Usage
from cda.retrieval.lifecycle.manifest import Document, held
from cda.retrieval.lifecycle.shared_files import Moved, SharedFiles

_ATTEMPTS = 5
_MILLION = Decimal(1_000_000)
# US dollars a million, standard plan. Pinecone: a write unit is a kilobyte, and at least five a request.
_WRITE_UNITS = {"pinecone": Decimal(4)}
_READ_UNITS = {"pinecone": Decimal(16)}
_TOKENS = {"llama-text-embed-v2": Decimal("0.16"), "multilingual-e5-large": Decimal("0.08")}


@dataclass(frozen=True, slots=True)
class Costs(Document):
    """The sum of all runs since the first. `usd` is an estimate; `tokens` were sent to a hosted embedder."""

    since: int
    runs: int = 0
    embedded: int = 0
    tokens: int = 0
    upserted: int = 0
    deleted: int = 0
    requests: int = 0
    bytes_sent: int = 0
    read_units: int = 0
    usd: str = "0"
    format: int = 1


def write_dollars(backend: str, bytes_sent: int, requests: int) -> Decimal:
    """What these write requests cost."""
    return max(Decimal(bytes_sent) / 1000, Decimal(5 * requests)) * _WRITE_UNITS.get(backend, Decimal(0)) / _MILLION


def token_dollars(embedder: str, tokens: int) -> Decimal:
    """What a hosted embedder asks for these tokens; nothing for one of this machine."""
    return tokens * _TOKENS.get(embedder, Decimal(0)) / _MILLION


def costs_name(collection: str, backend: str) -> str:
    """Where the costs of a collection on a backend are kept."""
    return f"costs/{collection}-{backend}.json"


def add_costs(
    files: SharedFiles, name: str, before: Usage, after: Usage, *, backend: str, embedder: str, now: int, **counts: int
) -> None:
    """Add a run, which used the service from `before` to `after` and did `counts`. Others may add at the same moment;
    after several lost attempts this run is left out."""
    used = {
        "requests": after.requests - before.requests,
        "bytes_sent": after.bytes_sent - before.bytes_sent,
        "read_units": after.read_units - before.read_units,
    }
    read = used["read_units"] * _READ_UNITS.get(backend, Decimal(0)) / _MILLION
    written = write_dollars(backend, used["bytes_sent"], 0)
    spent = read + written + token_dollars(embedder, counts.get("tokens", 0))
    for _ in range(_ATTEMPTS):
        held_costs, content = held(files, name, Costs)
        so_far = held_costs or Costs(since=now)
        known = asdict(so_far)
        total = {key: known[key] + value for key, value in {"runs": 1, **used, **counts}.items()}
        sum_of_all = replace(so_far, **total, usd=str(Decimal(so_far.usd) + spent))
        try:
            files.write(name, sum_of_all.encoded(), expect=content)
        except Moved:
            continue
        return
