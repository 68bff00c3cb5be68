"""The values a corpus is made of, as its store holds them. Plain frozen records: no text handling, no rules."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from hashlib import sha256
from typing import Any


class DateState(StrEnum):
    """DATED has a usable window; UNDATED has no known start; AMBIGUOUS has dates that contradict one another.
    Only DATED clauses are ever in effect."""

    DATED = "DATED"
    UNDATED = "UNDATED"
    AMBIGUOUS = "AMBIGUOUS"


class DocType(StrEnum):
    """Kinds of document; `authority` orders them."""

    RIDER = "plan_rider"
    BULLETIN = "medical_policy_bulletin"
    NCD = "national_coverage_determination"
    LCD = "local_coverage_determination"
    ARTICLE = "billing_article"
    FAQ = "provider_faq"

    @property
    def authority(self) -> int:
        """Precedence, higher wins: rider, then bulletin and national or local determination, then article and FAQ."""
        return {"plan_rider": 3, "provider_faq": 1, "billing_article": 1}.get(self.value, 2)


@dataclass(frozen=True, slots=True)
class Payer:
    """A payer; ids are case-sensitive upper case."""

    payer_id: str
    name: str


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """A plan of one payer. `adverse_to_clinician_review`: a NOT_COVERED is never issued without a clinician."""

    plan_id: str
    payer_id: str
    line_of_business: str = "commercial"
    adverse_to_clinician_review: bool = False


@dataclass(frozen=True, slots=True)
class Code:
    """A procedure or diagnosis code of the corpus: bare, without a descriptor."""

    code: str
    system: str  # CPT | HCPCS | ICD10CM


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause of one version of a policy or rider, whole.

    codes: the procedure codes this clause itself governs. codes_linkage "ours" marks codes that the source document
    does not assign (a national determination names none). window_provenance says where the dates come from: "posted",
    "next_version", "retirement", or "attested" (the start is the earliest day a dated source vouches for; the rule may
    be older). effective_end None = open-ended; retirement and implementation dates are kept apart
    and never widen or narrow the window by themselves.
    """

    clause_id: str
    section: str
    text: str
    policy_id: str
    policy_title: str
    doc_type: DocType
    source: str  # policy | rider
    payer_id: str
    plan_id: str | None
    version: str
    effective_start: date | None
    effective_end: date | None
    date_state: DateState = DateState.DATED
    window_provenance: str = "posted"
    implementation_date: date | None = None
    retirement_date: date | None = None
    jurisdiction: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    codes_linkage: str = "policy"  # policy | ours
    overrides_policy_ids: tuple[str, ...] = ()
    source_ref: str | None = None
    criterion: Mapping[str, Any] | None = field(default=None)

    @property
    def text_sha256(self) -> str:
        """Hex sha256 of the UTF-8 text."""
        return sha256(self.text.encode("utf-8")).hexdigest()

    def in_effect(self, as_of: date) -> bool:
        """True when the clause is DATED and `as_of` lies in its window, both ends included."""
        if self.date_state is not DateState.DATED or self.effective_start is None:
            return False
        return self.effective_start <= as_of and (self.effective_end is None or as_of <= self.effective_end)


@dataclass(frozen=True, slots=True)
class VersionRecord:
    """One version of a policy, or a rider (version "v1", `plan_id` set), with its clauses in their authored order.

    codes: every code the document names; a code that no clause repeats is named and governed by nothing.
    """

    policy_id: str
    policy_title: str
    doc_type: DocType
    source: str  # policy | rider
    payer_id: str
    plan_id: str | None
    version: str
    effective_start: date | None
    effective_end: date | None
    date_state: DateState = DateState.DATED
    window_provenance: str = "posted"
    implementation_date: date | None = None
    retirement_date: date | None = None
    jurisdiction: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    codes_linkage: str = "policy"  # policy | ours
    overrides_policy_ids: tuple[str, ...] = ()
    source_ref: str | None = None
    clause_ids: tuple[str, ...] = ()

    def in_effect(self, as_of: date) -> bool:
        """True when the version is DATED and `as_of` lies in its window, both ends included."""
        if self.date_state is not DateState.DATED or self.effective_start is None:
            return False
        return self.effective_start <= as_of and (self.effective_end is None or as_of <= self.effective_end)


@dataclass(frozen=True, slots=True)
class CodeUse:
    """A version that names a code, and those of its clauses that govern it (none: the document only mentions it)."""

    version: VersionRecord
    clause_ids: tuple[str, ...]
