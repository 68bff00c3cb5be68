"""A run against the baseline, case by case. Two runs over other questions are never compared."""

from collections.abc import Mapping
from typing import Any

from cda.errors import UsageError
from evals.provenance import MOVABLE, RANKING
from evals.statistics import ALPHA, mcnemar, smallest_visible_flips
from evals.suite import Run

Entry = Mapping[str, Any]


def refuse_other_cases(entry: Entry | None, case_set: Mapping[str, Any]) -> None:
    """Raise UsageError unless every set of the run is, case by case, the baseline's."""
    if entry is None:
        raise UsageError("--diff: the baseline has no such suite; `cda eval --set-baseline` writes one")
    before, now = _sets(entry["case_set"]), _sets(case_set)
    for name, held in now.items():
        if name not in before:
            raise UsageError(f"--diff: the baseline knows no set {name}; set the baseline anew to compare")
        if before[name]["digest"] != held["digest"]:
            raise UsageError(
                f"--diff: the cases of {name} are not the baseline's ({before[name]['count']} cases "
                f"{before[name]['digest'][:12]} then, {held['count']} cases {held['digest'][:12]} now); figures over "
                "other questions say nothing about the system. Set the baseline anew: `cda eval --set-baseline`"
            )


def compare(entry: Entry, run: Run) -> dict[str, Any]:
    """What changed since the baseline, over the cases of this run.

    moved: the parts of `MOVABLE` that differ. ranked_by: what ranks in this run, moved or not. flips: the cases
    answered otherwise. regressions: what the gate holds against the run: every case that was right and is wrong; and,
    where nothing moved and all the baseline's cases were run, every figure that is worse. mcnemar_p: exact, for right
    against wrong on the same cases.
    """
    card = run.scorecard
    moved = [name for name in MOVABLE if entry["provenance"].get(name) != card["provenance"].get(name)]
    flips = _flips(entry["cases"], run)
    worse = [flip["case_id"] for flip in flips if flip["kind"] == "worse"]
    better = [flip["case_id"] for flip in flips if flip["kind"] == "better"]
    whole = set(entry["cases"]) == set(run.decisions)
    figures = {
        name: {"before": entry["figures"].get(name), "after": card[name]}
        for name in (run.figures if whole else ())
        if name in entry["figures"]
    }
    regressions = [f"{name}: was right, is wrong" for name in worse]
    if not moved:
        regressions += [
            f"{name}: was {pair['before']}, is {pair['after']}"
            for name, pair in figures.items()
            if _worse(pair["before"], pair["after"], more_is_better=run.figures[name])
        ]
    return {
        "label": f"NOT like for like: moved {', '.join(moved)}" if moved else "like for like",
        "ranked_by": {name: card["provenance"].get(name) for name in RANKING},
        "moved": {name: [entry["provenance"].get(name), card["provenance"].get(name)] for name in moved},
        "baseline_commit": entry.get("commit"),
        "figures": figures,
        "flips": flips,
        "only_baseline_right": len(worse),
        "only_this_right": len(better),
        "mcnemar_p": round(mcnemar(len(worse), len(better)), 6),
        "smallest_visible": {
            "flips": smallest_visible_flips(),
            "difference": round(smallest_visible_flips() / max(len(run.decisions), 1), 4),
            "alpha": ALPHA,
        },
        "regressions": regressions,
    }


def told(comparison: Mapping[str, Any]) -> list[str]:
    """The comparison for a terminal."""
    seen = comparison["smallest_visible"]
    lines = [f"against the baseline: {comparison['label']}"]
    lines += [f"  moved {name}: {before} -> {after}" for name, (before, after) in comparison["moved"].items()]
    same = [f"{name} {held}" for name, held in comparison["ranked_by"].items() if name not in comparison["moved"]]
    lines += [f"  the same: {', '.join(same)}"] if same else []
    for name, pair in comparison["figures"].items():
        mark = "=" if pair["before"] == pair["after"] else "~"
        lines.append(f"  {mark} {name:32} {pair['before']} -> {pair['after']}")
    for flip in comparison["flips"]:
        lines.append(f"  {flip['kind']:6} {flip['case_id']}: {flip['before']} -> {flip['after']}")
    lines.append(
        f"  McNemar's exact p {comparison['mcnemar_p']:.4f} ({comparison['only_baseline_right']} only then right, "
        f"{comparison['only_this_right']} only now); fewer than {seen['flips']} cases flipped one way "
        f"({100 * seen['difference']:.1f} points) cannot be told from chance"
    )
    return lines


def _flips(before: Mapping[str, str], run: Run) -> list[dict[str, str]]:
    flips = []
    for name, decision in sorted(run.decisions.items()):
        if name not in before:
            continue
        was_right, _, was = before[name].partition(" ")
        right = was_right == "right"
        if (right, was) != (decision.right, decision.answer):
            kind = "other" if right == decision.right else "better" if decision.right else "worse"
            flips.append({"case_id": name, "kind": kind, "before": was, "after": decision.answer})
    return flips


def _worse(before: float | None, after: float | None, *, more_is_better: bool) -> bool:
    if before is None or after is None:
        return False
    return after < before if more_is_better else after > before


def _sets(case_set: Mapping[str, Any]) -> Mapping[str, Any]:
    sets: Mapping[str, Any] = case_set.get("sets") or {"all": case_set}
    return sets
