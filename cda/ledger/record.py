"""One line of the ledger: what it says, how it is written, and the hash that chains it to the line before.

A record holds no payload: of a call's arguments only a keyed hash, of its answer only the number of rows.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

Kind = Literal["intent", "outcome", "refusal", "note"]
GENESIS = "0" * 64
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
FIELDS = ("seq", "prev", "at", "kind", "call", "principal", "tool", "arguments", "outcome", "rows")


@dataclass(frozen=True, slots=True)
class Entry:
    """What a caller has to say. `call` ties an outcome to its intent; `arguments` is a keyed hash; `outcome` is a word
    of ours (ok, invalid_argument, ...)."""

    kind: Kind
    call: str
    principal: str
    tool: str
    arguments: str = ""
    outcome: str = ""
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """The end of the chain: how many records there are, and the hash of the last."""

    count: int = 0
    hash: str = GENESIS


def line_of(entry: Entry, after: Position, at: str) -> tuple[bytes, Position]:
    """The entry as the next line, ending in a newline, and the end of the chain with it."""
    body: dict[str, Any] = {
        "seq": after.count + 1,
        "prev": after.hash,
        "at": at,
        "kind": entry.kind,
        "call": entry.call,
        "principal": entry.principal,
        "tool": entry.tool,
        "arguments": entry.arguments,
        "outcome": entry.outcome,
        "rows": entry.rows,
    }
    digest = sha256(_canonical(body)).hexdigest()
    return _canonical(body | {"hash": digest}) + b"\n", Position(after.count + 1, digest)


def read_line(line: bytes) -> Mapping[str, Any]:
    """The record of a line. ValueError, saying what is wrong, unless it is written as `line_of` writes and its hash is
    right."""
    try:
        held = json.loads(line)
    except ValueError:
        raise ValueError("is no record") from None
    if not isinstance(held, dict) or set(held) != {*FIELDS, "hash"}:
        raise ValueError("has other fields than a record")
    if _canonical(held) + b"\n" != line:
        raise ValueError("is not written as the ledger writes")
    if sha256(_canonical({name: held[name] for name in FIELDS})).hexdigest() != held["hash"]:
        raise ValueError("does not have its hash")
    return held


def merkle_root(hashes: Sequence[str]) -> str:
    """The Merkle tree hash of RFC 6962 (2.1) over the record hashes, hex."""
    return _tree([bytes.fromhex(value) for value in hashes]).hex()


def _tree(leaves: Sequence[bytes]) -> bytes:
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return sha256(b"\x00" + leaves[0]).digest()
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return sha256(b"\x01" + _tree(leaves[:split]) + _tree(leaves[split:])).digest()


def _canonical(body: Mapping[str, Any]) -> bytes:
    return _ENCODER.encode(body).encode("ascii")
