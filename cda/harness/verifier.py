"""The verifier: numbered steps for every claim, on a cold re-fetch, refusals included.

1 exists; 2 quote verbatim; 3 quote whole; 4 in effect on the as-of date; 5 governs this code, payer, plan and purpose;
6 supports the claim. It sees the request, the answer and what the corpus says now, and nothing of how the answer came
about. It repairs nothing: a claim that fails is reported, never dropped. See docs/decisions/004-verification.md.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cda.contracts.decision import Check, Claim, Determination, FactEvidence, Outcome, Verification
from cda.contracts.facts import Fact, FactState, Interval, Value
from cda.contracts.policy_tools import ClauseView, PolicyTools
from cda.errors import PolicyToolError
from cda.harness.quotes import why_not_verbatim, why_not_whole
from cda.harness.reasoner import Case, Judge
from cda.harness.wording import why_not_said

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Reading:
    """What the request itself says: its facts as the harness read them, and the spans that are no evidence."""

    facts: Mapping[str, Fact] = field(default_factory=dict)
    fences: Sequence[Span] = ()


def verify(
    case: Case, answer: Determination, *, tools: PolicyTools, judge: Judge, reading: Reading | None = None
) -> Verification:
    """Check every claim of `answer`. Raises what the tools raise, except that an unknown clause is a failed step."""
    cold = _ColdVerifier(case, answer, tools, judge, reading or Reading())
    checks = [cold.check(index, claim) for index, claim in enumerate(answer.claims)]
    why = cold.why_not_carried() if checks else None
    if why is not None:
        # Shown at the first claim, which is the one that was to decide.
        first = checks[0]
        checks[0] = first.model_copy(
            update={"supports_claim": False, "reason": first.reason or f"supports_claim: {why}"}
        )
    passed = sum(check.passed for check in checks)
    return Verification(checks=tuple(checks), faithfulness=passed / len(checks) if checks else None)


class _ColdVerifier:
    def __init__(self, case: Case, answer: Determination, tools: PolicyTools, judge: Judge, reading: Reading) -> None:
        self._case, self._answer, self._tools, self._judge, self._reading = case, answer, tools, judge, reading
        self._clauses: dict[str, ClauseView | None] = {}
        self._codes: dict[str, tuple[str, ...]] = {}

    def check(self, index: int, claim: Claim) -> Check:
        """All steps of one claim; those after a missing clause fail with it."""
        clause = self._fetch(claim.citation.clause_id)
        reasons: dict[str, str | None]
        if clause is None:
            reasons = dict.fromkeys(CHECKS, "no clause has this id")
        else:
            reasons = {step: why_not(self, claim, clause) for step, why_not in CHECKS.items()}
        failed = next((step for step in CHECKS if reasons[step]), None)
        return Check(
            claim_index=index,
            clause_id=claim.citation.clause_id,
            reason=f"{failed}: {reasons[failed]}" if failed else "",
            **{step: reasons.get(step) is None for step in STEPS},
        )

    def why_not_carried(self) -> str | None:
        """Why the claims together do not give the answer's outcome, or None."""
        for claim in self._answer.claims:
            self._fetch(claim.citation.clause_id)
        clauses = [clause for clause in self._clauses.values() if clause is not None]
        return self._judge.outcome(self._case, clauses, self._answer.claims, self._answer.outcome)

    def _fetch(self, clause_id: str) -> ClauseView | None:
        if clause_id not in self._clauses:
            try:
                self._clauses[clause_id] = self._tools.get_clause_by_id(clause_id)
            except PolicyToolError as error:
                if error.code not in ("clause_not_found", "invalid_argument"):
                    raise
                self._clauses[clause_id] = None
        found = self._clauses[clause_id]
        return found if found is not None and found.clause_id == clause_id else None

    def why_not_in_effect(self, clause: ClauseView) -> str | None:
        """Why the clause is not in effect on the day, or None."""
        if clause.in_effect(self._case.as_of):
            return None
        if clause.date_state != "DATED":
            return f"the clause is {clause.date_state}, so it is in effect on no date"
        window = f"{clause.effective_start} to {clause.effective_end or 'open'}"
        return f"the clause is in effect {window}, not on {self._case.as_of}"

    def why_not_governing(self, clause: ClauseView) -> str | None:
        """Why the clause does not govern this code, payer and plan, or None."""
        request = self._case.request
        if clause.payer_id != request.payer_id:
            return "the clause is another payer's"
        plan_id = self._case.plan.plan_id if self._case.plan else None
        if clause.plan_id is not None and clause.plan_id != plan_id:
            return "the clause is another plan's"
        codes = [code for code in self._case.codes if code in clause.codes]
        if not codes:
            return "the clause names none of the requested codes"
        if clause.source == "rider" and not any(self._overridden_governs(clause, code) for code in codes):
            return "no policy that the rider overrides governs a requested code on that date"
        return None

    def _overridden_governs(self, rider: ClauseView, code: str) -> bool:
        if not rider.overrides_policy_ids:
            return True
        view = self._tools.lookup_code(code, payer_id=self._case.request.payer_id, as_of=self._case.as_of)
        return any(policy.policy_id in rider.overrides_policy_ids for policy in view.governed_by)

    def why_not_supported(self, claim: Claim, clause: ClauseView) -> str | None:
        """The first reason of SUPPORTS, or None."""
        return next(filter(None, (why_not(self, claim, clause) for why_not in SUPPORTS.values())), None)

    def why_wrong_kind(self, claim: Claim, clause: ClauseView) -> str | None:
        """The criterion that is claimed is one that the clause has, and one that may speak for this outcome."""
        refused = self._answer.outcome is Outcome.INSUFFICIENT_EVIDENCE
        if claim.criterion is None:
            settled = claim.status in ("met", "not_met")
            return "the claim is settled but names no criterion" if settled else None
        if clause.criterion is None:
            return "the clause has no authored criterion, so nothing can be met under it"
        root = claim.criterion.split(".", 1)[0]
        if "scope" in clause.criterion and not (refused and root == "population" and claim.status == "not_met"):
            return "a scope clause supports nothing but a refusal of a member outside its population"
        if root not in clause.criterion:
            return "the clause's criterion has no such part"
        return None

    def why_not_evidence(self, claim: Claim) -> str | None:
        """The first piece of evidence that is not the request's."""
        return next(filter(None, map(self._why_not_shown, claim.evidence)), None)

    def _why_not_shown(self, evidence: FactEvidence) -> str | None:
        """Evidence is in the request: its words at their place, outside every fence, and its value as it was read."""
        name, narrative = evidence.fact, self._case.request.narrative
        read = self._reading.facts.get(name)
        if read is not None and read.state is FactState.KNOWN and not _same(read.value, evidence.value):
            return f"the evidence for {name} has another value than the request gives"
        if evidence.start is None or evidence.end is None:
            return f"the evidence for {name} has words but no place" if evidence.quote else None
        start, end = evidence.start, evidence.end
        if not (0 <= start < end <= len(narrative)) or narrative[start:end] != evidence.quote:
            return f"the evidence for {name} is not the narrative's words at its offsets"
        if any(start < right and left < end for left, right in self._reading.fences):
            return f"the evidence for {name} lies in words that address the reader"
        return None

    def why_ungrounded(self, claim: Claim) -> str | None:
        """A settled claim with evidence has some that the request itself holds; derived values only ride along."""
        if claim.status not in ("met", "not_met") or not claim.evidence:
            return None
        structured = self._case.request.facts or {}
        grounded = any(piece.start is not None or piece.fact in structured for piece in claim.evidence)
        return None if grounded else "none of the claim's evidence is in the request"

    def why_not_in_words(self, claim: Claim, clause: ClauseView) -> str | None:
        """Why the claim's words and numbers are not those of the quote and the request, or None."""
        return why_not_said(claim, claim.citation.quote, clause, self._furniture_of(clause))

    def why_not_by_criterion(self, claim: Claim, clause: ClauseView) -> str | None:
        """Why the criterion that the claim names does not have the status it claims, or None."""
        return self._judge.node(self._case, clause, claim) if claim.criterion else None

    def _furniture_of(self, clause: ClauseView) -> tuple[str, ...]:
        """The codes, ids and dates that a claim on this clause may name, whatever it says of them."""
        if (known := self._codes.get(clause.clause_id)) is None:
            request = self._case.request
            plan = (self._case.plan.plan_id,) if self._case.plan else ()
            named = (*self._case.codes, *request.diagnosis_codes, self._case.as_of.isoformat(), request.payer_id, *plan)
            known = self._codes[clause.clause_id] = (*named, *_patterns(clause.criterion))
        return known


def _why_not_whole(claim: Claim, clause: ClauseView) -> str | None:
    if why_not_verbatim(claim.citation, clause):
        return "a quote that is not the clause's cannot be whole"
    return why_not_whole(claim.citation, clause)


WhyNot = Callable[[_ColdVerifier, Claim, ClauseView], str | None]

# Every step by name, in order; the first that gives a reason is the one that a failed check names.
CHECKS: dict[str, WhyNot] = {
    "exists": lambda _cold, _claim, _clause: None,  # a clause that was not found fails them all
    "quote_verbatim": lambda _cold, claim, clause: why_not_verbatim(claim.citation, clause),
    "quote_whole": lambda _cold, claim, clause: _why_not_whole(claim, clause),
    "in_effect_on_as_of": lambda cold, _claim, clause: cold.why_not_in_effect(clause),
    "governs_request": lambda cold, _claim, clause: cold.why_not_governing(clause),
    "supports_claim": lambda cold, claim, clause: cold.why_not_supported(claim, clause),
}
STEPS = tuple(CHECKS)
# What supporting a claim takes, in order. That all claims together carry the outcome is asked of them as a whole.
SUPPORTS: dict[str, WhyNot] = {
    "verbatim": lambda _cold, claim, clause: why_not_verbatim(claim.citation, clause),
    "kind": lambda cold, claim, clause: cold.why_wrong_kind(claim, clause),
    "evidence": lambda cold, claim, _clause: cold.why_not_evidence(claim),
    "grounds": lambda cold, claim, _clause: cold.why_ungrounded(claim),
    "words": lambda cold, claim, clause: cold.why_not_in_words(claim, clause),
    "criterion": lambda cold, claim, clause: cold.why_not_by_criterion(claim, clause),
}


def _patterns(criterion: object) -> Iterator[str]:
    """The diagnosis code patterns of a criterion as authored: codes, whose digits are no numbers of a claim."""
    if isinstance(criterion, Mapping):
        for key, value in criterion.items():
            yield from map(str, value) if key == "diagnosis" else _patterns(value)
    elif isinstance(criterion, list | tuple):
        for value in criterion:
            yield from _patterns(value)


def _same(read: Value | None, shown: object) -> bool:
    """True when a value as read is the one that evidence shows, whose JSON form an interval or a date has changed."""
    if isinstance(read, Interval) and isinstance(shown, int | float) and not isinstance(shown, bool):
        return read == Interval.exactly(shown)
    if isinstance(read, Interval) and isinstance(shown, Mapping):
        return (shown.get("lo", read.lo), shown.get("hi", read.hi)) == (read.lo, read.hi)
    return read == shown or (not isinstance(read, bool) and str(read) == str(shown))
