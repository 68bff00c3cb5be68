"""Signed documents about the chain, kept apart from it: the head after every write, and checkpoints now and then."""

import json
from collections.abc import Mapping
from typing import Any

from cda.ledger.keys import Ring, SigningKey

HEAD, CHECKPOINTS, RETAINED = "head.json", "checkpoints.jsonl", "retained.json"
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
HEAD_BYTES = 512  # the head is written over itself: one sector, which a disk writes whole


def signed(body: Mapping[str, Any], key: SigningKey) -> bytes:
    """The body with the id of the key and its signature, as one line of JSON."""
    content = {**body, "key": key.id}
    return _canonical({**content, "sig": key.sign(_canonical(content))})


def checked(document: bytes, ring: Ring) -> dict[str, Any]:
    """The body of a signed document. ValueError when it is none, or was not signed by a key of the ring."""
    try:
        held = json.loads(document)
        signature = held.pop("sig")
        genuine = ring.check(held["key"], _canonical(held), signature)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("is no signed document") from None
    if not genuine:
        raise ValueError("is not signed by a key of this ledger")
    if _canonical({**held, "sig": signature}) != document.rstrip(b" "):
        raise ValueError("is not written as the ledger writes")
    return {**held, "sig": signature}


def _canonical(body: Mapping[str, Any]) -> bytes:
    return _ENCODER.encode(body).encode("ascii")
