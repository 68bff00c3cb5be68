"""The five policy tools as typed functions: the only way the harness reaches the corpus.

In process and over MCP the same answers and the same errors come back; a conformance suite holds both to it.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict

ERROR_CODES = (
    "clause_not_found",
    "policy_not_found",
    "code_not_found",
    "plan_not_found",
    "payer_not_found",
    "invalid_argument",
    "search_unavailable",
)
# What one search takes at most.
MAX_QUERIES = 16
MAX_QUERY_CHARS = 8_000
MAX_K = 25


class View(BaseModel):
    """Base of the tools' answers: immutable, no unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ClauseView(View):
    """One clause, whole and verbatim, as the corpus store holds it.

    `text_sha256` is of the UTF-8 text. `effective_end` None means open-ended. `date_state` UNDATED or AMBIGUOUS clauses
    are in effect on no date. `criterion` None means: searchable and citable, never determining.
    """

    clause_id: str
    section: str
    text: str
    text_sha256: str
    policy_id: str
    policy_title: str
    doc_type: str
    source: Literal["policy", "rider"]
    payer_id: str
    plan_id: str | None = None
    version: str
    effective_start: date | None = None
    effective_end: date | None = None
    date_state: Literal["DATED", "UNDATED", "AMBIGUOUS"] = "DATED"
    implementation_date: date | None = None
    retirement_date: date | None = None
    jurisdiction: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    codes_linkage: Literal["policy", "ours"] = "policy"
    overrides_policy_ids: tuple[str, ...] = ()
    source_ref: str | None = None
    criterion: Mapping[str, Any] | None = None

    def in_effect(self, as_of: date) -> bool:
        """True when the clause is DATED and as_of lies in its window, both ends included."""
        if self.date_state != "DATED" or self.effective_start is None:
            return False
        return self.effective_start <= as_of and (self.effective_end is None or as_of <= self.effective_end)


class SearchLegs(View):
    """1-based rank of a hit in each leg; None where the leg did not return it."""

    dense_rank: int | None = None
    lexical_rank: int | None = None
    code_rank: int | None = None


class SearchHit(View):
    """One ranked, hydrated clause. Scores order hits of one query; they do not compare across queries."""

    clause: ClauseView
    score: float
    legs: SearchLegs


class SearchAnswer(View):
    """The hits of one query, best first. `dropped` counts ids that the store did not know or whose hash differed."""

    query: str
    hits: tuple[SearchHit, ...] = ()
    dropped: int = 0
    notes: tuple[str, ...] = ()


class VersionView(View):
    """One version of a policy or rider, with the clauses it consists of, in order."""

    policy_id: str
    policy_title: str
    doc_type: str
    payer_id: str
    version: str
    effective_start: date | None = None
    effective_end: date | None = None
    date_state: Literal["DATED", "UNDATED", "AMBIGUOUS"] = "DATED"
    clause_ids: tuple[str, ...] = ()


class GoverningPolicy(View):
    """A policy version that names a code: `clause_ids` are its clauses that name it; `version_clause_ids` are all."""

    policy_id: str
    doc_type: str
    payer_id: str
    version: str
    effective_start: date | None = None
    effective_end: date | None = None
    date_state: Literal["DATED", "UNDATED", "AMBIGUOUS"] = "DATED"
    clause_ids: tuple[str, ...] = ()
    version_clause_ids: tuple[str, ...] = ()


class CodeView(View):
    """A code and what governs it. Restricted by payer and by date when they are given (UNDATED versions are always
    listed, with their state, and are in effect on no date). Bare codes: no descriptor is shipped."""

    code: str
    system: Literal["CPT", "HCPCS", "ICD10CM"]
    governed_by: tuple[GoverningPolicy, ...] = ()


class RiderView(View):
    """A rider of a plan and the base policies it overrides."""

    rider_id: str
    title: str
    payer_id: str
    plan_id: str
    overrides_policy_ids: tuple[str, ...] = ()
    effective_start: date | None = None
    effective_end: date | None = None
    clause_ids: tuple[str, ...] = ()


class PolicyTools(Protocol):
    """Read-only access to the policy corpus. Every method raises `PolicyToolError` with a code of ERROR_CODES."""

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
        """One answer a query, in order; k is 1 to 25. A rider is found only for its own plan; with `as_of`, only
        clauses in effect on it, unless `include_superseded`. Codes add a ranked leg, they do not filter."""
        ...

    def get_clause_by_id(self, clause_id: str) -> ClauseView:
        """The clause, read from the store now. Raises clause_not_found."""
        ...

    def list_policy_versions(self, policy_id: str) -> tuple[VersionView, ...]:
        """All versions of a policy or rider, oldest first. Raises policy_not_found."""
        ...

    def lookup_code(self, code: str, *, payer_id: str | None = None, as_of: date | None = None) -> CodeView:
        """A known code and the policy versions that name it. Raises code_not_found."""
        ...

    def get_plan_riders(self, plan_id: str, *, as_of: date | None = None) -> tuple[RiderView, ...]:
        """The riders of a plan, in effect on `as_of` when it is given. Raises plan_not_found."""
        ...


class Plan(View):
    """A plan and the settings that decide how its adverse outcomes are issued."""

    plan_id: str
    payer_id: str
    line_of_business: str = "commercial"
    adverse_to_clinician_review: bool = False


class Directory(Protocol):
    """Who and what exists: the plain look-ups that pre-flight needs before any clause is read."""

    def payers(self) -> frozenset[str]:
        """All payer ids."""
        ...

    def plan(self, plan_id: str) -> Plan | None:
        """The plan, or None."""
        ...

    def code_known(self, code: str) -> bool:
        """True when the procedure code is in the corpus's code list."""
        ...

    def diagnosis_known(self, code: str) -> bool:
        """True when the ICD-10-CM code (dotted form) is in the compiled table."""
        ...
