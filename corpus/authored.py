"""What a person may write in an authored file: the shape of policies, riders, payers and code lists.

Only form is judged here (keys, types, ids, dates); what must fit together is judged in `corpus.rules`. Fact definitions
have no shape here, since what they may hold is the business of the fact validator that the builder is given.
"""

import re
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    model_validator,
)

from corpus.model import DateState
from corpus.yaml_lines import Lined

REVIEWED_LINES = frozenset({"medicare", "medicare_advantage", "medicaid", "chip"})

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}\Z", re.ASCII)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\Z", re.ASCII)


def _ident(value: Any) -> Any:
    if not isinstance(value, str | int) or isinstance(value, bool) or not _ID.match(str(value)):
        raise ValueError("an id is letters, digits, '.', '_' and '-', and begins with a letter or digit")
    return str(value)


def _code(value: Any) -> Any:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise ValueError('a code is text, as in "95249"')
    return str(value)


def _day(value: Any) -> Any:
    if value is None or isinstance(value, date):
        return value
    if not isinstance(value, str) or not _DAY.match(value):
        raise ValueError("a date is written YYYY-MM-DD")
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise ValueError(f"{value} is not a day of the calendar") from None


def _words(value: Any) -> Any:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("is empty; write the words")
    return value.strip()


Ident = Annotated[str, BeforeValidator(_ident)]
CodeText = Annotated[str, BeforeValidator(_code)]
Day = Annotated[date | None, BeforeValidator(_day)]
Words = Annotated[str, BeforeValidator(_words)]
Provenance = Literal["posted", "next_version", "retirement", "attested"]
PolicyType = Literal[
    "medical_policy_bulletin",
    "national_coverage_determination",
    "local_coverage_determination",
    "billing_article",
    "provider_faq",
]


class Part(BaseModel):
    """Base of everything authored: unknown keys are faults; `line(key)` is where the key stands in its file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    _lined: Lined | None = PrivateAttr(default=None)

    @model_validator(mode="wrap")
    @classmethod
    def _keep_lines(cls, data: Any, handler: ModelWrapValidatorHandler["Part"]) -> "Part":
        part = handler(data)
        if isinstance(data, Lined):
            part._lined = data
        return part

    def line(self, key: str | None = None) -> int | None:
        """The line of `key`, else of the part itself."""
        if self._lined is None:
            return None
        return self._lined.lines.get(key or "", self._lined.line)


class AuthoredClause(Part):
    """One clause: `id` within its version, or a full `clause_id`; without a criterion it is citable and decides
    nothing."""

    id: Ident | None = None
    clause_id: Ident | None = None
    section: Words
    codes: tuple[CodeText, ...] = ()
    text: Words
    criterion: dict[str, Any] | None = None
    source_ref: str | None = None


class AuthoredVersion(Part):
    """One version of a policy and its clauses. `gap_after` says why no version follows on the day after it ends."""

    version: Ident
    effective_start: Day = None
    effective_end: Day = None
    date_state: DateState = DateState.DATED
    window_provenance: Provenance = "posted"
    implementation_date: Day = None
    retirement_date: Day = None
    source_ref: str | None = None
    gap_after: Words | None = None
    clauses: tuple[AuthoredClause, ...] = Field(min_length=1)


class AuthoredPolicy(Part):
    """A policy with all its versions."""

    policy_id: Ident
    title: Words
    doc_type: PolicyType
    payer_id: Ident
    codes: tuple[CodeText, ...] = ()
    codes_linkage: Literal["policy", "ours"] = "policy"
    jurisdiction: tuple[Words, ...] = ()
    versions: tuple[AuthoredVersion, ...] = Field(min_length=1)


class AuthoredRider(Part):
    """A rider of one plan: patches on, and statements about, the policies it overrides."""

    rider_id: Ident
    title: Words
    payer_id: Ident
    plan_id: Ident
    overrides_policy_ids: tuple[Ident, ...] = Field(min_length=1)
    effective_start: Day = None
    effective_end: Day = None
    date_state: DateState = DateState.DATED
    window_provenance: Provenance = "posted"
    implementation_date: Day = None
    retirement_date: Day = None
    source_ref: str | None = None
    clauses: tuple[AuthoredClause, ...] = Field(min_length=1)


class AuthoredPlan(Part):
    """A plan. Unless it says otherwise, an adverse outcome goes to a clinician in the lines of business that the law
    asks it of (see REVIEWED_LINES)."""

    plan_id: Ident
    line_of_business: Literal["commercial", "marketplace", "medicare", "medicare_advantage", "medicaid", "chip"] = (
        "commercial"
    )
    adverse_to_clinician_review: bool | None = None

    @property
    def reviewed(self) -> bool:
        """Whether a NOT_COVERED needs a clinician."""
        if self.adverse_to_clinician_review is None:
            return self.line_of_business in REVIEWED_LINES
        return self.adverse_to_clinician_review


class AuthoredPayer(Part):
    """A payer and its plans."""

    payer_id: Ident
    name: Words
    plans: tuple[AuthoredPlan, ...] = ()


class AuthoredCodes(Part):
    """The codes that the corpus knows, bare, by system."""

    CPT: tuple[CodeText, ...] = ()
    HCPCS: tuple[CodeText, ...] = ()
    ICD10CM: tuple[CodeText, ...] = ()
