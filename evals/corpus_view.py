"""What case authors may know of a corpus: ids, windows, codes, plans, texts and the shapes of facts. No criteria.

It is read from the authored files with nothing judged but their form, so that no rule engine has a say in a label.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

from corpus import BUILTIN, icd10cm
from corpus.build import check
from corpus.errors import CorpusFaults
from corpus.model import Clause, PlanRecord, VersionRecord

OVERLAYS = Path(__file__).parent / "corpora"


@dataclass(frozen=True, slots=True)
class CorpusView:
    """The shipped corpus, or that and one overlay. `versions`: by "POLICY.VERSION", riders as "RIDER.v1"."""

    payers: frozenset[str]
    plans: Mapping[str, PlanRecord]
    codes: frozenset[str]
    versions: Mapping[str, VersionRecord]
    clauses: Mapping[str, Clause]
    facts: Mapping[str, Mapping[str, Any]]

    def governing(self, payer_id: str, plan_id: str | None, code: str, as_of: date) -> frozenset[str]:
        """The clauses in effect on the day that name the code, of this payer and for this plan; of a rider's, those
        whose overridden policy then names the code too."""
        found = [
            clause
            for clause in self.clauses.values()
            if clause.payer_id == payer_id
            and clause.plan_id in (None, plan_id)
            and code in clause.codes
            and clause.in_effect(as_of)
        ]
        policies = {clause.policy_id for clause in found}
        return frozenset(
            clause.clause_id
            for clause in found
            if not clause.overrides_policy_ids or policies & set(clause.overrides_policy_ids)
        )


@lru_cache(maxsize=8)
def shipped(overlay: str = "") -> CorpusView:
    """The view of the shipped corpus, with the named overlay on top of it. Raises KeyError for an unknown overlay."""
    return view_of((BUILTIN, *([str(overlay_folder(overlay))] if overlay else [])))


def overlay_folder(name: str) -> Path:
    """Where an overlay's authored policies lie. Raises KeyError for a name that is none."""
    folder = OVERLAYS / name
    if not name or Path(name).name != name or not folder.is_dir():
        raise KeyError(name)
    return folder


def view_of(sources: Sequence[str | Path]) -> CorpusView:
    """The view of authored files. Raises CorpusFaults when their form is broken."""
    contents, faults = check(sources, criterion_validator=lambda *_: [], fact_validator=lambda *_: [])
    if contents is None:
        raise CorpusFaults(faults)
    return CorpusView(
        payers=frozenset(payer.payer_id for payer in contents.payers),
        plans={plan.plan_id: plan for plan in contents.plans},
        codes=frozenset(code.code for code in contents.codes),
        versions={f"{version.policy_id}.{version.version}": version for version in contents.versions},
        clauses={clause.clause_id: clause for clause in contents.clauses},
        facts=contents.facts,
    )


@lru_cache(maxsize=1)
def _diagnoses() -> Mapping[str, str]:
    return icd10cm.table(icd10cm.code_list())[0]


def is_diagnosis(code: str) -> bool:
    """True for a code of the ICD-10-CM list."""
    parts = icd10cm.split(code)
    return parts is not None and f" {parts[1]} " in _diagnoses().get(parts[0], "")
