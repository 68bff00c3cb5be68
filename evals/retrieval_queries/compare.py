"""Compare fusion rules, embedders and lexical scorers on labelled queries: `python -m evals.retrieval_queries.compare`.

Queries of `set: tune` may shape a setting; what is claimed is what `set: held_out` shows.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from cda.retrieval.embedders import EmbedderName
from cda.retrieval.fusion import Rule
from cda.retrieval.index import ensure_index
from cda.retrieval.search import PolicySearch
from corpus.build import build
from corpus.store import CorpusStore

QUERIES = Path(__file__).parent
RULES: tuple[Rule, ...] = ("rrf", "weighted", "date_aware", "adaptive")
EMBEDDERS: tuple[EmbedderName, ...] = ("minilm-int8", "tfidf")
K = 10
FILES = ("synthetic.yaml", "medicare.yaml")
HEAD = "| embedder | rule | set | n | hit@1 | hit@3 | MRR | nDCG@10 | forbidden |\n" + "|---" * 9 + "|"


@dataclass(frozen=True)
class Query:
    """One labelled query; see the head of synthetic.yaml."""

    id: str
    set: str
    kind: str
    query: str
    payer_id: str | None = None
    as_of: date | None = None
    plan_id: str | None = None
    codes: tuple[str, ...] = ()
    gold: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scores:
    """Of one query: first gold at rank 1, within 3, reciprocal rank, nDCG@10 (gold 2, also 1), forbidden hits."""

    hit_1: float
    hit_3: float
    mrr: float
    ndcg: float
    forbidden: int


def read_queries(file: Path) -> list[Query]:
    """The labelled queries of one file; an unknown key is an error."""
    entries = yaml.safe_load(file.read_text(encoding="utf-8"))
    held: list[dict[str, Any]] = [
        {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()} for entry in entries
    ]
    return [Query(**entry) for entry in held]


def judge(query: Query, found: Sequence[str]) -> Scores:
    """Score the ranked ids of one query."""
    ranks = [rank for rank, clause_id in enumerate(found, 1) if clause_id in query.gold]
    grades = {**dict.fromkeys(query.also, 1), **dict.fromkeys(query.gold, 2)}
    gains = [(2 ** grades.get(clause_id, 0) - 1) / math.log2(rank + 1) for rank, clause_id in enumerate(found, 1)]
    best = sorted(grades.values(), reverse=True)[:K]
    ideal = sum((2**grade - 1) / math.log2(rank + 1) for rank, grade in enumerate(best, 1))
    first = min(ranks, default=0)
    return Scores(
        float(first == 1),
        float(0 < first <= 3),
        1 / first if first else 0.0,
        sum(gains) / ideal if ideal else 0.0,
        len(set(found) & set(query.never)),
    )


def run(search: PolicySearch, queries: Iterable[Query]) -> dict[str, Scores]:
    """Scores by query id."""
    scores = {}
    for query in queries:
        answer = search.search(
            [query.query], payer_id=query.payer_id, plan_id=query.plan_id, as_of=query.as_of, codes=query.codes, k=K
        )[0]
        scores[query.id] = judge(query, [hit.clause.clause_id for hit in answer.hits])
    return scores


def summarise(queries: Sequence[Query], scores: dict[str, Scores]) -> dict[str, Any]:
    """Means over the queries that have gold clauses, and all forbidden hits."""
    answered = [scores[query.id] for query in queries if query.gold]
    return {
        "n": len(answered),
        "hit@1": round(fmean(s.hit_1 for s in answered), 3),
        "hit@3": round(fmean(s.hit_3 for s in answered), 3),
        "mrr": round(fmean(s.mrr for s in answered), 3),
        "ndcg@10": round(fmean(s.ndcg for s in answered), 3),
        "forbidden": sum(scores[query.id].forbidden for query in queries),
    }


def compare(store: CorpusStore, queries: Sequence[Query], root: Path) -> list[dict[str, Any]]:
    """One row a combination of embedder, rule and set of queries, and one a kind for the held-out set."""
    rows = []
    for name in EMBEDDERS:
        folder, embedder = ensure_index(store, name, root)
        for rule in RULES:
            scores = run(PolicySearch(store, embedder, folder, rule=rule), queries)
            groups = {part: [q for q in queries if q.set == part] for part in ("tune", "held_out")}
            kinds = sorted({q.kind for q in groups["held_out"] if q.gold})
            groups |= {f"held_out/{kind}": [q for q in groups["held_out"] if q.kind == kind] for kind in kinds}
            rows += [
                {"embedder": name, "rule": rule, "set": part, **summarise(chosen, scores)}
                for part, chosen in groups.items()
                if any(q.gold for q in chosen)
            ]
    return rows


def main() -> None:
    """Build the shipped corpus, run every combination, print a table, or JSON with --json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    queries = [query for name in FILES for query in read_queries(QUERIES / name)]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "corpus.sqlite"
        # The comparison reads words and dates only; `cda corpus check` judges criteria.
        build(["builtin"], file, criterion_validator=lambda *_: [], fact_validator=lambda *_: [])
        with CorpusStore.open(file) as store:
            rows = compare(store, queries, Path(folder))
    if options.json:
        json.dump(rows, sys.stdout, indent=1)
        return
    print(HEAD)
    for row in rows:
        print("| " + " | ".join(str(value) for value in row.values()) + " |")


if __name__ == "__main__":
    main()
