"""A small invented corpus and a store of it, for every test of retrieval."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date
from typing import Any

import numpy as np

from cda.contracts.embedding import Vectors
from cda.retrieval.tfidf import TfidfEmbedder
from corpus.model import Clause, DateState, DocType


def make_clause(clause_id: str, text: str, **changes: Any) -> Clause:
    """A bulletin clause of payer AAA, in effect from 2024 on, unless told otherwise."""
    policy_id, version, _ = f"{clause_id}..".split(".", 2)
    fields: dict[str, Any] = {
        "section": "Coverage Criteria",
        "policy_id": policy_id,
        "policy_title": "Home monitoring",
        "doc_type": DocType.BULLETIN,
        "source": "policy",
        "payer_id": "AAA",
        "plan_id": None,
        "version": version or "v1",
        "effective_start": date(2024, 1, 1),
        "effective_end": None,
    }
    return Clause(clause_id=clause_id, text=text, **(fields | changes))


class FakeStore:
    """A clause store in memory; `forget` and `rewrite` make it drift from an index built before."""

    def __init__(self, clauses: Iterable[Clause]) -> None:
        self._clauses = {clause.clause_id: clause for clause in clauses}
        self.digest = hashlib.sha256(repr(sorted(self._clauses.items())).encode()).hexdigest()
        self.reads = 0

    def clause(self, clause_id: str) -> Clause | None:
        return self._clauses.get(clause_id)

    def clauses_of(self, clause_ids: Collection[str]) -> dict[str, Clause]:
        self.reads += 1
        return {name: self._clauses[name] for name in clause_ids if name in self._clauses}

    def clauses(self) -> Iterator[Clause]:
        return iter([self._clauses[key] for key in sorted(self._clauses)])

    def forget(self, clause_id: str) -> None:
        del self._clauses[clause_id]

    def rewrite(self, clause: Clause) -> None:
        self._clauses[clause.clause_id] = clause


class CountingEmbedder:
    """Wraps an embedder and counts calls and texts."""

    def __init__(self, inner: TfidfEmbedder) -> None:
        self._inner = inner
        self.calls = 0
        self.texts = 0

    @property
    def identity(self) -> str:
        return self._inner.identity

    @property
    def dim(self) -> int:
        return self._inner.dim

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.calls += 1
        self.texts += len(texts)
        return self._inner.embed(texts)


class HashingEmbedder:
    """A vector of each text from its hash, the same in every process; counts what it is given."""

    def __init__(self, dim: int, name: str = "hashing") -> None:
        self.dim = dim
        self.identity = f"{name}@{dim}"
        self.texts = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.texts += len(texts)
        seeds = [
            int.from_bytes(hashlib.sha256(f"{self.identity}{text}".encode()).digest()[:8], "big") for text in texts
        ]
        rows = np.stack([np.random.default_rng(seed).standard_normal(self.dim) for seed in seeds])
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


class PlantedEmbedder:
    """Vectors given by hand: text to direction; any other text points along the first axis."""

    identity = "planted"

    def __init__(self, dim: int, planted: dict[str, Sequence[float]]) -> None:
        self.dim = dim
        self._planted = planted

    def embed(self, texts: Sequence[str]) -> Vectors:
        rows = [self._planted.get(text, [1.0] + [0.0] * (self.dim - 1)) for text in texts]
        return np.asarray([np.asarray(row) / np.linalg.norm(row) for row in rows], dtype=np.float32)


OLD_END, NEW_START = date(2024, 6, 30), date(2024, 7, 1)


def small_corpus() -> list[Clause]:
    first, second = {"effective_end": OLD_END}, {"effective_start": NEW_START}
    rider = {"doc_type": DocType.RIDER, "source": "rider", "section": "Rider", "policy_title": "Gold rider"}
    return [
        make_clause("P-1.v1.C1", "A glucose sensor is covered when fingersticks are done four times a day.",
                    codes=("A9276", "95249"), **first),
        make_clause("P-1.v2.C1", "A glucose sensor is covered for type 1 diabetes. No fingersticks are needed.",
                    codes=("A9276", "95249"), **second),
        make_clause("P-1.v2.C2", "A glucose sensor is not covered for gestational diabetes without insulin.",
                    section="Exclusions", codes=("A9276",), **second),
        make_clause("P-2.v1.C1", "Sleep testing at home is covered when sleep apnea is suspected (G47.33).",
                    policy_title="Sleep testing", codes=("95806",)),
        make_clause("P-2.v1.C2", "Attended sleep testing is covered unless a home test was adequate.",
                    policy_title="Sleep testing", codes=("95810",)),
        make_clause("Q-1.v1.C1", "A glucose sensor is covered for every member.", payer_id="BBB", codes=("A9276",)),
        make_clause("R-GOLD.C1", "Up to 40 sensor units a month are covered.", plan_id="AAA-GOLD", version="v1",
                    codes=("A9276",), **rider),
        make_clause("R-SILVER.C1", "Prior authorization is required for every sensor.", plan_id="AAA-SILVER",
                    version="v1", codes=("A9276",), **rider),
        make_clause("P-9.v1.C1", "A glucose sensor was once discussed in a bulletin of unknown date.",
                    effective_start=None, date_state=DateState.UNDATED, codes=("A9276",)),
    ]  # fmt: skip
