"""Fault injection: a determination spoilt between reasoner and verifier, to show that the gate catches it.

Each fault ends in REVIEW for the reason that names it, whatever the reasoner: hallucinate fails `exists`, paraphrase
`quote_verbatim`, stale `in_effect_on_as_of`, unsupported `supports_claim`, lowconf the gate's confidence floor.
"""

from collections.abc import Callable, Mapping, Sequence

from cda.contracts.decision import Citation, Claim, Determination
from cda.contracts.policy_tools import ClauseView, PolicyTools
from cda.errors import UsageError
from cda.harness.quotes import cite
from cda.harness.reasoner import Case

_NO_SUCH_CLAUSE = "CDA-FAULT-0000.v0.C0"
_LOW = 0.35


def corrupt(
    fault: str, answer: Determination, *, case: Case, clauses: Sequence[ClauseView], tools: PolicyTools
) -> tuple[Determination, str | None]:
    """The spoilt determination, and a reason for review when there was nothing to spoil.

    An answer without claims is given one, about the first clause in hand. Raises UsageError for another fault name.
    """
    if fault == "lowconf":
        return answer.model_copy(update={"confidence": min(answer.confidence, _LOW)}), None
    spoil = _SPOILS.get(fault)
    if spoil is None:
        raise UsageError(f"fault {fault!r} is none of {', '.join((*_SPOILS, 'lowconf'))}")
    claim = answer.claims[0] if answer.claims else _about(clauses)
    spoilt = spoil(claim, case, tools)
    if spoilt is None:
        return answer, f"fault: {fault} found nothing to spoil"
    return answer.model_copy(update={"claims": (spoilt, *answer.claims[1:])}), None


def _about(clauses: Sequence[ClauseView]) -> Claim | None:
    if not clauses:
        return None
    return Claim(text="The clause speaks of this service.", citation=cite(clauses[0]), status="unknown")


def _cited(claim: Claim, **changes: object) -> Claim:
    return claim.model_copy(update={"citation": claim.citation.model_copy(update=changes)})


def _hallucinate(claim: Claim | None, case: Case, tools: PolicyTools) -> Claim | None:  # noqa: ARG001  # one signature
    if claim is not None:
        return _cited(claim, clause_id=_NO_SUCH_CLAUSE)
    quote = "The service is covered when it is requested."
    citation = Citation(clause_id=_NO_SUCH_CLAUSE, quote=quote, start=0, end=len(quote), clause_sha256="0" * 64)
    return Claim(text="The service is covered.", citation=citation, status="unknown")


def _paraphrase(claim: Claim | None, case: Case, tools: PolicyTools) -> Claim | None:  # noqa: ARG001
    return claim and _cited(claim, quote=f"In other words, {claim.citation.quote}")


def _unsupported(claim: Claim | None, case: Case, tools: PolicyTools) -> Claim | None:  # noqa: ARG001
    return claim and claim.model_copy(update={"text": f"{claim.text} The clause asks for 9731 earlier trials."})


def _stale(claim: Claim | None, case: Case, tools: PolicyTools) -> Claim | None:
    superseded = _superseded(claim, case, tools)
    if superseded is None:
        return None
    base = claim or _about([superseded])
    return base and base.model_copy(update={"citation": cite(superseded)})


def _superseded(claim: Claim | None, case: Case, tools: PolicyTools) -> ClauseView | None:
    """A clause that is not in effect: of another version of the cited policy, else any that search can find."""
    if claim is not None:
        policy_id = tools.get_clause_by_id(claim.citation.clause_id).policy_id
        for version in tools.list_policy_versions(policy_id):
            for clause_id in version.clause_ids[:1]:
                clause = tools.get_clause_by_id(clause_id)
                if not clause.in_effect(case.as_of):
                    return clause
    answers = tools.search_policies(["superseded coverage criteria"], k=25, include_superseded=True)
    hits = (hit.clause for answer in answers for hit in answer.hits)
    return next((clause for clause in hits if not clause.in_effect(case.as_of)), None)


_SPOILS: Mapping[str, Callable[[Claim | None, Case, PolicyTools], Claim | None]] = {
    "hallucinate": _hallucinate,
    "paraphrase": _paraphrase,
    "stale": _stale,
    "unsupported": _unsupported,
}
