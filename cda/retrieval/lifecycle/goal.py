"""What an index is to hold: the records of one corpus under one embedder, before any vector is made."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from backends.base import IndexSpec, Scanned, ScanPage, VectorBackend, root_hash
from backends.errors import IndexAbsent
from backends.schema import POLICY, Meta
from cda.contracts.embedding import Embedder
from cda.retrieval.documents import ClauseStore, content_hash, indexed_text, meta_of

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Wanted:
    """One record to be: `text` is what is embedded and goes nowhere else."""

    id: str
    meta: Meta
    content_hash: str
    text: str


@dataclass(frozen=True)
class Goal:
    """All records of a corpus, by id."""

    spec: IndexSpec
    corpus_digest: str
    records: Mapping[str, Wanted]

    @cached_property
    def root(self) -> str:
        """The root hash that a target has when it holds just these."""
        return root_hash((record.id, record.content_hash) for record in self.records.values())

    @classmethod
    def of(cls, store: ClauseStore, embedder: Embedder) -> "Goal":
        """The goal of this store's policy clauses under this embedder."""
        records: dict[str, Wanted] = {}
        for clause in store.clauses():
            meta = meta_of(clause)
            records[clause.clause_id] = Wanted(clause.clause_id, meta, content_hash(clause, meta), indexed_text(clause))
        return cls(IndexSpec(POLICY, embedder.identity, embedder.dim), store.digest, records)


@dataclass(frozen=True, slots=True)
class Found:
    """What a target holds: its records by id, and what in it is not ours."""

    records: Mapping[str, Scanned]
    foreign: tuple[str, ...]

    @property
    def root(self) -> str:
        """The root hash of the records that are there."""
        return root_hash((record.id, record.content_hash) for record in self.records.values())


@dataclass(frozen=True, slots=True)
class Difference:
    """How a target differs from a goal; all ids sorted. `changed` have other words or fields than they should."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    unchanged: int
    orphaned: tuple[str, ...]
    foreign: tuple[str, ...]


def found_in(backend: VectorBackend, target: str, spec: IndexSpec) -> Found:
    """Everything in a target; nothing when there is no such target."""
    records: dict[str, Scanned] = {}
    foreign: list[str] = []
    try:
        for page in _pages(backend, target, spec):
            records.update((record.id, record) for record in page.records)
            foreign += page.foreign
    except IndexAbsent:
        return Found({}, ())
    return Found(records, tuple(sorted(foreign)))


def difference(goal: Goal, found: Found) -> Difference:
    """What is to be written, and what lies there that the goal does not know."""
    wanted, there = goal.records, found.records
    kept = wanted.keys() & there.keys()
    changed = {i for i in kept if not _same(wanted[i], there[i])}
    return Difference(
        added=tuple(sorted(wanted.keys() - there.keys())),
        changed=tuple(sorted(changed)),
        unchanged=len(kept) - len(changed),
        orphaned=tuple(sorted(there.keys() - wanted.keys())),
        foreign=found.foreign,
    )


def _same(wanted: Wanted, there: Scanned) -> bool:
    return wanted.content_hash == there.content_hash and _comparable(wanted.meta) == _comparable(there.meta)


def _comparable(meta: Meta) -> dict[str, object]:
    return {name: sorted(value) if isinstance(value, tuple) else value for name, value in meta.items()}


def _pages(backend: VectorBackend, target: str, spec: IndexSpec) -> Iterator[ScanPage]:
    after: str | None = None
    while True:
        page = backend.scan(target, spec, after=after, limit=_PAGE)
        yield page
        if (after := page.after) is None:
            return
