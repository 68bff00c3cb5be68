"""The five policy tools in process: typed functions over the corpus store and a search, no protocol in between.

Every error text is made of our own words: what was asked for is not repeated in it.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from backends.errors import BackendError
from cda.contracts.codes import diagnosis_form, is_hcpcs_shaped, procedure_form
from cda.contracts.policy_tools import (
    ClauseView,
    CodeView,
    GoverningPolicy,
    Plan,
    RiderView,
    SearchAnswer,
    VersionView,
)
from cda.errors import PolicyToolError
from cda.retrieval.documents import view_of
from cda.serving.arguments import Arguments, Refused
from cda.systems.coverage.loading_search import ClauseSearch
from cda.systems.coverage.tool_arguments import (
    GetClauseByIdArguments,
    GetPlanRidersArguments,
    ListPolicyVersionsArguments,
    LookupCodeArguments,
    SearchPoliciesArguments,
)
from corpus.errors import CorpusError
from corpus.model import CodeUse, DateState, VersionRecord
from corpus.store import CorpusStore

ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)
P = ParamSpec("P")
R = TypeVar("R")


def _named_failures(method: Callable[P, R]) -> Callable[P, R]:
    """A store or backend that fails refuses under a name that the loop knows, as it does over a protocol."""

    @wraps(method)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except (BackendError, CorpusError) as error:
            raise PolicyToolError("search_unavailable", f"the corpus cannot be read: {error}") from error

    return guarded


class InProcessPolicyTools:
    """`PolicyTools` over an open store and a search. Reads only; safe for several threads at once.

    Arguments are checked by the same models that the server publishes, so both refuse in the same words.
    """

    def __init__(self, store: CorpusStore, search: ClauseSearch) -> None:
        self._store = store
        self._search = search

    @_named_failures
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
        """One answer a query, in order; a plan implies its payer. Raises invalid_argument, payer_not_found,
        plan_not_found, search_unavailable."""
        asked = _checked(
            SearchPoliciesArguments,
            {
                "queries": _listed(queries),
                "payer_id": payer_id,
                "plan_id": plan_id,
                "as_of_date": as_of,
                "codes": _listed(codes),
                "k": k,
                "include_superseded": include_superseded,
            },
        )
        payer = self._payer_of(asked.payer_id, asked.plan_id)
        return self._search.search(
            asked.texts,
            payer_id=payer,
            plan_id=asked.plan_id,
            as_of=asked.as_of_date,
            codes=tuple(code.strip().upper() for code in asked.codes),
            k=asked.k,
            include_superseded=asked.include_superseded,
        )

    @_named_failures
    def get_clause_by_id(self, clause_id: str) -> ClauseView:
        """The clause, read from the store now. Raises clause_not_found, invalid_argument."""
        asked = _checked(GetClauseByIdArguments, {"clause_id": clause_id})
        clause = self._store.clause(asked.clause_id)
        if clause is None:
            raise PolicyToolError("clause_not_found", "no clause has this id; search_policies gives the ids there are")
        return view_of(clause)

    @_named_failures
    def list_policy_versions(self, policy_id: str) -> tuple[VersionView, ...]:
        """All versions of a policy or rider, oldest first, undated ones last. Raises policy_not_found,
        invalid_argument."""
        asked = _checked(ListPolicyVersionsArguments, {"policy_id": policy_id})
        versions = self._store.versions(asked.policy_id)
        if not versions:
            raise PolicyToolError("policy_not_found", "no policy or rider has this id; lookup_code names policies")
        return tuple(map(_version_view, versions))

    @_named_failures
    def lookup_code(self, code: str, *, payer_id: str | None = None, as_of: date | None = None) -> CodeView:
        """A known code, in the corpus's own form, and the versions that name it, by policy and age. A diagnosis
        code is governed by none. Raises code_not_found, payer_not_found, invalid_argument."""
        asked = _checked(LookupCodeArguments, {"code": code, "payer_id": payer_id, "as_of_date": as_of})
        self._payer_of(asked.payer_id, None)
        shaped = procedure_form(asked.code)
        procedure = self._store.code(shaped[0]) if shaped else None
        if procedure is not None and procedure.system in ("CPT", "HCPCS"):
            uses = (
                use
                for use in self._store.code_in_policies(procedure.code)
                if asked.payer_id in (None, use.version.payer_id) and _listed_on(use.version, asked.as_of_date)
            )
            governed_by = tuple(map(_governing, uses))
            return CodeView(code=procedure.code, system=procedure.system, governed_by=governed_by)  # type: ignore[arg-type]
        diagnosis = None if is_hcpcs_shaped(asked.code) else diagnosis_form(asked.code)
        if diagnosis is not None and self._store.icd10_valid(diagnosis):
            return CodeView(code=diagnosis, system="ICD10CM")
        raise PolicyToolError(
            "code_not_found", "neither a procedure code of this corpus nor a valid ICD-10-CM code; write codes in full"
        )

    @_named_failures
    def get_plan_riders(self, plan_id: str, *, as_of: date | None = None) -> tuple[RiderView, ...]:
        """The riders of a plan by id, in effect on `as_of` when it is given. Raises plan_not_found,
        invalid_argument."""
        asked = _checked(GetPlanRidersArguments, {"plan_id": plan_id, "as_of_date": as_of})
        self._payer_of(None, asked.plan_id)
        return tuple(
            _rider_view(rider, asked.plan_id)
            for rider in self._store.riders(asked.plan_id)
            if asked.as_of_date is None or rider.in_effect(asked.as_of_date)
        )

    def _payer_of(self, payer_id: str | None, plan_id: str | None) -> str | None:
        """The payer to search: as given, or the plan's own. Raises payer_not_found, plan_not_found, and
        invalid_argument for a plan of another payer."""
        if payer_id is not None and payer_id not in self._store.payers():
            raise PolicyToolError("payer_not_found", f"known payers: {', '.join(sorted(self._store.payers()))}")
        if plan_id is None:
            return payer_id
        plan = self._store.plan(plan_id)
        if plan is None:
            raise PolicyToolError("plan_not_found", "no plan of this corpus has this id; ids are case-sensitive")
        if payer_id not in (None, plan.payer_id):
            raise PolicyToolError("invalid_argument", "plan_id: is not a plan of payer_id")
        return plan.payer_id


class StoreDirectory:
    """`Directory` over an open store. Ids and codes are compared as written: bring codes to their form first."""

    def __init__(self, store: CorpusStore) -> None:
        self._store = store

    def payers(self) -> frozenset[str]:
        """All payer ids."""
        return self._store.payers()

    def plan(self, plan_id: str) -> Plan | None:
        """The plan, or None."""
        plan = self._store.plan(plan_id)
        if plan is None:
            return None
        return Plan(
            plan_id=plan.plan_id,
            payer_id=plan.payer_id,
            line_of_business=plan.line_of_business,
            adverse_to_clinician_review=plan.adverse_to_clinician_review,
        )

    def code_known(self, code: str) -> bool:
        """True when the procedure code is in the corpus's code list."""
        known = self._store.code(code)
        return known is not None and known.system in ("CPT", "HCPCS")

    def diagnosis_known(self, code: str) -> bool:
        """True when the dotted ICD-10-CM code is in the compiled table."""
        return self._store.icd10_valid(code)


def _checked(model: type[ArgumentsT], values: Mapping[str, Any]) -> ArgumentsT:
    try:
        return model.read(values)
    except Refused as refused:
        raise PolicyToolError("invalid_argument", str(refused)) from None


def _listed(values: Sequence[str]) -> object:
    """A list of the values; a bare string stays one, so that it is refused instead of read letter by letter."""
    return values if isinstance(values, str) else list(values)


def _listed_on(version: VersionRecord, as_of: date | None) -> bool:
    return as_of is None or version.date_state is not DateState.DATED or version.in_effect(as_of)


def _window(version: VersionRecord) -> dict[str, Any]:
    return {"effective_start": version.effective_start, "effective_end": version.effective_end}


def _identity(version: VersionRecord) -> dict[str, Any]:
    return {
        "policy_id": version.policy_id,
        "doc_type": version.doc_type.value,
        "payer_id": version.payer_id,
        "version": version.version,
        "date_state": version.date_state.value,
    } | _window(version)


def _version_view(version: VersionRecord) -> VersionView:
    return VersionView(policy_title=version.policy_title, clause_ids=version.clause_ids, **_identity(version))


def _governing(use: CodeUse) -> GoverningPolicy:
    return GoverningPolicy(
        clause_ids=use.clause_ids, version_clause_ids=use.version.clause_ids, **_identity(use.version)
    )


def _rider_view(rider: VersionRecord, plan_id: str) -> RiderView:
    return RiderView(
        rider_id=rider.policy_id,
        title=rider.policy_title,
        payer_id=rider.payer_id,
        plan_id=plan_id,
        overrides_policy_ids=rider.overrides_policy_ids,
        clause_ids=rider.clause_ids,
        **_window(rider),
    )
