"""What the five policy tools take and answer: one set of rules for the typed functions and for the server.

The functions check their arguments with these models and the server publishes their schemas, so that both refuse the
same things in the same words. Answers that are lists travel inside an object, as the protocol asks.
"""

from datetime import date
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic.json_schema import SkipJsonSchema

from cda.contracts.dates import parse_day
from cda.contracts.policy_tools import MAX_K, MAX_QUERIES, MAX_QUERY_CHARS, RiderView, SearchAnswer, VersionView
from cda.serving.arguments import Arguments

MAX_ID_CHARS = 200
MAX_CODES = 64
MAX_CODE_CHARS = 40


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


def _day(value: Any) -> Any:
    return parse_day(value) if isinstance(value, str) else _only_a_date(value)


def _only_a_date(value: Any) -> date:
    if type(value) is not date:
        raise ValueError("must be a string; a date is written YYYY-MM-DD")
    return value


Query = Annotated[str, Field(max_length=MAX_QUERY_CHARS), AfterValidator(_not_blank)]
Id = Annotated[str, Field(max_length=MAX_ID_CHARS), AfterValidator(_not_blank)]
ProcedureOrDiagnosis = Annotated[str, Field(max_length=MAX_CODE_CHARS), AfterValidator(_not_blank)]
Day = Annotated[date, BeforeValidator(_day), WithJsonSchema({"type": "string", "format": "date"})]
Absent = SkipJsonSchema[None]  # an optional argument may be left out; its schema has no null branch


class SearchPoliciesArguments(Arguments):
    """One query or several; exactly one of `query` and `queries`."""

    query: Annotated[Query | Absent, Field(description="One question or phrase. Give this or `queries`.")] = None
    queries: Annotated[
        Annotated[list[Query], Field(min_length=1, max_length=MAX_QUERIES)] | Absent,
        Field(description="Several questions at once; one ranked answer each, in this order."),
    ] = None
    payer_id: Annotated[Id | Absent, Field(description="Only this payer's clauses.")] = None
    plan_id: Annotated[
        Id | Absent, Field(description="Adds this plan's riders; without it no rider is found. Implies its payer.")
    ] = None
    as_of_date: Annotated[Day | Absent, Field(description="Only clauses in effect on this day, YYYY-MM-DD.")] = None
    codes: Annotated[
        list[ProcedureOrDiagnosis],
        Field(max_length=MAX_CODES, description="Procedure codes; clauses that name them rank higher."),
    ] = Field(default_factory=list)
    k: Annotated[int, Field(ge=1, le=MAX_K, description="Hits for each query.")] = 8
    include_superseded: Annotated[
        bool, Field(description="With as_of_date: also clauses that are not in effect on it.")
    ] = False

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.query is None) == (self.queries is None):
            raise ValueError("give exactly one of query and queries")
        return self

    @property
    def texts(self) -> list[str]:
        """The queries, in order."""
        return [self.query] if self.query is not None else list(self.queries or ())


class GetClauseByIdArguments(Arguments):
    """The id as search and version lists give it."""

    clause_id: Annotated[Id, Field(description="As search_policies or list_policy_versions gives it.")]


class ListPolicyVersionsArguments(Arguments):
    """The id of a policy or of a rider."""

    policy_id: Annotated[Id, Field(description="Id of a policy or of a rider.")]


class LookupCodeArguments(Arguments):
    """A code, and optionally a payer and a date that restrict what governs it."""

    code: Annotated[
        ProcedureOrDiagnosis,
        Field(description="CPT or HCPCS (a modifier such as -59 is ignored) or ICD-10-CM; case does not matter."),
    ]
    payer_id: Annotated[Id | Absent, Field(description="Only this payer's policies.")] = None
    as_of_date: Annotated[
        Day | Absent,
        Field(description="Only versions in effect on this day, YYYY-MM-DD; undated ones stay listed as such."),
    ] = None


class GetPlanRidersArguments(Arguments):
    """A plan, and optionally the day on which its riders must be in effect."""

    plan_id: Annotated[Id, Field(description="Id of the plan.")]
    as_of_date: Annotated[Day | Absent, Field(description="Only riders in effect on this day, YYYY-MM-DD.")] = None


class _Listed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SearchAnswers(_Listed):
    """One answer for each query, in their order."""

    answers: list[SearchAnswer]


class PolicyVersions(_Listed):
    """All versions, oldest first."""

    versions: tuple[VersionView, ...]


class PlanRiders(_Listed):
    """The riders of a plan."""

    riders: tuple[RiderView, ...]
