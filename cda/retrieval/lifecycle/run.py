"""One index run: plan, upsert, verify, promote, prune.

Every step can be cut short and run again: ids are those of the clauses, a write that is there already is written over,
texts are embedded through a cache, and the pointer moves last. Two operators meet at the shared documents: whoever
finds one changed under him stops and says so.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal
from uuid import uuid4

from backends.base import Failure, Record, Usage, VectorBackend, WriteReport
from backends.errors import BackendError, IndexAbsent
from cda.contracts.embedding import Embedder
from cda.errors import CdaError, UsageError
from cda.retrieval.embedding_cache import EmbeddingCache, embed_all
from cda.retrieval.lifecycle.costs import add_costs, costs_name
from cda.retrieval.lifecycle.goal import Goal, difference, found_in
from cda.retrieval.lifecycle.journal import Journal
from cda.retrieval.lifecycle.manifest import (
    Building,
    Pointer,
    TargetManifest,
    building_name,
    held,
    manifest_name,
    pointer_name,
)
from cda.retrieval.lifecycle.plan import BYTES_PER_TOKEN, Plan, plan_of
from cda.retrieval.lifecycle.probe import forget_others, probe_of
from cda.retrieval.lifecycle.shared_files import IndexBusy, Moved, SharedFiles, overtaken
from cda.retrieval.lifecycle.targets import choose
from cda.retrieval.lifecycle.verify import Verification, verify

_CHUNK = 256  # records whose vectors are in memory at a time
_ROUNDS = 3  # attempts at records that the service says may be sent again
PRUNE_LIMIT = 0.2
Told = Callable[[str, int, int], None]  # a step, how much of it is done, of how much


@dataclass(frozen=True, slots=True)
class Report:
    """What a run did. `state` is live (queries go there), verified (ready, not promoted), or drifted (something is
    missing: nothing was promoted)."""

    plan: Plan
    state: Literal["live", "verified", "drifted"]
    embedded: int = 0
    upserted: int = 0
    deleted: int = 0
    failed: tuple[Failure, ...] = ()
    promoted: bool = False
    verification: Verification | None = None
    note: str = ""


@dataclass(slots=True)
class _Written:
    embedded: int = 0
    characters: int = 0  # of the embedded texts
    deleted: int = 0
    accepted: set[str] = field(default_factory=set)
    failed: dict[str, Failure] = field(default_factory=dict)
    token: str | None = None

    def add(self, report: WriteReport) -> None:
        self.accepted.update(report.accepted)
        for record_id in report.accepted:
            self.failed.pop(record_id, None)
        self.failed.update((failure.id, failure) for failure in report.failed)
        self.token = report.token


class LifeCycle:
    """The runs of one goal on one backend. `hosted`: texts are sent to an embedder that is paid by the token. `after`
    is told each step that is finished, for progress and for tests."""

    def __init__(
        self,
        backend: VectorBackend,
        files: SharedFiles,
        goal: Goal,
        embedder: Embedder,
        *,
        cache: EmbeddingCache | None = None,
        journals: Path,
        clock: Callable[[], float] = time.time,
        wait_s: float = 120.0,
        hosted: bool = False,
        after: Told = lambda _step, _done, _of: None,
    ) -> None:
        self._backend, self._files, self._goal, self._embedder = backend, files, goal, embedder
        self._cache, self._journals, self._clock, self._wait_s, self._after = cache, journals, clock, wait_s, after
        self._hosted = hosted
        self._name = backend.capabilities().name
        self._pointer_name = pointer_name(goal.spec.schema.name, self._name)

    def plan(self, *, fresh: bool = False) -> Plan:
        """What `index` would do now; nothing is written anywhere."""
        pointer, _ = held(self._files, self._pointer_name, Pointer)
        target = choose(self._backend, self._files, self._goal.spec, pointer, fresh=fresh)
        token = self._journal(target).last_token()
        if token is not None and self._backend.describe(target) is not None:
            self._backend.wait_visible(target, token, deadline_s=self._wait_s)
        found = found_in(self._backend, target, self._goal.spec)
        return plan_of(
            self._goal,
            difference(self._goal, found),
            target,
            self._backend.capabilities(),
            fresh=fresh,
            cache=self._cache,
            hosted=self._hosted,
        )

    def index(
        self,
        *,
        fresh: bool = False,
        promote: bool = True,
        prune: bool = False,
        prune_limit: float = PRUNE_LIMIT,
        take_over: bool = False,
    ) -> Report:
        """Bring the target to the goal, verify it, and let queries go there.

        Nothing is promoted unless it was verified. Orphans stay until `prune`, which refuses to delete more than
        `prune_limit` of a target. Raises IndexBusy when another run writes to the target, UsageError for a prune over
        the limit (before anything is written), and what the backend raises; each can be run again.
        """
        written, before = _Written(), self._backend.usage()
        try:
            return self._run(written, fresh, promote, prune, prune_limit, take_over)
        finally:
            self._note_costs(written, before)

    def _run(
        self, written: _Written, fresh: bool, promote: bool, prune: bool, prune_limit: float, take_over: bool
    ) -> Report:
        pointing = self._files.read(self._pointer_name)  # what the promotion at the end will replace
        plan = self.plan(fresh=fresh)
        self._check_prune(plan, prune, prune_limit)
        self._after("plan", 1, 1)
        if not plan.writes and not (prune and plan.orphaned) and self._is_live(plan.target):
            return Report(plan, "live", promoted=False, note="nothing to do")
        self._require_own_vectors(plan.target)
        claim = self._claim(plan.target, take_over)
        self._write(plan, written)
        unseen = self._unseen(plan.target, written)
        self._after("visible", 1, 1)
        verification = verify(self._backend, plan.target, self._goal, self._embedder, cache=self._cache, unseen=unseen)
        self._after("verify", 1, 1)
        report = Report(
            plan,
            "drifted",
            embedded=written.embedded,
            upserted=len(written.accepted),
            failed=tuple(written.failed.values()),
            verification=verification,
        )
        if written.failed or not verification.promotable:
            return report
        self._release(plan.target, claim)
        if not promote:
            return replace(report, state="verified")
        moved = self._promote(plan.target, pointing)
        written.deleted = self._prune(plan) if prune else 0
        return replace(report, state="live", deleted=written.deleted, promoted=moved)

    def verify(self) -> Verification:
        """Compare the target that `index` would write to with the goal. A lost manifest is written again when nothing
        differs."""
        pointer, _ = held(self._files, self._pointer_name, Pointer)
        target = choose(self._backend, self._files, self._goal.spec, pointer, fresh=False)
        manifest, content = held(self._files, manifest_name(self._name, target), TargetManifest)
        if manifest is not None:
            manifest.require_probe(self._probe)
        found = verify(self._backend, target, self._goal, self._embedder, cache=self._cache)
        if content is None and found.state == "verified":
            self._files.write(manifest_name(self._name, target), self._manifest(target).encoded(), expect=None)
        return found

    @cached_property
    def _probe(self) -> str:
        return probe_of(self._embedder)

    def _require_own_vectors(self, target: str) -> None:
        """Vectors of two embedders never meet: not in a target, and not from the cache."""
        manifest, _ = held(self._files, manifest_name(self._name, target), TargetManifest)
        if manifest is not None:
            manifest.require_probe(self._probe)
        if self._cache is not None:
            forget_others(self._cache, self._embedder.identity, self._probe)

    def _note_costs(self, written: _Written, before: Usage) -> None:
        with suppress(BackendError, CdaError):  # what a run did is not undone because its bill could not be written
            add_costs(
                self._files,
                costs_name(self._goal.spec.schema.name, self._name),
                before,
                self._backend.usage(),
                backend=self._name,
                embedder=self._goal.spec.embedder,
                now=int(self._clock()),
                embedded=written.embedded,
                tokens=written.characters // BYTES_PER_TOKEN if self._hosted else 0,
                upserted=len(written.accepted),
                deleted=written.deleted,
            )

    def _check_prune(self, plan: Plan, prune: bool, limit: float) -> None:
        there = plan.unchanged + len(plan.changed) + len(plan.orphaned)
        if prune and len(plan.orphaned) > limit * there:
            raise UsageError(
                f"pruning would delete {len(plan.orphaned)} of {there} records of {plan.target}, "
                f"more than {limit:.0%}; look at `--plan`, and raise --prune-limit if that is right. Nothing was done"
            )

    def _is_live(self, target: str) -> bool:
        pointer, _ = held(self._files, self._pointer_name, Pointer)
        manifest, _ = held(self._files, manifest_name(self._name, target), TargetManifest)
        wanted = (self._goal.corpus_digest, self._goal.root)
        return (
            pointer is not None
            and manifest is not None
            and (pointer.target, pointer.manifest) == (target, manifest.digest)
            and (manifest.corpus_digest, manifest.root) == wanted
        )

    def _claim(self, target: str, take_over: bool) -> bytes:
        other, content = held(self._files, building_name(self._name, target), Building)
        if other is not None and other.corpus_digest != self._goal.corpus_digest and not take_over:
            raise IndexBusy(
                f"a run towards corpus {other.corpus_digest[:12]} has written to {target} and is not finished; "
                "finish it, or pass --take-over to go on towards this corpus"
            )
        claim = Building(target, self._goal.corpus_digest, uuid4().hex, int(self._clock())).encoded()
        self._replace(building_name(self._name, target), claim, content)
        self._after("claim", 1, 1)
        try:
            self._backend.ensure(target, self._goal.spec)
        except (BackendError, CdaError):
            if content is None:  # nothing was begun, so nothing is left for others to finish
                with suppress(Moved, BackendError, CdaError):
                    self._files.remove(building_name(self._name, target), expect=claim)
            raise
        return claim

    def _write(self, plan: Plan, written: _Written) -> None:
        self._after("ensure", 1, 1)
        journal = self._journal(plan.target)

        def answered(report: WriteReport) -> None:
            journal.note(report)
            written.add(report)
            self._after("upsert", len(written.accepted), len(plan.writes))

        due: Sequence[str] = plan.writes
        for _ in range(_ROUNDS):
            if due:
                self._backend.upsert(plan.target, self._goal.spec, self._records(due, written), on_batch=answered)
            due = sorted(i for i, failure in written.failed.items() if failure.retryable)

    def _records(self, ids: Sequence[str], written: _Written) -> Iterator[Record]:
        for start in range(0, len(ids), _CHUNK):
            wanted = [self._goal.records[i] for i in ids[start : start + _CHUNK]]
            texts = [record.text for record in wanted]
            vectors, fresh = embed_all(self._embedder, texts, cache=self._cache)
            written.embedded += fresh
            written.characters += sum(map(len, texts)) * fresh // len(texts)
            for record, vector in zip(wanted, vectors, strict=True):
                yield Record(record.id, vector, record.meta, record.content_hash)

    def _unseen(self, target: str, written: _Written) -> tuple[str, ...]:
        """The written ids when the service did not show them in time."""
        if written.token is None:
            return ()
        seen = self._backend.wait_visible(target, written.token, deadline_s=self._wait_s)
        return () if seen.confirmed else tuple(sorted(written.accepted))

    def _release(self, target: str, claim: bytes) -> None:
        """Write down what was verified and give the target free."""
        if self._files.read(building_name(self._name, target)) != claim:
            raise overtaken(target)
        _, content = held(self._files, manifest_name(self._name, target), TargetManifest)
        self._replace(manifest_name(self._name, target), self._manifest(target).encoded(), content)
        self._after("manifest", 1, 1)
        try:
            self._files.remove(building_name(self._name, target), expect=claim)
        except Moved:
            raise overtaken(target) from None
        self._journal(target).close()
        self._after("release", 1, 1)

    def _manifest(self, target: str) -> TargetManifest:
        spec = self._goal.spec
        return TargetManifest(
            target=target,
            collection=spec.schema.name,
            backend=self._name,
            embedder=spec.embedder,
            dim=spec.dim,
            probe=self._probe,
            schema_digest=spec.schema.digest,
            corpus_digest=self._goal.corpus_digest,
            count=len(self._goal.records),
            root=self._goal.root,
            verified_at=int(self._clock()),
        )

    def _promote(self, target: str, pointing: bytes | None) -> bool:
        """Move the pointer away from where it pointed when the run began; False when it is there already."""
        pointer = Pointer.decoded(pointing, self._pointer_name) if pointing is not None else None
        manifest, _ = held(self._files, manifest_name(self._name, target), TargetManifest)
        if manifest is None:
            raise IndexAbsent(f"the manifest of {target} is gone; run the index step again")
        if pointer is not None and (pointer.target, pointer.manifest) == (target, manifest.digest):
            return False
        fresh = Pointer(
            target=target,
            manifest=manifest.digest,
            promoted_at=int(self._clock()),
            previous_target=pointer.target if pointer else None,
            previous_manifest=pointer.manifest if pointer else None,
        )
        self._replace(self._pointer_name, fresh.encoded(), pointing)
        self._after("promote", 1, 1)
        return True

    def _prune(self, plan: Plan) -> int:
        if not plan.orphaned:
            return 0
        report = self._backend.delete(plan.target, self._goal.spec, plan.orphaned)
        self._backend.wait_visible(plan.target, report.token, deadline_s=self._wait_s)
        self._after("prune", 1, 1)
        return len(report.accepted)

    def _replace(self, name: str, content: bytes, expect: bytes | None) -> None:
        try:
            self._files.write(name, content, expect=expect)
        except Moved:
            raise overtaken(name) from None

    def _journal(self, target: str) -> Journal:
        return Journal(self._journals / f"{self._name}-{target}.jsonl")
