"""A corpus of a few clauses in memory, and small stand-ins for the parts that read and reason."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from hashlib import sha256
from typing import Any

from cda.contracts.decision import Claim, Determination, FactEvidence, MissingFact, Outcome, Provenance
from cda.contracts.facts import Evidence, Fact, FactState
from cda.contracts.policy_tools import (
    ClauseView,
    CodeView,
    GoverningPolicy,
    Plan,
    RiderView,
    SearchAnswer,
    SearchHit,
    SearchLegs,
    VersionView,
)
from cda.errors import PolicyToolError
from cda.harness.loop import Parts, RunSettings, run
from cda.harness.quotes import cite
from cda.harness.reasoner import Case, LineReasoned, Reasoned

PROVENANCE = Provenance(
    corpus_digest="d" * 64,
    index_manifest=None,
    backend="memory",
    embedder="none",
    reranker="none",
    reasoner="sticks",
    code_version="test",
)
STICKS = 4


def clause(clause_id: str, text: str, **changes: Any) -> ClauseView:
    policy_id, version, _ = clause_id.rsplit(".", 2)
    values: dict[str, Any] = {
        "clause_id": clause_id,
        "section": "Coverage Criteria",
        "text": text,
        "text_sha256": sha256(text.encode()).hexdigest(),
        "policy_id": policy_id,
        "policy_title": "Sensors",
        "doc_type": "medical_policy_bulletin",
        "source": "policy",
        "payer_id": "PAY",
        "version": version,
        "effective_start": date(2024, 1, 1),
        "codes": ("A9276",),
        "criterion": {"covers_if": {"fact": "sticks", "op": ">=", "value": STICKS}},
    }
    return ClauseView(**(values | changes))


OLD = clause(
    "PAY-1.v1.C1",
    "A sensor is covered when the member tests six or more times a day.",
    effective_start=date(2022, 1, 1),
    effective_end=date(2023, 12, 31),
)
COVERS = clause(
    "PAY-1.v2.C1",
    "A sensor is covered when the member tests four or more times a day. However, this does not apply to a member who "
    "is in hospital.",
)
SCOPE = clause(
    "PAY-1.v2.C0",
    "This policy speaks of sensors for members aged 18 or older.",
    section="Scope",
    criterion={"scope": "sensors", "population": {"fact": "member_age_years", "op": ">=", "value": 18}},
)
SIBLING = clause("PAY-1.v2.C2", "A second sensor is covered when the first one has failed.", codes=("95249",))
RIDER = clause(
    "RID-1.v1.C1",
    "This rider waives the number of daily tests that the policy asks for.",
    source="rider",
    doc_type="plan_rider",
    plan_id="GOLD",
    overrides_policy_ids=("PAY-1",),
    criterion={"patch": {"waive": "sticks", "of": "PAY-1"}},
)
OTHER = clause("OTH-1.v1.C1", "A sensor is covered for every member of this plan.", payer_id="OTH")
ALL = (OLD, SCOPE, COVERS, SIBLING, RIDER, OTHER)


@dataclass
class MemoryTools:
    """PolicyTools over a tuple of clauses. `broken` maps a method's name to what it does instead."""

    clauses: Sequence[ClauseView] = ALL
    broken: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    unreadable: frozenset[str] = frozenset()
    queries: list[str] = field(default_factory=list)

    def search_policies(
        self,
        queries: Sequence[str],
        *,
        payer_id: str | None = None,
        plan_id: str | None = None,
        as_of: date | None = None,
        codes: Sequence[str] = (),
        k: int = 8,
        include_superseded: bool = False,
    ) -> list[SearchAnswer]:
        self._break("search_policies")
        self.queries += queries
        fit = [
            c
            for c in self.clauses
            if payer_id in (None, c.payer_id)
            and c.plan_id in (None, plan_id)
            and c.clause_id not in self.unreadable
            and (include_superseded or as_of is None or c.in_effect(as_of))
        ][: min(k, 2)]
        hits = tuple(SearchHit(clause=c, score=1.0, legs=SearchLegs()) for c in fit)
        return [SearchAnswer(query=query, hits=hits) for query in queries]

    def get_clause_by_id(self, clause_id: str) -> ClauseView:
        self._break("get_clause_by_id")
        for found in self.clauses:
            if found.clause_id == clause_id and clause_id not in self.unreadable:
                return found
        raise PolicyToolError("clause_not_found", "no such clause")

    def list_policy_versions(self, policy_id: str) -> tuple[VersionView, ...]:
        of_policy = [c for c in self.clauses if c.policy_id == policy_id]
        versions = sorted({c.version for c in of_policy})
        return tuple(
            VersionView(
                policy_id=policy_id,
                policy_title="",
                doc_type="",
                payer_id="PAY",
                version=version,
                clause_ids=tuple(c.clause_id for c in of_policy if c.version == version),
            )
            for version in versions
        )

    def lookup_code(self, code: str, *, payer_id: str | None = None, as_of: date | None = None) -> CodeView:
        self._break("lookup_code")
        versions: dict[tuple[str, str], list[ClauseView]] = {}
        for c in self.clauses:
            if c.source == "policy" and payer_id in (None, c.payer_id):
                versions.setdefault((c.policy_id, c.version), []).append(c)
        governed = tuple(
            GoverningPolicy(
                policy_id=policy_id,
                doc_type=group[0].doc_type,
                payer_id=group[0].payer_id,
                version=version,
                date_state=group[0].date_state,
                clause_ids=tuple(c.clause_id for c in group if code in c.codes),
                version_clause_ids=tuple(c.clause_id for c in group),
            )
            for (policy_id, version), group in sorted(versions.items())
            if any(code in c.codes for c in group)
            and (as_of is None or group[0].date_state != "DATED" or group[0].in_effect(as_of))
        )
        return CodeView(code=code, system="HCPCS", governed_by=governed)

    def get_plan_riders(self, plan_id: str, *, as_of: date | None = None) -> tuple[RiderView, ...]:
        return tuple(
            RiderView(
                rider_id=c.policy_id,
                title="",
                payer_id=c.payer_id,
                plan_id=plan_id,
                overrides_policy_ids=c.overrides_policy_ids,
                clause_ids=(c.clause_id,),
            )
            for c in self.clauses
            if c.plan_id == plan_id and (as_of is None or c.in_effect(as_of))
        )

    def _break(self, method: str) -> None:
        if method in self.broken:
            self.broken[method]()


class MemoryDirectory:
    """Two payers, three plans, four codes."""

    def payers(self) -> frozenset[str]:
        return frozenset({"PAY", "OTH"})

    def plan(self, plan_id: str) -> Plan | None:
        plans = {
            "GOLD": Plan(plan_id="GOLD", payer_id="PAY"),
            "BASE": Plan(plan_id="BASE", payer_id="PAY"),
            "SENIOR": Plan(plan_id="SENIOR", payer_id="PAY", adverse_to_clinician_review=True),
            "ELSE": Plan(plan_id="ELSE", payer_id="OTH"),
        }
        return plans.get(plan_id)

    def code_known(self, code: str) -> bool:
        return code in {"A9276", "95249", "31241", "0501T"}

    def diagnosis_known(self, code: str) -> bool:
        return code in {"E10.9", "E11.65", "M05.79"}


class SticksReader:
    """Reads "N times a day" outside the ignored spans; two different numbers are a conflict."""

    def read(
        self, case: Case, clauses: Sequence[ClauseView], *, ignore: Sequence[tuple[int, int]]
    ) -> Mapping[str, Fact]:
        narrative, structured = case.request.narrative, case.request.facts or {}
        if "sticks" in structured:
            value = structured["sticks"]
            return {"sticks": Fact("sticks", FactState.KNOWN, value, (Evidence("", source="structured"),))}
        found = []
        for word in ("times a day",):
            at = narrative.find(word)
            while at >= 0:
                start = narrative.rfind(" ", 0, at - 1) + 1
                if not any(start < right and left < at for left, right in ignore):
                    quote = narrative[start : at + len(word)]
                    found.append((int(quote.split()[0]), Evidence(quote, start, at + len(word))))
                at = narrative.find(word, at + 1)
        values = {value for value, _ in found}
        evidence = tuple(piece for _, piece in found)
        if len(values) > 1:
            return {"sticks": Fact("sticks", FactState.CONFLICT, None, evidence, "two numbers")}
        if not found:
            return {"sticks": Fact.unknown("sticks")}
        return {"sticks": Fact("sticks", FactState.KNOWN, str(found[0][0]), evidence)}


class SticksReasoner:
    """Covers a sensor from four tests a day on; a rider of the plan waives the number."""

    name = "sticks"

    def determine(self, case: Case, clauses: Sequence[ClauseView], facts: Mapping[str, Fact]) -> Reasoned:
        fact = facts["sticks"]
        lines = tuple(self._line(code, clauses, fact) for code in case.codes)
        first = min(lines, key=lambda line: list(reversed(Outcome)).index(line.outcome))
        return Reasoned(self._answer(first, clauses, fact), lines)

    def _line(self, code: str, clauses: Sequence[ClauseView], fact: Fact) -> LineReasoned:
        if not any(code in c.codes and "covers_if" in (c.criterion or {}) for c in clauses):
            return LineReasoned(code, Outcome.INSUFFICIENT_EVIDENCE, refusal="no_governing_policy: none names the code")
        if fact.state is not FactState.KNOWN:
            reasons = ("fact_conflict: sticks",) if fact.state is FactState.CONFLICT else ()
            return LineReasoned(
                code, Outcome.INSUFFICIENT_EVIDENCE, review_reasons=reasons, refusal="missing_fact: sticks"
            )
        met = int(str(fact.value)) >= STICKS
        return LineReasoned(code, Outcome.COVERED if met else Outcome.NOT_COVERED)

    def _answer(self, line: LineReasoned, clauses: Sequence[ClauseView], fact: Fact) -> Determination:
        cited = next((c for c in clauses if line.code in c.codes and "covers_if" in (c.criterion or {})), None)
        if cited is None:
            return Determination(outcome=line.outcome, summary="", confidence=0.95, gap="no policy governs the code")
        settled = line.outcome is not Outcome.INSUFFICIENT_EVIDENCE
        status: Any = {"COVERED": "met", "NOT_COVERED": "not_met"}.get(line.outcome.value, "unknown")
        evidence = tuple(
            FactEvidence(fact="sticks", value=fact.value, quote=piece.quote, start=piece.start, end=piece.end)
            for piece in fact.evidence[:1]
            if settled
        )
        claim = Claim(
            text="Daily tests against four or more.",
            citation=cite(cited),
            criterion="covers_if",
            status=status,
            evidence=evidence,
        )
        return Determination(
            outcome=line.outcome,
            summary="",
            claims=(claim,),
            confidence=0.95,
            gap=None if settled else "sticks is not stated",
            missing_facts=() if settled else (MissingFact(fact="sticks", label="", clause_id=cited.clause_id),),
        )


class SticksJudge:
    """Judges a number of tests, and that a claim about the root of a criterion carries the outcome."""

    def node(self, case: Case, clause: ClauseView, claim: Claim) -> str | None:
        value = next((int(str(piece.value)) for piece in claim.evidence if piece.fact == "sticks"), None)
        given = "unknown" if value is None else "met" if value >= STICKS else "not_met"
        return None if claim.status in (given, "presumed") else f"the node is {given} on this evidence"

    def outcome(
        self, case: Case, clauses: Sequence[ClauseView], claims: Sequence[Claim], outcome: Outcome
    ) -> str | None:
        needed = {Outcome.COVERED: "met", Outcome.NOT_COVERED: "not_met"}.get(outcome)
        carried = needed is None or any((claim.criterion, claim.status) == ("covers_if", needed) for claim in claims)
        return None if carried else f"no claim here carries {outcome.value}"


class BlindJudge(SticksJudge):
    """Finds every node as it is claimed: for the steps that are not about nodes."""

    def node(self, case: Case, clause: ClauseView, claim: Claim) -> str | None:
        return None


def parts(**changes: Any) -> Parts:
    values: dict[str, Any] = {
        "tools": MemoryTools(),
        "directory": MemoryDirectory(),
        "facts": SticksReader(),
        "reasoner": SticksReasoner(),
        "judge": SticksJudge(),
        "provenance": PROVENANCE,
    }
    return Parts(**(values | changes))


def request(**changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "payer_id": "PAY",
        "plan_id": "BASE",
        "procedure_codes": ["A9276"],
        "diagnosis_codes": ["E10.9"],
        "as_of_date": "2024-06-01",
        "narrative": "Type 1 diabetes. She tests 5 times a day.",
        "question": "Is the sensor covered?",
    }
    return values | changes


def answer(raw: Any = None, *, settings: RunSettings | None = None, **changes: Any) -> Any:
    return run(request() if raw is None else raw, parts=parts(**changes), settings=settings, run_id="run-1")
