"""The same comparison on real documents: `python -m evals.retrieval_queries.guidance FOLDER`.

FOLDER holds manifest.json (doc_id, title) and docs/DOC_ID.txt. Each document is cut into passages of about 250 words;
a hit is a passage of a gold document, so ranks are those of documents. Nothing of the documents is kept.
"""

import argparse
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import date
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from cda.retrieval.embedders import for_building
from cda.retrieval.embedding_cache import EmbeddingCache
from cda.retrieval.index import build_index
from cda.retrieval.search import PolicySearch
from corpus.model import Clause, DocType
from evals.retrieval_queries.compare import EMBEDDERS, HEAD, QUERIES, RULES, Query, judge, read_queries, summarise

WORDS = 250


class Passages:
    """The passages as a clause store: one payer, always in effect."""

    def __init__(self, folder: Path) -> None:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        self._clauses: dict[str, Clause] = {}
        for document in manifest:
            text = (folder / "docs" / f"{document['doc_id']}.txt").read_text(encoding="utf-8")
            for clause in _passages(document["doc_id"], document["title"], text):
                self._clauses[clause.clause_id] = clause
        self.digest = sha256("".join(c.text for c in self._clauses.values()).encode("utf-8")).hexdigest()

    def clauses_of(self, clause_ids: Collection[str]) -> dict[str, Clause]:
        """Those of the passages that there are, by id."""
        return {name: self._clauses[name] for name in clause_ids if name in self._clauses}

    def clauses(self) -> Iterator[Clause]:
        """All passages, sorted by id."""
        return iter([self._clauses[key] for key in sorted(self._clauses)])


def _passages(doc_id: str, title: str, text: str) -> Iterator[Clause]:
    words = re.sub(r"\.{4,}\s*\d*", " ", text).split()
    for number, start in enumerate(range(0, len(words), WORDS)):
        yield Clause(
            f"{doc_id}.v1.P{number:04}", "", " ".join(words[start : start + WORDS]), doc_id, title, DocType.ARTICLE,
            "policy", "FDA", None, "v1", date(2000, 1, 1), None,
        )  # fmt: skip


def _documents(search: PolicySearch, query: Query) -> list[str]:
    hits = search.search([query.query], payer_id="FDA", k=25)[0].hits
    return list(dict.fromkeys(hit.clause.policy_id for hit in hits))[:10]


def main() -> None:
    """Index the documents under each embedder and print one row a rule and set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cache", type=Path, help="SQLite file that keeps vectors between runs")
    options = parser.parse_args()
    store = Passages(options.folder)
    entries = read_queries(QUERIES / "fda_guidance.yaml")
    queries = [replace(query, payer_id="FDA") for query in entries]
    print(f"{sum(1 for _ in store.clauses())} passages")
    print(HEAD)
    with TemporaryDirectory() as root:
        for name in EMBEDDERS:
            embedder = for_building(name, lambda: [clause.text for clause in store.clauses()], Path(root))
            cache = EmbeddingCache(options.cache) if options.cache else None
            build_index(store, embedder, Path(root) / name, cache=cache)
            for rule in RULES:
                search = PolicySearch(store, embedder, Path(root) / name, rule=rule)
                scores = {query.id: judge(query, _documents(search, query)) for query in queries}
                for part in ("tune", "held_out", "held_out/paraphrase", "held_out/literal", "held_out/negation"):
                    wanted = part.split("/")
                    chosen = [q for q in queries if q.set == wanted[0] and q.kind in (wanted[1:] or [q.kind])]
                    row = {"embedder": name, "rule": rule, "set": part, **summarise(chosen, scores)}
                    print("| " + " | ".join(str(value) for value in row.values()) + " |", flush=True)


if __name__ == "__main__":
    main()
