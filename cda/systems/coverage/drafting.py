"""Drafts the clauses of imported policies: one call to the model for each version, one review file for each answer.

A review file is written as soon as its answer is there and is never written over, so an answer that was paid for
survives a kill and is not asked for again.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cda.agents import drafter
from cda.contracts.definitions import definitions_from_data
from cda.contracts.facts import FactDefinition
from cda.contracts.model_client import ModelClient, ModelFailure, RunMeter
from cda.errors import UsageError
from cda.systems.coverage.draft_review import (
    Review,
    ReviewedClause,
    ReviewedException,
    ReviewedFact,
    block_ids,
    judged,
    sha,
    written,
)
from corpus.authored import AuthoredPolicy, AuthoredVersion
from corpus.errors import CorpusFaults
from corpus.reading import Authored, read


@dataclass(slots=True)
class Drafting:
    """What came of it: review files written, those that were there, and versions whose call failed, with the kind."""

    written: list[str] = field(default_factory=list)
    there: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    clauses: int = 0
    faulty: int = 0


@dataclass(frozen=True, slots=True)
class Source:
    """Authored policies as read, and the definitions of the facts that they may name."""

    authored: Authored
    definitions: Mapping[str, FactDefinition]

    def version(self, policy_id: str, version: str) -> tuple[AuthoredPolicy, AuthoredVersion] | None:
        """A version by its names."""
        return next(
            (
                (entry.value, one)
                for entry in self.authored.policies
                for one in entry.value.versions
                if (entry.value.policy_id, one.version) == (policy_id, version)
            ),
            None,
        )


def read_source(path: Path) -> Source:
    """The policies under a path. Raises UsageError when there is no such path, CorpusFaults for a fault of form."""
    if not path.exists():
        raise UsageError(f"{path}: no such folder or file; give what `cda corpus import` wrote")
    authored = read([path])
    if authored.faults:
        raise CorpusFaults(tuple(authored.faults))
    return Source(authored, definitions_from_data({name: entry.value for name, entry in authored.facts}))


def undrafted(source: Source, wanted: Sequence[str]) -> list[tuple[AuthoredPolicy, AuthoredVersion]]:
    """The versions with a clause that decides nothing yet, of all policies or of those named. Raises UsageError for a
    name that no policy has, and when nothing is left to draft."""
    policies = {entry.value.policy_id: entry.value for entry in source.authored.policies}
    for name in wanted:
        if name not in policies:
            raise UsageError(f"--policy {name}: no policy of SOURCE has this id")
    found = [
        (policy, version)
        for name, policy in sorted(policies.items())
        if not wanted or name in wanted
        for version in policy.versions
        if block_ids(version)
    ]
    if not found:
        raise UsageError("nothing to draft: every clause of these policies has a criterion")
    return found


def draft_all(
    versions: Sequence[tuple[AuthoredPolicy, AuthoredVersion]],
    definitions: Mapping[str, FactDefinition],
    client: ModelClient,
    meter: RunMeter,
    out: Path,
    say: Callable[[str], None],
) -> Drafting:
    """Write one review file a version into `out`. A call that fails leaves no file; the others are written."""
    done = Drafting()
    out.mkdir(parents=True, exist_ok=True)
    for policy, version in versions:
        file = out / f"{policy.policy_id}.{version.version}.review.yaml"
        if file.exists():
            done.there.append(str(file))
            continue
        try:
            review = _drafted(policy, version, definitions, client, meter)
        except ModelFailure as failure:
            done.failed.append(f"{policy.policy_id}.{version.version}: {failure}")
            say(f"failed: {done.failed[-1]}")
            continue
        scratch = file.with_suffix(".part")
        scratch.write_text(written(review), encoding="utf-8", newline="\n")
        scratch.replace(file)
        done.written.append(str(file))
        done.clauses += len(review.clauses)
        done.faulty += sum(bool(clause.faults) for clause in review.clauses)
        say(f"{file}: {len(review.clauses)} clauses drafted, {len(review.facts)} new facts")
    return done


def _drafted(
    policy: AuthoredPolicy,
    version: AuthoredVersion,
    definitions: Mapping[str, FactDefinition],
    client: ModelClient,
    meter: RunMeter,
) -> Review:
    blocks = [
        {"id": clause.id or clause.clause_id or "", "section": clause.section, "text": clause.text}
        for clause in version.clauses
        if clause.criterion is None
    ]
    answer = drafter.draft(
        client,
        meter,
        policy={"policy_id": policy.policy_id, "version": version.version, "codes": list(policy.codes)},
        blocks=blocks,
        definitions=definitions,
    )
    review = Review(
        policy_id=policy.policy_id,
        version=version.version,
        model=client.describe(drafter.ROLE),
        instructions=sha(drafter.INSTRUCTIONS)[:16],
        blocks={id_: sha(text) for id_, text in block_ids(version).items()},
        facts=tuple(_fact(fact) for fact in answer.facts),
        clauses=_clauses(answer.clauses, block_ids(version)),
    )
    return with_faults(review, judged(review, policy, version, definitions))


def with_faults(review: Review, faults: Mapping[str, Sequence[str]]) -> Review:
    """The review with what was found written at each part, after what is there."""
    clauses = [one.model_copy(update={"faults": (*one.faults, *faults.get(one.id, ()))}) for one in review.clauses]
    facts = [one.model_copy(update={"faults": tuple(faults.get(one.name, ()))}) for one in review.facts]
    return review.model_copy(update={"clauses": tuple(clauses), "facts": tuple(facts)})


def _fact(fact: drafter.DraftedFact) -> ReviewedFact:
    definition: dict[str, Any] = {"type": fact.type, "label": fact.label}
    if fact.unit:
        definition["unit"] = fact.unit
    if fact.values:
        definition["values"] = list(fact.values)
    held = ReviewedFact(name=fact.name, definition=definition, drafted="")
    return held.model_copy(update={"drafted": held.digest})


def _clauses(drafted: Sequence[drafter.DraftedClause], texts: Mapping[str, str]) -> tuple[ReviewedClause, ...]:
    """Clauses with ids: the block's own where the quote is all of it, else numbered within the block."""
    counts: dict[str, int] = {}
    found = []
    for clause in drafted:
        counts[clause.block] = counts.get(clause.block, 0) + 1
        whole = clause.quote == texts.get(clause.block) and counts[clause.block] == 1
        criterion, faults = _criterion(clause.criterion)
        held = ReviewedClause(
            id=clause.block if whole else f"{clause.block}-{counts[clause.block]}",
            block=clause.block,
            section=clause.section.strip() or "Statement",
            codes=tuple(clause.codes),
            quote=clause.quote,
            criterion=criterion,
            exceptions=tuple(ReviewedException(words=one.words, node=one.node) for one in clause.exceptions),
            faults=faults,
            drafted="",
        )
        found.append(held.model_copy(update={"drafted": held.digest}))
    return tuple(found)


def _criterion(text: str) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    if not text.strip():
        return None, ()
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # half a surrogate pair can be read, and not written
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        # Not None: a clause that was meant to decide must not pass for one that decides nothing.
        return {"unreadable": text}, ("criterion: is not the JSON text of one criterion",)
    return value, ()
