"""Short ways to state facts, definitions and clauses, and the synthetic corpus as compact data."""

import json
from collections.abc import Mapping, Sequence
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any

from cda.contracts.facts import Evidence, Fact, FactDefinition, FactState, FactType
from cda.contracts.policy_tools import ClauseView
from cda.criteria.compare import typed_value
from cda.criteria.line import LineEvaluation, decide_line

DATA = json.loads((Path(__file__).parent / "synthetic.json").read_text(encoding="utf-8"))


def define(name: str, **data: Any) -> FactDefinition:
    data.setdefault("label", name.replace("_", " "))
    kind = FactType(data.pop("type"))
    for key in ("values", "derive"):
        data[key] = tuple(data.get(key, ()))
    data["dx"] = {value: tuple(patterns) for value, patterns in data.get("dx", {}).items()}
    return FactDefinition(name, kind, **data)


def state(definitions: Mapping[str, FactDefinition], facts: Mapping[str, Any]) -> dict[str, Fact]:
    """Plain values as stated facts; None is unknown, a Fact stays as it is."""
    found = {}
    for name, value in facts.items():
        if isinstance(value, Fact):
            found[name] = value
        elif value is None:
            found[name] = Fact.unknown(name)
        else:
            known = value if not isinstance(value, bool | str | int | float) else typed_value(definitions[name], value)
            found[name] = Fact(name, FactState.KNOWN, known, (Evidence("", source="structured"),))
    return found


def clause(clause_id: str, criterion: Mapping[str, Any] | None, **fields: Any) -> ClauseView:
    """A clause of policy P at payer PAY for code X1, in effect from 2020, unless said otherwise."""
    text = f"The words of {clause_id}."
    base: dict[str, Any] = {
        "section": "Criteria",
        "policy_id": clause_id.split(".", maxsplit=1)[0],
        "policy_title": "A policy",
        "doc_type": "medical_policy_bulletin",
        "source": "policy",
        "payer_id": "PAY",
        "version": "v1",
        "effective_start": date(2020, 1, 1),
        "codes": ("X1",),
    }
    if fields.get("doc_type") == "plan_rider":
        base |= {"source": "rider", "plan_id": "PLAN", "overrides_policy_ids": ("P",)}
    hashed = sha256(text.encode("utf-8")).hexdigest()
    return ClauseView(clause_id=clause_id, text=text, text_sha256=hashed, criterion=criterion, **(base | fields))


def synthetic_clauses() -> list[ClauseView]:
    clauses = []
    for prefix, version in DATA["versions"].items():
        of = dict(version["of"])
        overrides = of.pop("overrides", None)
        if overrides is not None:
            of |= {"source": "rider", "overrides_policy_ids": tuple(overrides)}
        for number, body in version["clauses"].items():
            clauses.append(clause(f"{prefix}.{number}", body["criterion"], codes=tuple(body["codes"]), **of))
    return clauses


def decide(
    clauses: Sequence[ClauseView],
    definitions: Mapping[str, FactDefinition],
    *,
    code: str = "X1",
    as_of: str = "2024-06-01",
    dx: Sequence[str] = (),
    plan: str | None = "PLAN",
    payer: str = "PAY",
    **facts: Any,
) -> LineEvaluation:
    """Decide a line from plain values."""
    return decide_line(
        procedure_code=code,
        clauses=clauses,
        definitions=definitions,
        facts=state(definitions, facts),
        diagnosis_codes=dx,
        as_of=date.fromisoformat(as_of),
        plan_id=plan,
        payer_id=payer,
    )
