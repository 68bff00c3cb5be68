"""The retrieval suite: labelled queries, each leg alone and fused, and the filter against its oracle."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from cda.errors import UsageError
from cda.retrieval.documents import view_of
from cda.retrieval.embedding_cache import EmbeddingCache
from cda.retrieval.index import ensure_index, open_index
from cda.retrieval.search import PolicySearch
from cda.systems.coverage.system import CoverageSystem
from corpus.store import CorpusStore
from evals.case_files import CASES, case_digest, load_retrieval
from evals.case_model import RetrievalCase
from evals.legs import LEGS, LegSearch
from evals.provenance import run_provenance, told
from evals.retrieval_scores import Found, retrieval_scorecard
from evals.shipped_corpus import worlds
from evals.suite import Decision, Options, Run, Say

FIGURES: Mapping[str, bool] = {
    "recall_at_8": True,
    "paraphrase_recall_at_8": True,
    "polarity_accuracy": True,
    "stale_rate": False,
    "wrong_payer_rate": False,
    "wrong_plan_rate": False,
    "forbidden_hits": False,
    "filter_parity_differences": False,
}
NEVER = ("stale_rate", "wrong_payer_rate", "wrong_plan_rate", "forbidden_hits", "filter_parity_differences")
RECALL_FLOOR = 0.9  # of gold clauses within eight; what the gather step must have is held to 1.0 by the coverage suite


class PreparedRetrieval:
    """Labelled queries, ready to be asked."""

    def __init__(self, cases: Sequence[RetrievalCase], options: Options) -> None:
        self._cases, self._options = cases, options
        self.case_set: Mapping[str, Any] = {"count": len(cases), "digest": case_digest(cases)}

    def run(self, say: Say) -> Run:
        """Ask every query."""
        settings = worlds(self._options.settings, (), say)[""]
        provenance = run_provenance(CoverageSystem.open(settings, say=say).parts.provenance, settings)
        with CorpusStore.open(settings.store_path) as store:
            with closing(EmbeddingCache(settings.home / "embeddings.sqlite")) as cache:
                folder, embedder = ensure_index(store, settings.embedder, settings.index_path, cache=cache)
            search = PolicySearch(store, embedder, folder, rule=settings.reranker, lexical=settings.lexical)
            legs = LegSearch(search, open_index(folder, store, embedder), embedder, store)
            found = [self._asked(case, legs, store) for case in self._cases]
        card = retrieval_scorecard(found, self.case_set, provenance)
        return Run(
            scorecard=card,
            decisions={row.case.case_id: Decision("found" if row.right else "missed", row.right) for row in found},
            figures=FIGURES,
            failures=_failures(card, whole=self._options.whole),
            lines=_lines(card),
        )

    def _asked(self, case: RetrievalCase, legs: LegSearch, store: CorpusStore) -> Found:
        ranked = legs.ask(case)
        clauses = [store.clause(clause_id) for clause_id in ranked.legs["fused"]]
        return Found(case, ranked, [view_of(clause) for clause in clauses if clause is not None])


def prepare(options: Options) -> PreparedRetrieval:
    """The labelled queries, all or those named. Raises UsageError for what this suite has not."""
    if options.sets or options.file:
        raise UsageError("--suite retrieval has one set; leave out --set and --cases")
    cases = load_retrieval(CASES)
    for name in options.case_ids:
        if name not in {case.case_id for case in cases}:
            raise UsageError(f"--case {name}: no labelled query has this id")
    chosen = [case for case in cases if not options.case_ids or case.case_id in options.case_ids]
    return PreparedRetrieval(tuple(chosen[: options.limit]), options)


def _failures(card: Mapping[str, Any], *, whole: bool) -> list[str]:
    found = [f"{name} is {card[name]}, only 0 is allowed" for name in NEVER if card[name]]
    if whole and card["recall_at_8"] is not None and card["recall_at_8"] < RECALL_FLOOR:
        found.append(f"recall_at_8 is {card['recall_at_8']}, at least {RECALL_FLOOR} is asked for")
    return found


def _lines(card: Mapping[str, Any]) -> list[str]:
    lines = [
        f"retrieval: {card['case_set']['count']} queries, {str(card['case_set']['digest'])[:12]}",
        told(card["provenance"]),
    ]
    for name in FIGURES:
        ends = card["intervals"].get(name)
        shown = f"  [{ends[0]:.3f}, {ends[1]:.3f}]" if ends else ""
        lines.append(f"  {name:28} {card[name]!s:>7}{shown}")
    lines.append(f"  {'':28} " + "".join(f"{leg:>9}" for leg in LEGS))
    for name in [key for key in card["legs"]["fused"] if not key.endswith("_interval")]:
        lines.append(f"  {name:28} " + "".join(f"{card['legs'][leg][name]!s:>9}" for leg in LEGS))
    for kind, row in card["per_kind"].items():
        missed = f"; missed {', '.join(row['missed'])}" if row["missed"] else ""
        lines.append(f"  {kind:16} {row['count'] - len(row['missed'])} of {row['count']} right{missed}")
    return lines
