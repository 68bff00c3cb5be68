"""What differs between two corpora: the change report that a policy author reads before a new store goes live."""

from collections.abc import Mapping
from typing import Any

from corpus.contents import Contents, as_json

KINDS = ("payers", "plans", "codes", "facts", "versions", "clauses")
# A version's own list of clauses says nothing that the added and removed clauses do not say.
_SILENT = frozenset({"clause_ids"})


def diff(old: Contents, new: Contents) -> dict[str, dict[str, Any]]:
    """Return, for each of KINDS, {"added": [ids], "removed": [ids], "changed": [{"id", "fields": {name: [from, to]}}]},
    all sorted by id. A clause's text, dates, codes and criterion are fields like any other."""
    before, after = _by_id(old), _by_id(new)
    return {kind: _differences(before[kind], after[kind]) for kind in KINDS}


def _by_id(contents: Contents) -> dict[str, dict[str, dict[str, Any]]]:
    return {
        "payers": {payer.payer_id: as_json(payer) for payer in contents.payers},
        "plans": {plan.plan_id: as_json(plan) for plan in contents.plans},
        "codes": {code.code: as_json(code) for code in contents.codes},
        "facts": {name: dict(definition) for name, definition in contents.facts.items()},
        "versions": {f"{version.policy_id}.{version.version}": as_json(version) for version in contents.versions},
        "clauses": {clause.clause_id: as_json(clause) for clause in contents.clauses},
    }


def _differences(old: Mapping[str, dict[str, Any]], new: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    changed = [
        {"id": id_, "fields": fields}
        for id_ in sorted(old.keys() & new.keys())
        if (fields := _fields(old[id_], new[id_]))
    ]
    return {"added": sorted(new.keys() - old.keys()), "removed": sorted(old.keys() - new.keys()), "changed": changed}


def _fields(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, list[Any]]:
    names = sorted((old.keys() | new.keys()) - _SILENT)
    return {name: [old.get(name), new.get(name)] for name in names if old.get(name) != new.get(name)}
