"""From authored files to a store: check everything, compile, write.

`corpus` knows no criterion language: what a criterion and a fact definition may hold is judged by the validators that
the caller hands in.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from corpus.authored import AuthoredClause, AuthoredPolicy, AuthoredRider, AuthoredVersion
from corpus.contents import Contents
from corpus.errors import CorpusFaults, Fault
from corpus.model import Clause, Code, DateState, DocType, Payer, PlanRecord, VersionRecord
from corpus.reading import Authored, Entry, read
from corpus.rules import CriterionValidator, FactValidator, Rules, clause_id
from corpus.store_writer import write_store

Source = str | Path


ReferenceValidator = Callable[[Contents], list[tuple[str, str]]]


def check(
    sources: Sequence[Source],
    *,
    criterion_validator: CriterionValidator,
    fact_validator: FactValidator,
    reference_validator: ReferenceValidator = lambda _: [],
) -> tuple[Contents | None, tuple[Fault, ...]]:
    """Read and judge `sources` (folders, files, or "builtin"); return the compiled contents, None when there is any
    fault, and every fault, by file and line.

    criterion_validator(criterion, fact definitions as authored) and fact_validator(name, definition) return what is
    wrong, in words. reference_validator(contents) returns (clause id or fact name, fault) for what only shows across
    them; it is asked once everything else is sound. Raises CorpusError when a source does not exist or is empty.
    """
    authored = read(sources)
    rules = Rules(authored, criterion_validator=criterion_validator, fact_validator=fact_validator)
    found = dict.fromkeys((*authored.faults, *rules.faults()))
    contents = None if found else _compile(authored)
    if contents is not None:
        places = rules.places()
        found = {Fault(*places[id_], id_, message): None for id_, message in reference_validator(contents)}
    faults = tuple(sorted(found, key=lambda fault: (fault.file, fault.line or 0, fault.id, fault.message)))
    return (None if faults else contents), faults


def build(
    sources: Sequence[Source],
    out: Path,
    *,
    criterion_validator: CriterionValidator,
    fact_validator: FactValidator,
    reference_validator: ReferenceValidator = lambda _: [],
) -> str:
    """Check `sources`, write the store at `out` and return its digest. Raises CorpusFaults, with every fault, when
    there is any; then nothing is written."""
    contents, faults = check(
        sources,
        criterion_validator=criterion_validator,
        fact_validator=fact_validator,
        reference_validator=reference_validator,
    )
    if contents is None:
        raise CorpusFaults(faults)
    return write_store(contents, out)


def _compile(authored: Authored) -> Contents:
    compiled = [_policy_version(entry, version) for entry in authored.policies for version in entry.value.versions]
    compiled += [_rider(entry) for entry in authored.riders]
    payers = [Payer(entry.value.payer_id, entry.value.name) for entry in authored.payers]
    plans = [
        PlanRecord(plan.plan_id, entry.value.payer_id, plan.line_of_business, plan.reviewed)
        for entry in authored.payers
        for plan in entry.value.plans
    ]
    return Contents(
        payers=tuple(payers),
        plans=tuple(plans),
        codes=tuple(sorted(set(_codes(authored.codes)), key=lambda code: code.code)),
        versions=tuple(version for version, _ in compiled),
        clauses=tuple(clause for _, clauses in compiled for clause in clauses),
        facts={name: entry.value for name, entry in authored.facts},
        corpora={name: _figures(authored, name) for name in authored.corpora},
    )


def _codes(entries: Sequence[Entry[Any]]) -> Iterator[Code]:
    for entry in entries:
        for system in ("CPT", "HCPCS", "ICD10CM"):
            yield from (Code(code, system) for code in getattr(entry.value, system))


def _policy_version(entry: Entry[AuthoredPolicy], version: AuthoredVersion) -> tuple[VersionRecord, tuple[Clause, ...]]:
    policy = entry.value
    shared = {
        "policy_id": policy.policy_id,
        "policy_title": policy.title,
        "doc_type": DocType(policy.doc_type),
        "source": "policy",
        "payer_id": policy.payer_id,
        "plan_id": None,
        "version": version.version,
        "jurisdiction": policy.jurisdiction,
        "codes_linkage": policy.codes_linkage,
        **_window(version),
    }
    return _records(shared, f"{policy.policy_id}.{version.version}", policy.codes, version)


def _rider(entry: Entry[AuthoredRider]) -> tuple[VersionRecord, tuple[Clause, ...]]:
    rider = entry.value
    shared = {
        "policy_id": rider.rider_id,
        "policy_title": rider.title,
        "doc_type": DocType.RIDER,
        "source": "rider",
        "payer_id": rider.payer_id,
        "plan_id": rider.plan_id,
        "version": "v1",
        "overrides_policy_ids": rider.overrides_policy_ids,
        **_window(rider),
    }
    named = tuple(dict.fromkeys(code for clause in rider.clauses for code in clause.codes))
    return _records(shared, rider.rider_id, named, rider)


def _window(part: AuthoredVersion | AuthoredRider) -> dict[str, Any]:
    return {
        "effective_start": part.effective_start,
        "effective_end": part.effective_end,
        "date_state": part.date_state,
        "window_provenance": part.window_provenance,
        "implementation_date": part.implementation_date,
        "retirement_date": part.retirement_date,
    }


def _records(
    shared: dict[str, Any], owner: str, codes: tuple[str, ...], part: AuthoredVersion | AuthoredRider
) -> tuple[VersionRecord, tuple[Clause, ...]]:
    def clause(authored: AuthoredClause) -> Clause:
        return Clause(
            clause_id=clause_id(owner, authored),
            section=authored.section,
            text=authored.text,
            codes=authored.codes,
            source_ref=authored.source_ref or part.source_ref,
            criterion=authored.criterion,
            **shared,
        )

    clauses = tuple(map(clause, part.clauses))
    ids = tuple(item.clause_id for item in clauses)
    return VersionRecord(**shared, codes=codes, source_ref=part.source_ref, clause_ids=ids), clauses


def _figures(authored: Authored, corpus: str) -> dict[str, Any]:
    """What one corpus holds, for `corpus stats`."""
    policies = [entry.value for entry in authored.policies if entry.corpus == corpus]
    riders = [entry.value for entry in authored.riders if entry.corpus == corpus]
    payers = [entry.value for entry in authored.payers if entry.corpus == corpus]
    versions: list[AuthoredVersion | AuthoredRider] = [version for policy in policies for version in policy.versions]
    states = Counter(dict.fromkeys(DateState, 0))
    for part in (*versions, *riders):
        states[part.date_state] += len(part.clauses)
    return {
        "payers": len(payers),
        "plans": sum(len(payer.plans) for payer in payers),
        "policies": len(policies),
        "versions": len(versions),
        "riders": len(riders),
        "clauses": sum(states.values()),
        "codes": len(set(_codes([entry for entry in authored.codes if entry.corpus == corpus]))),
        "date_states": {state.value: count for state, count in states.items()},
    }
