"""The five policy tools as the server lists them: one row a tool, in this order."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from pydantic import BaseModel

from cda.contracts.policy_tools import ClauseView, CodeView, PolicyTools
from cda.serving.arguments import Arguments
from cda.serving.tool_server import ServedTool
from cda.systems.coverage.tool_arguments import (
    GetClauseByIdArguments,
    GetPlanRidersArguments,
    ListPolicyVersionsArguments,
    LookupCodeArguments,
    PlanRiders,
    PolicyVersions,
    SearchAnswers,
    SearchPoliciesArguments,
)


class Row(NamedTuple):
    """What a tool is called and says of itself, what it takes and answers, how it runs, and its rows for the ledger."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    answer: type[BaseModel]
    run: Callable[[PolicyTools, Any], BaseModel]
    rows: Callable[[Any], int] = lambda _answer: 1


def served(tools: PolicyTools) -> tuple[ServedTool[Any], ...]:
    """The table over whatever implements the tools."""
    return tuple(ServedTool(*row._replace(run=partial(row.run, tools))) for row in TABLE)  # type: ignore[arg-type]


def _search(tools: PolicyTools, asked: SearchPoliciesArguments) -> SearchAnswers:
    answers = tools.search_policies(
        asked.texts,
        payer_id=asked.payer_id,
        plan_id=asked.plan_id,
        as_of=asked.as_of_date,
        codes=asked.codes,
        k=asked.k,
        include_superseded=asked.include_superseded,
    )
    return SearchAnswers(answers=answers)


TABLE = (
    Row(
        "search_policies",
        "Search policy clauses",
        "Find clauses by meaning, words and codes, for one query or several at once. Each hit is a whole clause "
        "with its window and its rank in each leg; scores compare only inside one answer. Filters hold inside "
        "the search. A rider is found only when its plan_id is given.",
        SearchPoliciesArguments,
        SearchAnswers,
        _search,
        lambda found: sum(len(answer.hits) for answer in found.answers),
    ),
    Row(
        "get_clause_by_id",
        "Read one clause",
        "The whole text of a clause, its sha256, window, codes and criterion, read from the store now.",
        GetClauseByIdArguments,
        ClauseView,
        lambda tools, asked: tools.get_clause_by_id(asked.clause_id),
    ),
    Row(
        "list_policy_versions",
        "List the versions of a policy",
        "All versions of a policy or rider, oldest first, each with its window and its clause ids in order.",
        ListPolicyVersionsArguments,
        PolicyVersions,
        lambda tools, asked: PolicyVersions(versions=tools.list_policy_versions(asked.policy_id)),
        lambda listed: len(listed.versions),
    ),
    Row(
        "lookup_code",
        "Look up a code",
        "Whether a procedure or diagnosis code is known, and which policy versions name it, with the clauses that "
        "govern it. Bare codes, no descriptors. A diagnosis code is governed by no policy by itself.",
        LookupCodeArguments,
        CodeView,
        lambda tools, asked: tools.lookup_code(asked.code, payer_id=asked.payer_id, as_of=asked.as_of_date),
    ),
    Row(
        "get_plan_riders",
        "List the riders of a plan",
        "The riders of a plan, the policies each overrides, its window and its clause ids.",
        GetPlanRidersArguments,
        PlanRiders,
        lambda tools, asked: PlanRiders(riders=tools.get_plan_riders(asked.plan_id, as_of=asked.as_of_date)),
        lambda listed: len(listed.riders),
    ),
)
