"""The verifier suite: answers with a planted fault each, and what must catch it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from cda.errors import UsageError
from evals.case_files import CASES, case_digest, load_verifier
from evals.case_model import VerifierCase
from evals.catching import Caught, judge
from evals.planted import answer_planted, planted_parts
from evals.provenance import run_provenance, told
from evals.shipped_corpus import worlds
from evals.statistics import wilson
from evals.suite import Decision, Options, Run, Say

FIGURES: Mapping[str, bool] = {"caught_rate": True, "sound_passed_rate": True}


class PreparedVerifier:
    """Planted faults, ready to be answered."""

    def __init__(self, cases: Sequence[VerifierCase], options: Options) -> None:
        self._cases, self._options = cases, options
        self.case_set: Mapping[str, Any] = {"count": len(cases), "digest": case_digest(cases)}

    def run(self, say: Say) -> Run:
        """Hand every planted answer to the harness."""
        settings = worlds(self._options.settings, (), say)[""]
        parts = planted_parts(self._cases, self._options.settings, say)
        found = [judge(case, answer_planted(case, parts[case.corpus])) for case in self._cases]
        card = _scorecard(found, self.case_set, run_provenance(parts[""].provenance, settings))
        failures = [f"{row.case_id}: {_told(row)}" for row in found if not row.right]
        return Run(
            scorecard=card,
            decisions={row.case_id: Decision(f"{row.gate} {' '.join(row.by)}".strip(), row.right) for row in found},
            figures=FIGURES,
            failures=failures,
            lines=_lines(card),
        )


def prepare(options: Options) -> PreparedVerifier:
    """The planted faults, all or those named. Raises UsageError for what this suite has not."""
    if options.sets or options.file:
        raise UsageError("--suite verifier has one set; leave out --set and --cases")
    cases = load_verifier(CASES)
    for name in options.case_ids:
        if name not in {case.case_id for case in cases}:
            raise UsageError(f"--case {name}: no planted fault has this id")
    chosen = [case for case in cases if not options.case_ids or case.case_id in options.case_ids]
    return PreparedVerifier(tuple(chosen[: options.limit]), options)


def _scorecard(found: Sequence[Caught], case_set: Mapping[str, Any], provenance: Mapping[str, Any]) -> dict[str, Any]:
    faults = [row for row in found if row.expected]
    sound = [row for row in found if not row.expected]
    owners: dict[str, dict[str, Any]] = {}
    for row in faults:
        owner = owners.setdefault(row.expected, {"planted": 0, "caught": 0, "missed": []})
        owner["planted"] += 1
        owner["caught"] += row.right
        owner["missed"] += [] if row.right else [row.case_id]
    rates = {"caught_rate": faults, "sound_passed_rate": sound}
    return {
        "suite": "verifier",
        "case_set": dict(case_set),
        **{name: round(sum(r.right for r in rows) / len(rows), 4) if rows else None for name, rows in rates.items()},
        "intervals": {
            name: [round(end, 4) for end in wilson(sum(r.right for r in rows), len(rows))]
            for name, rows in rates.items()
        },
        "owners": dict(sorted(owners.items())),
        "cases": [{**asdict(row), "by": list(row.by)} for row in found],
        "provenance": dict(provenance),
    }


def _told(row: Caught) -> str:
    wanted = f"{row.expected} must catch it" if row.expected else "it is sound and must pass"
    return f"{row.fault}: {wanted}; the gate said {row.gate}, {', '.join(row.by) or 'nothing caught it'}"


def _lines(card: Mapping[str, Any]) -> list[str]:
    lines = [
        f"verifier: {card['case_set']['count']} answers, {str(card['case_set']['digest'])[:12]}",
        told(card["provenance"]),
    ]
    for name in FIGURES:
        low, high = card["intervals"][name]
        lines.append(f"  {name:20} {card[name]!s:>7}  [{low:.3f}, {high:.3f}]")
    lines += [f"  {owner:32} caught {row['caught']} of {row['planted']}" for owner, row in card["owners"].items()]
    return lines
