"""Whether a target holds what it should and answers as it should: by name, never by count.

Every id, content hash and field is compared; a sample of records must find itself; a sample of filters must admit what
the slow oracle admits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from backends.base import Scanned, VectorBackend
from backends.filters import Where, eligible, evaluate, pinned
from backends.schema import PLAN_ANY, POLICY, Value, day_of
from cda.contracts.embedding import Embedder
from cda.retrieval.embedding_cache import EmbeddingCache, embed_all
from cda.retrieval.lifecycle.goal import Found, Goal, Wanted, difference, found_in

_PAYER = POLICY["payer_id"]
SAMPLE = 24  # records that must find themselves, and filters that must admit what they should


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found. `verified` means that nothing at all differs. unconfirmed: records that are stored and were not
    found by a search for themselves, or writes that were not seen in time. filters: those that admit something else."""

    target: str
    expected: int
    found: int
    missing: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    orphans: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    unconfirmed: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    root: str = ""

    @property
    def state(self) -> Literal["verified", "drifted", "absent"]:
        """absent: nothing of the goal is there."""
        if not self.found and self.expected:
            return "absent"
        faults = (self.missing, self.stale, self.orphans, self.foreign, self.unconfirmed, self.filters)
        return "drifted" if any(faults) else "verified"

    @property
    def promotable(self) -> bool:
        """True when nothing differs but orphans, which hydration drops and a prune removes."""
        return self.state != "absent" and not any((self.missing, self.stale, self.unconfirmed, self.filters))


def verify(
    backend: VectorBackend,
    target: str,
    goal: Goal,
    embedder: Embedder,
    *,
    cache: EmbeddingCache | None = None,
    unseen: Sequence[str] = (),
) -> Verification:
    """Compare the target with the goal; `unseen` are ids whose writes were not confirmed as visible."""
    found = found_in(backend, target, goal.spec)
    differs = difference(goal, found)
    there = [goal.records[i] for i in sorted(goal.records.keys() & found.records.keys())]
    sound = sorted({record.id for record in there} - set(differs.changed))
    unconfirmed = _not_finding_themselves(
        backend, target, goal, [goal.records[i] for i in _spread(sound)], embedder, cache
    )
    filters = tuple(_odd_filters(backend, target, goal, found)) if there else ()
    return Verification(
        target=target,
        expected=len(goal.records),
        found=len(there),
        missing=differs.added,
        stale=differs.changed,
        orphans=differs.orphaned,
        foreign=differs.foreign,
        unconfirmed=tuple(sorted({*unconfirmed, *unseen})),
        filters=filters,
        root=found.root,
    )


def _not_finding_themselves(
    backend: VectorBackend,
    target: str,
    goal: Goal,
    sample: Sequence[Wanted],
    embedder: Embedder,
    cache: EmbeddingCache | None,
) -> Iterator[str]:
    """Sampled records that a search for their own vector, among their own payer's, does not bring with cosine 1."""
    vectors, _ = embed_all(embedder, [record.text for record in sample], cache=cache)
    groups: dict[tuple[str, str | None], list[int]] = {}
    for row, record in enumerate(sample):
        groups.setdefault((str(record.meta["payer_id"]), _plan(record)), []).append(row)
    for (payer, plan), rows in groups.items():
        where = eligible(payer_id=payer, plan_id=plan, as_of=None)
        pages = backend.search(target, goal.spec, vectors[rows], k=SAMPLE, where=where)
        for row, page in zip(rows, pages, strict=True):
            # Equal texts have equal vectors: any of the hits of cosine 1 may come first.
            if not any(hit.id == sample[row].id and hit.score > 0.9999 for hit in page.hits):
                yield sample[row].id


def _odd_filters(backend: VectorBackend, target: str, goal: Goal, found: Found) -> Iterator[str]:
    """Sampled filters whose hits are not the stored records that the oracle admits."""
    probe = np.zeros((1, goal.spec.dim), dtype=np.float32)
    probe[0, 0] = 1.0
    payers: dict[Value, list[Scanned]] = {}  # the oracle is slow, and each of these filters names its payer
    for record in found.records.values():
        payers.setdefault(record.meta[_PAYER.name], []).append(record)
    for name, where in _filters(goal):
        candidates = [one for payer in pinned(where, _PAYER) or () for one in payers.get(payer, ())]
        admitted = {record.id for record in candidates if evaluate(where, record.meta)}
        k = min(len(admitted) + 1, backend.capabilities().max_k)
        hits = {hit.id for hit in backend.search(target, goal.spec, probe, k=k, where=where)[0].hits}
        if not hits <= admitted or (len(admitted) < k and hits != admitted):
            yield name


def _filters(goal: Goal) -> Iterator[tuple[str, Where]]:
    """Filters of real searches: payer, plan and first day of the windows of sampled records."""
    starts = {i: day_of(record.meta["effective_start_i"]) for i, record in goal.records.items()}
    for record_id in _spread(sorted(i for i, start in starts.items() if start is not None)):
        record, as_of = goal.records[record_id], starts[record_id]
        payer, plan = str(record.meta["payer_id"]), _plan(record)
        yield f"{payer}, {plan or 'no plan'}, {as_of}", eligible(payer_id=payer, plan_id=plan, as_of=as_of)


def _plan(record: Wanted) -> str | None:
    plan = str(record.meta["plan_id"])
    return None if plan == PLAN_ANY else plan


def _spread(ids: Sequence[str]) -> list[str]:
    """SAMPLE of the ids, evenly spread, the first and the last among them."""
    if len(ids) <= SAMPLE:
        return list(ids)
    return [ids[i * (len(ids) - 1) // (SAMPLE - 1)] for i in range(SAMPLE)]
