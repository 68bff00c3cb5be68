"""The whole of a corpus in memory, and the digest that stands for it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import date
from hashlib import sha256
from typing import Any

from corpus.model import Clause, Code, Payer, PlanRecord, VersionRecord


@dataclass(frozen=True, slots=True)
class Contents:
    """What a store is written from. Order carries no meaning; ids are unique.

    facts: fact definitions as authored. corpora: figures of each authored corpus by its name, for people.
    """

    payers: tuple[Payer, ...]
    plans: tuple[PlanRecord, ...]
    codes: tuple[Code, ...]
    versions: tuple[VersionRecord, ...]
    clauses: tuple[Clause, ...]
    facts: Mapping[str, Mapping[str, Any]]
    corpora: Mapping[str, Mapping[str, Any]]


def digest(contents: Contents, icd10cm_sha256: str) -> str:
    """Hex sha256 over every payer, plan, code, version, clause (with its text) and fact definition, and the diagnosis
    table. The order in which they were read changes nothing; where a file lies or what a corpus is called neither."""
    hashes = sorted(_item_hashes(contents))
    return sha256("\n".join([*hashes, icd10cm_sha256]).encode("ascii")).hexdigest()


def as_json(record: Any) -> dict[str, Any]:
    """A record of `corpus.model` as JSON would hold it: dates as YYYY-MM-DD, tuples as lists, enums as their values."""
    return {item.name: _plain(getattr(record, item.name)) for item in fields(record)}


def canonical(value: Any) -> str:
    """The one JSON text of a value: keys sorted, no spaces, no escapes beyond JSON's own."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _item_hashes(contents: Contents) -> Iterable[str]:
    records = (*contents.payers, *contents.plans, *contents.codes, *contents.versions, *contents.clauses)
    for record in records:
        yield _hash([type(record).__name__, as_json(record)])
    for name, definition in contents.facts.items():
        yield _hash(["Fact", name, definition])


def _hash(value: Any) -> str:
    return sha256(canonical(value).encode("utf-8")).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, tuple):
        return list(value)
    return value
