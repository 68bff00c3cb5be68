"""Opinions of a model on how well answers are told: beside the score, in no figure that is compared and in no floor.

What the judge sees of a record is its question and its determination; labels, ids, reasons of the gate and traces stay
out (`cda.agents.judge`).
"""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from cda.agents import judge
from cda.contracts.model_client import ModelClient, ModelFailure, RunMeter
from evals.paid import sampling
from evals.record import Record
from evals.statistics import cluster_statistic

LOWEST = 10


def opinions(
    records: Sequence[Record],
    client: ModelClient,
    meter: RunMeter,
    *,
    concurrency: int,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """What the judge says of every answer with a determination: by score its mean, interval (cases drawn again) and
    counts, the lowest answers with the judge's reasons, and how many calls failed, by kind."""
    judged = [record for record in records if json.loads(record.detail).get("determination")]
    say(f"asking {client.describe(judge.ROLE)} for its opinion on {len(judged)} answers; charts are not sent whole")

    def opinion(record: Record) -> judge.Opinion | ModelFailure:
        detail = json.loads(record.detail)
        try:
            with sampling(record.sample):
                return judge.judge(
                    client, meter, question=detail["question"], determination=detail["determination"], key=""
                )
        except ModelFailure as failure:
            return failure

    with ThreadPoolExecutor(concurrency, thread_name_prefix="judge") as pool:
        heard = list(zip(judged, pool.map(opinion, judged), strict=True))
    held = [(record, said) for record, said in heard if isinstance(said, judge.Opinion)]
    failed = [said.kind.value for _, said in heard if isinstance(said, ModelFailure)]
    return {
        "model": client.describe(judge.ROLE),
        "judged": len(held),
        "failed": {kind: failed.count(kind) for kind in sorted(set(failed))},
        "scores": {name: _figures(held, name) for name in judge.SCORES} if held else {},
        "lowest": [
            {"case_id": record.case_id, "repeat": record.repeat, **said.model_dump()}
            for record, said in sorted(held, key=_whole)[:LOWEST]
        ],
    }


def _whole(item: tuple[Record, judge.Opinion]) -> tuple[int, str, int]:
    record, said = item
    return sum(getattr(said, name) for name in judge.SCORES), record.case_id, record.repeat


def _figures(held: Sequence[tuple[Record, judge.Opinion]], name: str) -> dict[str, Any]:
    clusters: dict[str, list[float]] = {}
    values = [int(getattr(said, name)) for _, said in held]
    for (record, _), value in zip(held, values, strict=True):
        clusters.setdefault(record.case_id, []).append(value)
    low, high = cluster_statistic(clusters, lambda found: float(found.mean()))
    return {
        "mean": round(sum(values) / len(values), 3),
        "interval": [round(low, 3), round(high, 3)],
        "counts": {str(score): values.count(score) for score in range(1, 6)},
    }
