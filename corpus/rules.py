"""What must fit together in an authored corpus: ids, references, codes, windows and criteria.

Nothing here raises: every rule yields its faults, so that one pass over the files finds them all.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

from corpus.authored import AuthoredClause, AuthoredPolicy, AuthoredRider, AuthoredVersion
from corpus.codes import SHAPES
from corpus.errors import Fault
from corpus.model import DateState
from corpus.reading import Authored, Entry

FactDefinitions = Mapping[str, Mapping[str, Any]]
CriterionValidator = Callable[[Mapping[str, Any], FactDefinitions], list[str]]
FactValidator = Callable[[str, Mapping[str, Any]], list[str]]


def clause_id(owner: str, clause: AuthoredClause) -> str:
    """The full id of a clause of `owner` ("POLICY.VERSION" or a rider id)."""
    return clause.clause_id or f"{owner}.{clause.id}"


def clause_owners(authored: Authored) -> Iterator[tuple[Entry[Any], str, AuthoredClause]]:
    """Every clause with the entry it stands in and its full id."""
    for policy in authored.policies:
        for version in policy.value.versions:
            for clause in version.clauses:
                yield policy, clause_id(f"{policy.value.policy_id}.{version.version}", clause), clause
    for rider in authored.riders:
        for clause in rider.value.clauses:
            yield rider, clause_id(rider.value.rider_id, clause), clause


class Rules:
    """The rules over one `Authored`; `faults()` gives what they found, in no particular order."""

    def __init__(
        self, authored: Authored, *, criterion_validator: CriterionValidator, fact_validator: FactValidator
    ) -> None:
        self._authored = authored
        self._validate_criterion, self._validate_fact = criterion_validator, fact_validator
        self._payers = {entry.value.payer_id for entry in authored.payers}
        self._plans = {plan.plan_id: e.value.payer_id for e in authored.payers for plan in e.value.plans}
        self._policies = {entry.value.policy_id: entry.value for entry in reversed(authored.policies)}
        self._codes = {c for e in authored.codes for c in (*e.value.CPT, *e.value.HCPCS, *e.value.ICD10CM)}
        self._clause_ids = {id_ for _, id_, _ in clause_owners(authored)}
        self._facts: dict[str, Mapping[str, Any]] = {}

    def faults(self) -> Iterator[Fault]:
        """Apply every rule."""
        yield from self._fact_faults()
        yield from self._payer_faults()
        yield from self._code_faults()
        yield from self._repeated_ids()
        for policy in self._authored.policies:
            yield from self._policy_faults(policy)
        for rider in self._authored.riders:
            yield from self._rider_faults(rider)

    def places(self) -> dict[str, tuple[str, int | None]]:
        """The file and line of every clause, by its full id, and of every fact definition, by its name."""
        found: dict[str, tuple[str, int | None]] = {
            name: (entry.file, entry.value.line) for name, entry in self._authored.facts
        }
        found |= {id_: (entry.file, clause.line()) for entry, id_, clause in clause_owners(self._authored)}
        for rider in self._authored.riders:
            for clause in rider.value.clauses:
                found[clause_id(rider.value.rider_id, clause)] = (rider.file, clause.line())
        return found

    def _known(self, id_: str, ids: Any) -> bool:
        return id_ in ids or id_ in self._authored.declared

    def _fact_faults(self) -> Iterator[Fault]:
        places: dict[str, str] = {}
        for name, entry in self._authored.facts:
            if name in places:
                yield Fault(entry.file, entry.value.line, name, f"fact {name} is defined twice; also at {places[name]}")
                continue
            places[name] = f"{entry.file}:{entry.value.line}"
            self._facts[name] = entry.value
            # The shipped definitions belong to no corpus; compiling their phrases takes seconds and is a test's work.
            for message in self._validate_fact(name, entry.value) if entry.corpus else ():
                yield Fault(entry.file, entry.value.line, name, message)

    def _payer_faults(self) -> Iterator[Fault]:
        seen: dict[str, str] = {}
        for entry in self._authored.payers:
            for part, id_ in ((entry.value, entry.value.payer_id), *((p, p.plan_id) for p in entry.value.plans)):
                place = f"{entry.file}:{part.line()}"
                if id_ in seen:
                    yield Fault(entry.file, part.line(), id_, f"{id_} is defined twice; also at {seen[id_]}")
                seen.setdefault(id_, place)

    def _code_faults(self) -> Iterator[Fault]:
        for entry in self._authored.codes:
            for system, (shape, words) in SHAPES.items():
                for code in getattr(entry.value, system):
                    if not shape.match(code):
                        message = f"{code!r} is not a {system} code ({words}); correct it or list it elsewhere"
                        yield Fault(entry.file, entry.value.line(system), code, message)

    def _repeated_ids(self) -> Iterator[Fault]:
        seen: dict[str, str] = {}
        documents: Sequence[Entry[Any]] = (*self._authored.policies, *self._authored.riders)
        for entry in documents:
            key = "policy_id" if isinstance(entry.value, AuthoredPolicy) else "rider_id"
            id_, line = getattr(entry.value, key), entry.value.line(key)
            if id_ in seen:
                yield Fault(entry.file, line, id_, f"{id_} is defined twice; also at {seen[id_]}")
            seen.setdefault(id_, f"{entry.file}:{line}")
        texts: dict[str, tuple[str, str]] = {}
        for entry, id_, clause in clause_owners(self._authored):
            if not (clause.id or clause.clause_id):
                continue
            if id_ in texts:
                text, place = texts[id_]
                how = "is written twice" if text == clause.text else "is reused with other text"
                yield Fault(
                    entry.file, clause.line(), id_, f"clause id {id_} {how}; also at {place}; give it its own id"
                )
            texts.setdefault(id_, (clause.text, f"{entry.file}:{clause.line()}"))

    def _policy_faults(self, entry: Entry[AuthoredPolicy]) -> Iterator[Fault]:
        policy, file = entry.value, entry.file
        if not self._known(policy.payer_id, self._payers):
            yield self._unknown_payer(file, policy, policy.policy_id)
        for code in policy.codes:
            if code not in self._codes:
                message = f"unknown code {code!r}: no codes list names it; add it to one or correct it"
                yield Fault(file, policy.line("codes"), policy.policy_id, message)
        names: set[str] = set()
        for version in policy.versions:
            owner = f"{policy.policy_id}.{version.version}"
            if version.version in names:
                yield Fault(
                    file, version.line(), owner, f"version {version.version} stands twice; each has its own name"
                )
            names.add(version.version)
            yield from _date_faults(file, owner, version)
            for clause in version.clauses:
                yield from self._clause_faults(file, owner, clause, policy.codes, overrides=None)
        if not entry.partial:
            yield from _window_faults(file, policy)

    def _rider_faults(self, entry: Entry[AuthoredRider]) -> Iterator[Fault]:
        rider, file, id_ = entry.value, entry.file, entry.value.rider_id
        if not self._known(rider.payer_id, self._payers):
            yield self._unknown_payer(file, rider, id_)
        if not self._known(rider.plan_id, self._plans):
            yield Fault(
                file, rider.line("plan_id"), id_, f"unknown plan {rider.plan_id}: no payer has it; add or correct"
            )
        elif self._plans.get(rider.plan_id, rider.payer_id) != rider.payer_id:
            message = f"plan {rider.plan_id} is of payer {self._plans[rider.plan_id]}, not of {rider.payer_id}"
            yield Fault(file, rider.line("plan_id"), id_, f"{message}; a rider and its plan have one payer")
        codes: list[str] = []
        for policy_id in rider.overrides_policy_ids:
            policy = self._policies.get(policy_id)
            if policy is not None:
                codes += policy.codes
                if policy.payer_id != rider.payer_id:
                    message = f"policy {policy_id} is of payer {policy.payer_id}, not of {rider.payer_id}"
                    yield Fault(file, rider.line("overrides_policy_ids"), id_, message)
            elif policy_id not in self._authored.declared:
                message = f"overrides the unknown policy {policy_id}; add the policy or correct the id"
                yield Fault(file, rider.line("overrides_policy_ids"), id_, message)
        yield from _date_faults(file, id_, rider)
        whole = all(policy_id in self._policies for policy_id in rider.overrides_policy_ids)
        for clause in rider.clauses:
            allowed = codes if whole else clause.codes
            yield from self._clause_faults(file, id_, clause, allowed, overrides=rider.overrides_policy_ids)

    def _clause_faults(
        self, file: str, owner: str, clause: AuthoredClause, codes: Sequence[str], *, overrides: Sequence[str] | None
    ) -> Iterator[Fault]:
        id_ = clause_id(owner, clause) if clause.id or clause.clause_id else owner
        if (clause.id is None) == (clause.clause_id is None):
            yield Fault(file, clause.line(), id_, "a clause has either an id or a full clause_id; write one of them")
        for code in clause.codes:
            if code not in codes:
                message = f"code {code!r} is not among the codes of its policy; add it there or take it out here"
                yield Fault(file, clause.line("codes"), id_, message)
        if clause.criterion is None:
            return
        line = clause.line("criterion")
        if not clause.codes:
            yield Fault(file, line, id_, "a criterion decides nothing without codes; name the clause's codes")
        for message in self._validate_criterion(clause.criterion, self._facts):
            yield Fault(file, line, id_, message)
        for message in self._reference_faults(clause.criterion, codes, overrides):
            yield Fault(file, line, id_, message)

    def _reference_faults(
        self, criterion: Mapping[str, Any], codes: Sequence[str], overrides: Sequence[str] | None
    ) -> Iterator[str]:
        for target in criterion.get("contradicts") or ():
            if not self._known(str(target), self._clause_ids):
                yield f"contradicts the unknown clause {target}; correct the id"
        unless = criterion.get("unless")
        if isinstance(unless, Mapping) and "to" in unless and unless["to"] not in codes:
            yield f"routes to {unless['to']!r}, which is not among the codes of its policy"
        patch = criterion.get("patch")
        if isinstance(patch, Mapping):
            yield from self._patch_faults(patch, overrides)

    def _patch_faults(self, patch: Mapping[str, Any], overrides: Sequence[str] | None) -> Iterator[str]:
        target = patch.get("of")
        if overrides is None:
            yield "only a rider's clause may patch; write the rule into the policy instead"
        elif target not in self._policies:
            if target not in self._authored.declared:
                yield f"patches the unknown policy {target}; correct `of`"
        elif target not in overrides:
            yield f"patches {target}, which is not among overrides_policy_ids; add it there or correct `of`"
        else:
            for key in ("waive", "replace_limit"):
                name = patch.get(key)
                if name is not None and name not in addressable_names(self._policies[str(target)]):
                    yield f"{key} names {name!r}, which no criterion of {target} names; correct the name"

    def _unknown_payer(self, file: str, part: AuthoredPolicy | AuthoredRider, id_: str) -> Fault:
        return Fault(
            file, part.line("payer_id"), id_, f"unknown payer {part.payer_id}: no payer file has it; add or correct"
        )


def addressable_names(policy: AuthoredPolicy) -> frozenset[str]:
    """The names a rider can address: named nodes and facts, anywhere in the policy's criteria."""

    def names(node: Any) -> Iterator[str]:
        if isinstance(node, Mapping):
            yield from (str(node[key]) for key in ("named", "fact") if key in node)
            for inner in node.values():
                yield from names(inner)
        elif isinstance(node, list):
            for inner in node:
                yield from names(inner)

    return frozenset(n for version in policy.versions for clause in version.clauses for n in names(clause.criterion))


def _date_faults(file: str, id_: str, part: AuthoredVersion | AuthoredRider) -> Iterator[Fault]:
    start, end, retired = part.effective_start, part.effective_end, part.retirement_date
    if part.date_state is DateState.UNDATED and start is not None:
        message = f"UNDATED, yet it starts on {start}; make it DATED or set effective_start to null"
        yield Fault(file, part.line("effective_start"), id_, message)
    if part.date_state is not DateState.DATED:
        return  # dates that contradict one another are what AMBIGUOUS says
    if start is None:
        message = "DATED without effective_start; give the day, or say date_state: UNDATED"
        yield Fault(file, part.line(), id_, message)
        return
    if end is not None and end < start:
        yield Fault(file, part.line("effective_end"), id_, f"effective_end {end} is before effective_start {start}")
    if retired is not None and retired < start:
        message = f"retirement_date {retired} is before effective_start {start}; if the source says so, it is AMBIGUOUS"
        yield Fault(file, part.line("retirement_date"), id_, message)


def _window_faults(file: str, policy: AuthoredPolicy) -> Iterator[Fault]:
    """DATED versions follow one another without overlap, and without a gap unless `gap_after` gives its reason."""
    dated = [
        (v.effective_start, v)
        for v in policy.versions
        if v.date_state is DateState.DATED and v.effective_start is not None
    ]
    ordered = [version for _, version in sorted(dated, key=lambda item: item[0])]
    explained = {version.version for version in policy.versions if version.gap_after}
    for earlier, later in pairwise(ordered):
        start = later.effective_start or date.max
        names = f"versions {earlier.version} and {later.version} of {policy.policy_id}"
        place = later.line("effective_start")
        if earlier.effective_end is None:
            message = f"{names} overlap: {earlier.version} has no effective_end; end it on {start - timedelta(days=1)}"
            yield Fault(file, place, policy.policy_id, message)
        elif start <= earlier.effective_end:
            message = f"{names} overlap from {start} to {earlier.effective_end}; end {earlier.version} before {start}"
            yield Fault(file, place, policy.policy_id, message)
        elif start > earlier.effective_end + timedelta(days=1):
            if not earlier.gap_after:
                first, last = earlier.effective_end + timedelta(days=1), start - timedelta(days=1)
                message = f"{names} leave a gap from {first} to {last}; close it or say why with gap_after"
                yield Fault(file, place, policy.policy_id, message)
            explained.discard(earlier.version)
    for version in policy.versions:
        if version.version in explained:
            message = f"version {version.version} has gap_after, but no gap follows it; take it out"
            yield Fault(file, version.line("gap_after"), policy.policy_id, message)
