"""The coverage suite: requests with authored outcomes, asked of the whole system."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cda.contracts.model_client import UnlimitedMeter
from cda.errors import UsageError
from cda.systems.coverage.setting_up import open_store
from evals.asking import Asked, Asker
from evals.case_files import CASES, CoverageSet, case_digest, load_coverage, load_file
from evals.floors import failures
from evals.journal import Journal
from evals.model_run import BATCH_SECONDS, ModelRun, open_model_run
from evals.provenance import run_provenance, told
from evals.record import Record
from evals.references import REFERENCES, reference_records
from evals.runner import run_cases
from evals.scorecard import coverage_scorecard, latency_intervals
from evals.shipped_corpus import Worlds, worlds
from evals.suite import Decision, Options, Run, Say

FIGURES: Mapping[str, bool] = {
    "gold_clause_recall": True,
    "stale_retrieval_rate": False,
    "citation_faithfulness": True,
    "gold_cited_rate": True,
    "governing_citation_rate": True,
    "determination_accuracy": True,
    "gate_correctness": True,
    "both_correct": True,
    "auto_determine_rate": True,
    "auto_determine_of_determinable": True,
    "appropriate_refusal_rate": True,
    "false_auto_determine": False,
    "unwarranted_auto_determine": False,
    "hallucinated_clauses": False,
    "stale_citations": False,
}
MOST_WAITING = 1_000
"""Samples that wait for a batch at a time, each in its thread."""
REFERENCE_FIGURES = (
    "both_correct",
    "determination_accuracy",
    "gate_correctness",
    "gold_cited_rate",
    "auto_determine_rate",
    "auto_determine_of_determinable",
    "appropriate_refusal_rate",
    "false_auto_determine",
)


class PreparedCoverage:
    """Coverage cases, chosen and ready to be asked."""

    def __init__(self, sets: Sequence[CoverageSet], options: Options) -> None:
        self._sets = sets
        self._options = options
        every = [case for held in sets for case in held.cases]
        self.case_set: Mapping[str, Any] = {
            "count": len(every),
            "digest": case_digest(every),
            "sets": {held.name: {"count": len(held.cases), "digest": case_digest(held.cases)} for held in sets},
        }

    def run(self, say: Say) -> Run:
        """Ask every case; see `Run`."""
        own = self._options.file is not None
        overlays = {case.corpus for held in self._sets for case in held.cases}
        found = worlds(self._options.settings, overlays, say, own_store=own)
        digests = {}
        for name, settings in found.items():
            with open_store(settings, say=say) as store:
                digests[name] = store.digest
        journal = Journal(found[""], str(self.case_set["digest"]), digests)
        if self._options.retry_failed:
            journal.reopen()
        model = open_model_run(self._options, journal, say)
        try:
            return self._with_model(found, digests, journal, model, say)
        finally:
            if model:
                model.client.close()

    def _with_model(
        self, found: Worlds, digests: Mapping[str, str], journal: Journal, model: ModelRun | None, say: Say
    ) -> Run:
        moved: dict[str, Any] = {"trace_dir": journal.traces}
        if self._options.batch:
            moved["run_timeout_s"] = BATCH_SECONDS
        found = {name: held.model_copy(update=moved) for name, held in found.items()}
        reasons = model if self._options.settings.reasoner != "criteria" else None
        asker = Asker(found, say=say, model_client=reasons.client if reasons else None)
        for name in found:
            asker.system(name)  # an index that is missing is built once, before any worker needs it
        provenance = run_provenance(asker.system().parts.provenance, found[""])
        provenance["overlays"] = {name: digest for name, digest in digests.items() if name}
        # Repeats of all cases come one after another, so that a run that is stopped early has whole ones.
        asked = [
            Asked(held.name, case, repeat)
            for repeat in range(1, self._options.repeats + 1)
            for held in self._sets
            for case in held.cases
        ]
        records = run_cases(
            asked,
            asker=asker,
            worlds=found,
            journal=journal,
            concurrency=min(len(asked), MOST_WAITING) if self._options.batch else self._options.concurrency,
            say=say,
            threads=reasons is not None,
            finish=False,
        )
        beside: dict[str, Any] = {}
        if model and self._options.judge:
            from evals.opinions import opinions

            workers = self._options.concurrency
            beside["opinions"] = opinions(records, model.client, UnlimitedMeter(), concurrency=workers, say=say)
        if model:
            beside["spent"] = model.spent()
        journal.finish()
        return self._finished(records, provenance, asker, journal.traces, beside)

    def _finished(
        self,
        records: list[Record],
        provenance: dict[str, Any],
        asker: Asker,
        traces: Path,
        beside: Mapping[str, Any],
    ) -> Run:
        card = {**coverage_scorecard(self._sets, records, provenance), **beside}
        references = {name: self._reference(name, records, provenance) for name in REFERENCES}
        card["references"] = references
        card["traces"] = str(traces)
        found = failures(card, whole=self._options.whole)

        def report(comparison: Mapping[str, Any] | None) -> str:
            from evals.report.page import coverage_page

            return coverage_page(
                card, records, asker.clause, comparison=comparison, failures=found, latency=latency_intervals(records)
            )

        return Run(
            scorecard=card,
            decisions=_decisions(records),
            figures=FIGURES,
            failures=found,
            lines=_lines(card),
            report=report,
        )

    def _reference(self, name: str, records: list[Record], provenance: dict[str, Any]) -> dict[str, Any]:
        card = coverage_scorecard(self._sets, reference_records(name, records), provenance)
        return {
            **{figure: card[figure] for figure in REFERENCE_FIGURES},
            "passes_gate": not failures(card),
        }


def prepare(options: Options) -> PreparedCoverage:
    """The chosen cases. Raises UsageError for an unknown set or id, and for a choice that leaves none."""
    sets = (load_file(options.file),) if options.file else load_coverage(options.sets, CASES)
    if options.file and options.sets:
        raise UsageError("--cases holds the cases; leave out --set")
    known = {case.case_id for held in sets for case in held.cases}
    for name in options.case_ids:
        if name not in known:
            raise UsageError(f"--case {name}: no case of the chosen sets has this id")
    wanted = frozenset(options.case_ids) or known
    chosen = [replace(held, cases=tuple(case for case in held.cases if case.case_id in wanted)) for held in sets]
    if options.limit is not None:
        left = options.limit
        for place, held in enumerate(chosen):
            chosen[place] = replace(held, cases=held.cases[:left])
            left -= len(chosen[place].cases)
    chosen = [held for held in chosen if held.cases]
    if not chosen:
        raise UsageError("no case is left to ask")
    return PreparedCoverage(tuple(chosen), options)


def _decisions(records: Sequence[Record]) -> dict[str, Decision]:
    """By case: every answer that was given, and right when all of them are."""
    found: dict[str, Decision] = {}
    for record in records:
        answer = f"{record.outcome} {record.gate}"
        before = found.get(record.case_id, Decision(answer, right=True))
        given = before.answer if answer in before.answer.split(" / ") else f"{before.answer} / {answer}"
        found[record.case_id] = Decision(given, before.right and record.correct)
    return found


def _model_lines(card: Mapping[str, Any]) -> list[str]:
    """What there is to say where cases were repeated, or a model was asked."""
    lines = []
    if repeats := card.get("repeats"):
        low, high = repeats["mean_interval"]
        hat_low, hat_high = repeats["pass_hat_k_interval"]
        lines.append(
            f"  {repeats['k']} repeats of {repeats['cases']} cases: "
            f"mean {repeats['mean']:.3f} [{low:.3f}, {high:.3f}], "
            f"pass^{repeats['k']} {repeats['pass_hat_k']:.3f} [{hat_low:.3f}, {hat_high:.3f}], "
            f"pass@{repeats['k']} {repeats['pass_at_k']:.3f}, {len(repeats['unstable'])} cases answered in several ways"
        )
    if spent := card.get("spent"):
        lines.append(
            f"  spent over all starts: {spent['calls']} calls ({spent['failed_calls']} failed), "
            f"{spent['input_tokens']} + {spent['cache_read_tokens']} read + {spent['cache_write_tokens']} written in, "
            f"{spent['output_tokens']} out, USD {spent['usd']}"
        )
    if said := card.get("opinions"):
        scores = ", ".join(f"{name} {row['mean']:.2f}" for name, row in said["scores"].items()) or "none"
        lines.append(f"  {said['model']} on {said['judged']} answers (beside the score): {scores}")
    return lines


def _lines(card: Mapping[str, Any]) -> list[str]:
    lines = [
        f"coverage: {card['case_set']['count']} cases, {str(card['case_set']['digest'])[:12]}",
        told(card["provenance"]),
    ]
    for name in FIGURES:
        ends = card["intervals"].get(name)
        shown = f"  [{ends[0]:.3f}, {ends[1]:.3f}]" if ends else ""
        lines.append(f"  {name:32} {'-' if card[name] is None else card[name]!s:>7}{shown}")
    for name, row in card["per_set"].items():
        lines.append(
            f"  {name:12} {row['count'] - len(row['misses'])} of {row['count']} right, "
            f"{row['false_auto_determine']} false auto-determinations"
            + (f"; missed {', '.join(row['misses'])}" if row["misses"] else "")
        )
    for law, row in card["laws"].items():
        lines.append(f"  law {law}: {row['held']} of {row['pairs']} hold")
    lines.append(
        f"  p50 {1000 * (card['p50_latency_s'] or 0):.0f} ms, p95 {1000 * (card['p95_latency_s'] or 0):.0f} ms, "
        f"{card['input_tokens']} + {card['output_tokens']} tokens, USD {card['usd']}"
    )
    lines += _model_lines(card)
    lines.append(
        f"  false auto-determination: at most {100 * card['false_auto_upper_bound_95']:.2f} % when none is seen; "
        f"differences under {100 * card['smallest_visible_difference']:.1f} points are not seen"
    )
    return lines
