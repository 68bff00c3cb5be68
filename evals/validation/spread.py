"""What the shipped sets hold together: sizes, every boundary day, every trap, difficulty, step and halt."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import get_args

from corpus.model import Clause, VersionRecord
from evals.case_model import (
    STEPS,
    CoverageCase,
    GateState,
    InjectionCase,
    InjectionFamily,
    Law,
    MetamorphicPair,
    Outcome,
    RetrievalCase,
    RetrievalKind,
    VerifierCase,
)
from evals.corpus_view import CorpusView
from evals.validation.finding import Finding

SIZES = {"floor": 44, "expanded": 110, "adversarial": 60, "medicare": 30}
PAIRS, PLANTED, QUERIES = 60, 40, 120
ATTACKS, LOOK_ALIKES = 60, 20
TRAPS = tuple(f"T{number}" for number in range(1, 8))
HARD = (
    *("near_miss", "sibling_code", "hedged", "contradictory", "injection", "hostile_clause", "ocr", "wrong_person"),
    *("unit_trap", "tense", "payer_text", "halt"),
)
LAWS: tuple[Law, ...] = get_args(Law)
KINDS: tuple[RetrievalKind, ...] = get_args(RetrievalKind)
HALTS = (
    *("payer_id", "plan_id", "as_of_date", "procedure_codes", "diagnosis_codes", "narrative", "facts"),
    "field_confidence",
)
GATE_KINDS = (
    *("no_claims", "no_gap", "check_failed", "confidence", "fact_conflict", "source_conflict", "lines", "adverse"),
    *("relied_on_lower_source", "no_plan", "fenced_facts", "unknown_code", "insufficient_evidence"),
)
ANSWERS: tuple[tuple[Outcome, GateState], ...] = (
    ("COVERED", "DETERMINE"),
    ("COVERED", "REVIEW"),
    ("NOT_COVERED", "DETERMINE"),
    ("NOT_COVERED", "REVIEW"),
    ("INSUFFICIENT_EVIDENCE", "REFUSE"),
    ("INSUFFICIENT_EVIDENCE", "REVIEW"),
    ("INSUFFICIENT_EVIDENCE", "HALT"),
)
ENOUGH = 5


def coverage_spread(sets: Mapping[str, Sequence[CoverageCase]], view: CorpusView) -> Iterator[Finding]:
    """What the coverage sets lack together."""
    for name, least in SIZES.items():
        yield from _least(name, "set_size", "cases", len(sets.get(name, ())), least)
    cases = [case for held in sets.values() for case in held]
    traps = Counter(trap for case in cases for trap in TRAPS if trap in case.trap.replace("-", "+").split("+"))
    hard = Counter(tag for case in cases for tag in case.stress)
    answers = Counter((case.expected_outcome, case.expected_gate) for case in cases)
    yield from (f for trap in TRAPS for f in _least("coverage", "trap", f"cases of {trap}", traps[trap], ENOUGH))
    yield from (f for tag in HARD for f in _least("adversarial", "stress", f"cases tagged {tag}", hard[tag], ENOUGH))
    yield from (f for pair in ANSWERS for f in _least("coverage", "answers", f"{' '.join(pair)}", answers[pair], 1))
    yield from _boundaries(cases, view)
    yield from _deciding(cases, view)


def pair_spread(pairs: Sequence[MetamorphicPair]) -> Iterator[Finding]:
    """What the pairs lack together."""
    yield from _least("metamorphic", "set_size", "pairs", len(pairs), PAIRS)
    laws = Counter(pair.law for pair in pairs)
    yield from (f for law in LAWS for f in _least("metamorphic", "law", f"pairs of {law}", laws[law], ENOUGH))


def planted_spread(cases: Sequence[VerifierCase]) -> Iterator[Finding]:
    """What the planted faults lack together."""
    caught = Counter(case.caught_by for case in cases)
    yield from _least("verifier", "set_size", "cases", len(cases), PLANTED)
    yield from (f for s in STEPS for f in _least("verifier", "step", f"faults of {s}", caught[f"verifier.{s}"], ENOUGH))
    yield from (f for k in GATE_KINDS for f in _least("verifier", "gate", f"faults of {k}", caught[f"gate.{k}"], 1))
    yield from (f for h in HALTS for f in _least("verifier", "halt", f"halts of {h}", caught[f"halt.{h}"], 1))
    yield from _least("verifier", "control", "sound controls", caught[""], ENOUGH)


def query_spread(cases: Sequence[RetrievalCase]) -> Iterator[Finding]:
    """What the queries lack together."""
    yield from _least("retrieval", "set_size", "queries", len(cases), QUERIES)
    kinds = Counter(case.kind for case in cases)
    yield from (f for kind in KINDS for f in _least("retrieval", "kind", f"queries of {kind}", kinds[kind], ENOUGH))


def attack_spread(cases: Sequence[InjectionCase]) -> Iterator[Finding]:
    """Enough attacks and look-alikes, of every family."""
    families = Counter(case.family for case in cases)
    hostile = sum(case.hostile for case in cases)
    yield from _least("injection", "size", "attacks", hostile, ATTACKS)
    yield from _least("injection", "size", "look-alikes", len(cases) - hostile, LOOK_ALIKES)
    for family in get_args(InjectionFamily):
        yield from _least("injection", "family", f"of the family {family}", families[family], 3)


def _least(file: str, rule: str, what: str, found: int, least: int) -> Iterator[Finding]:
    if found < least:
        yield Finding(file, "", rule, f"{found} {what}, at least {least} are needed; write more")


def _boundaries(cases: Iterable[CoverageCase], view: CorpusView) -> Iterator[Finding]:
    """Each version and rider is asked about on its first day, on its last, and on the day before its first."""
    asked = {(case.payer_id, code, case.as_of_date) for case in cases for code in case.procedure_codes}
    for name, version in sorted(view.versions.items()):
        codes = {code for clause_id in version.clause_ids for code in view.clauses[clause_id].codes}
        for what, day in _edges(version):
            if not any((version.payer_id, code, day.isoformat()) in asked for code in codes):
                yield Finding("coverage", "", "boundary", f"no case asks about {name} on {day}, {what}; write one")


def _edges(version: VersionRecord) -> Iterator[tuple[str, date]]:
    if version.effective_start is not None:
        yield "its first day", version.effective_start
        yield "the day before its first", version.effective_start - timedelta(days=1)
    if version.effective_end is not None:
        yield "its last day", version.effective_end


def _deciding(cases: Iterable[CoverageCase], view: CorpusView) -> Iterator[Finding]:
    """Each clause that can decide is gold somewhere."""
    gold = {clause_id for case in cases for clause_id in case.gold_clause_ids}
    for clause_id, clause in sorted(view.clauses.items()):
        if clause_id not in gold and _can_decide(clause):
            yield Finding(
                "coverage", "", "deciding_clause", f"{clause_id} is gold in no case; write one that it decides"
            )


def _can_decide(clause: Clause) -> bool:
    criterion = clause.criterion or {}
    if clause.effective_start is None or not clause.codes:
        return False
    duty = "add_duty" in (criterion.get("patch") or {})
    return bool({"covers_if", "excludes_if", "limit", "if", "patch"} & set(criterion)) and not duty
