"""A corpus of a few invented records, for tests of what stands on the store; and a search that needs no index.

`write_store(CONTENTS, path)` makes the store.
"""

from collections.abc import Sequence
from datetime import date

from cda.contracts.policy_tools import SearchAnswer, SearchHit, SearchLegs
from cda.retrieval.documents import view_of
from corpus.contents import Contents
from corpus.model import Clause, Code, DateState, DocType, Payer, PlanRecord, VersionRecord

PLANS = (
    PlanRecord("ACM-GOLD", "ACM"),
    PlanRecord("ACM-BASE", "ACM"),
    PlanRecord("ZED-CARE", "ZED", "medicare", adverse_to_clinician_review=True),
)
CODES = tuple(
    Code(code, system)
    for code, system in (
        ("95249", "CPT"),
        ("95251", "CPT"),
        ("A9276", "HCPCS"),
        ("E0607", "HCPCS"),
        ("E10.65", "ICD10CM"),
    )
)


def _version(policy_id: str, version: str, start: date | None, end: date | None, **more: object) -> VersionRecord:
    values: dict[str, object] = {
        "policy_id": policy_id,
        "policy_title": f"Title of {policy_id} – Zoë 王 §",
        "doc_type": DocType.BULLETIN,
        "source": "policy",
        "payer_id": policy_id.split("-", maxsplit=1)[0],
        "plan_id": None,
        "version": version,
        "effective_start": start,
        "effective_end": end,
        "codes": ("95249", "A9276"),
        "clause_ids": (f"{policy_id}.{version}.C1", f"{policy_id}.{version}.C2"),
    }
    return VersionRecord(**(values | more))  # type: ignore[arg-type]


VERSIONS = (
    _version("ACM-MP-1", "v1", date(2023, 1, 1), date(2024, 6, 30)),
    _version("ACM-MP-1", "v2", date(2024, 7, 1), None, codes=("95249", "95251", "A9276")),
    _version("ACM-MP-9", "v1", None, None, date_state=DateState.UNDATED),
    _version("ZED-MP-7", "v1", date(2020, 1, 21), None, doc_type=DocType.NCD, codes_linkage="ours"),
    _version(
        "ACM-RID-STEP",
        "v1",
        date(2024, 1, 1),
        date(2024, 12, 31),
        doc_type=DocType.RIDER,
        source="rider",
        plan_id="ACM-GOLD",
        overrides_policy_ids=("ACM-MP-1",),
        codes=("A9276",),
        clause_ids=("ACM-RID-STEP.C1",),
    ),
)


def _clauses(version: VersionRecord) -> list[Clause]:
    return [
        Clause(
            clause_id=clause_id,
            section="Criteria",
            text=f"Clause {clause_id}: covered when insulin is used — Zoë 王, see § 3, unless waived.",
            policy_id=version.policy_id,
            policy_title=version.policy_title,
            doc_type=version.doc_type,
            source=version.source,
            payer_id=version.payer_id,
            plan_id=version.plan_id,
            version=version.version,
            effective_start=version.effective_start,
            effective_end=version.effective_end,
            date_state=version.date_state,
            codes=version.codes if number == 0 else (),
            codes_linkage=version.codes_linkage,
            overrides_policy_ids=version.overrides_policy_ids,
            source_ref="Bulletin 1, page 2" if number else None,
            criterion={"covers_if": {"all": [{"fact": "insulin_use", "op": "=", "value": True}]}}
            if number == 0
            else None,
        )
        for number, clause_id in enumerate(version.clause_ids)
    ]


CLAUSES = {clause.clause_id: clause for version in VERSIONS for clause in _clauses(version)}


CONTENTS = Contents(
    payers=(Payer("ACM", "Acme Health"), Payer("ZED", "Zed Medicare")),
    plans=PLANS,
    codes=CODES,
    versions=VERSIONS,
    clauses=tuple(CLAUSES.values()),
    facts={},
    corpora={},
)


class WordSearch:
    """Ranks clauses by the number of words they share with the query, ties by id, under the same filter as a real
    search."""

    def search(
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
        allowed = [
            clause
            for clause in CLAUSES.values()
            if payer_id in (None, clause.payer_id)
            and clause.plan_id in (None, plan_id)
            and (as_of is None or include_superseded or clause.in_effect(as_of))
        ]
        return [SearchAnswer(query=query, hits=tuple(_hits(query, allowed, codes, k))) for query in queries]


def _hits(query: str, allowed: list[Clause], codes: Sequence[str], k: int) -> list[SearchHit]:
    words = set(query.lower().split())

    def score(clause: Clause) -> float:
        return len(words & set(clause.text.lower().split())) + 0.1 * len(set(codes) & set(clause.codes))

    ranked = sorted(allowed, key=lambda clause: (-score(clause), clause.clause_id))[:k]
    return [
        SearchHit(clause=view_of(clause), score=score(clause), legs=SearchLegs(lexical_rank=rank))
        for rank, clause in enumerate(ranked, start=1)
    ]
