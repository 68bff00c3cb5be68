"""The policy tools as a model may call them in one run: payer, plan and day are the request's, whatever is asked.

Results are compact: ids, sections and windows; a clause's text comes only when that clause is asked for.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from cda.agents.role import as_json
from cda.contracts.model_client import ToolSpec
from cda.contracts.policy_tools import ClauseView, PolicyTools
from cda.errors import PolicyToolError
from cda.harness.reasoner import Case

MAX_QUERIES, MAX_CHARS = 3, 120
_K = 6


def _spec(name: str, description: str, **properties: Mapping[str, Any]) -> ToolSpec:
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return ToolSpec(name, description, schema)


_TEXT = {"type": "string"}


class CaseTools:
    """The tools of one case. `seen` holds every clause that a result named, by id."""

    specs: Sequence[ToolSpec] = (
        _spec("search_policies", "Clauses for up to three queries.", queries={"type": "array", "items": _TEXT}),
        _spec("get_clause_by_id", "One clause with its text.", clause_id=_TEXT),
        _spec("list_policy_versions", "All versions of a policy.", policy_id=_TEXT),
        _spec("lookup_code", "The policies that name a code.", code=_TEXT),
        _spec("get_plan_riders", "The riders of the plan."),
    )

    def __init__(self, case: Case, tools: PolicyTools) -> None:
        self._case, self._tools = case, tools
        self.seen: dict[str, ClauseView] = {}

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The result as JSON text. Raises PolicyToolError for an unknown tool or arguments that are not its own."""
        spec = next((spec for spec in self.specs if spec.name == name), None)
        if spec is None or set(arguments) != set(spec.schema["properties"]):
            raise PolicyToolError("invalid_argument", "no such tool, or not its arguments")
        match name:
            case "search_policies":
                return as_json(self._search(arguments["queries"]))
            case "get_clause_by_id":
                return as_json(self._clause(_text(arguments["clause_id"])))
            case "list_policy_versions":
                versions = self._tools.list_policy_versions(_text(arguments["policy_id"]))
                return as_json([{"version": v.version, **_window(v)} for v in versions])
            case "lookup_code":
                view = self._tools.lookup_code(
                    _text(arguments["code"]), payer_id=self._case.request.payer_id, as_of=self._case.as_of
                )
                return as_json([{"policy": p.policy_id, "clauses": list(p.clause_ids)} for p in view.governed_by])
        plan = self._case.plan
        riders = self._tools.get_plan_riders(plan.plan_id, as_of=self._case.as_of) if plan else ()
        return as_json([{"rider": rider.rider_id, "clauses": list(rider.clause_ids)} for rider in riders])

    def _search(self, queries: object) -> list[dict[str, Any]]:
        if not isinstance(queries, list) or not 1 <= len(queries) <= MAX_QUERIES:
            raise PolicyToolError("invalid_argument", "queries: one to three")
        answers = self._tools.search_policies(
            [_text(query) for query in queries],
            payer_id=self._case.request.payer_id,
            plan_id=self._case.plan.plan_id if self._case.plan else None,
            as_of=self._case.as_of,
            codes=self._case.codes,
            k=_K,
        )
        fresh: dict[str, ClauseView] = {}
        for answer in answers:
            fresh |= {hit.clause.clause_id: hit.clause for hit in answer.hits if hit.clause.clause_id not in self.seen}
        self.seen |= fresh  # what was told once is not told again
        return [{"id": name, "section": clause.section} for name, clause in fresh.items()]

    def _clause(self, clause_id: str) -> dict[str, Any]:
        clause = self._tools.get_clause_by_id(clause_id)
        self.seen[clause_id] = clause
        return {"id": clause_id, "section": clause.section, "text": clause.text, **_window(clause)}


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_CHARS:
        raise PolicyToolError("invalid_argument", f"a text of at most {MAX_CHARS} characters")
    return value


def _window(dated: Any) -> dict[str, str | None]:
    start, end = dated.effective_start, dated.effective_end
    return {"from": start.isoformat() if start else None, "to": end.isoformat() if end else None}
