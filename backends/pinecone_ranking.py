"""The k best of what the service answered: ours alone, and with ties broken by id, which the service does not do."""

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Any

from backends.asciiids import decoded
from backends.base import Hit
from backends.deadlines import Call
from backends.pinecone_records import HASH
from backends.pinecone_service import Answer, Match, PineconeService
from backends.sparse import SparseVector

_MARGIN = 16  # candidates beyond k, so that ties at the k-th place are ours to break
_DEEPEST = 10_000  # the service's largest top_k


class Ranking:
    """One query of a namespace, under way."""

    def __init__(
        self,
        service: PineconeService,
        namespace: str,
        vector: list[float] | SparseVector,
        where: Mapping[str, Any] | None,
        k: int,
    ) -> None:
        self._service = service
        self._asked = namespace, vector, where
        self._k = k
        self._most = inf if isinstance(vector, SparseVector) else 1.0  # a cosine, whatever the service rounds
        self._depth = k + _MARGIN
        self._call = self._begin()

    def hits(self) -> tuple[Hit, ...]:
        """The k best. More candidates are asked for while the last one ties with the k-th, and while strangers in the
        namespace leave fewer than k of ours."""
        while True:
            answer = self._service.finished("query", self._call)
            found = sorted(_ours(answer.matches, self._most))
            told_all = len(answer.matches) < self._depth or self._depth == _DEEPEST
            if told_all or (len(found) >= self._k and found[self._k - 1][0] != found[-1][0]):
                break
            self._depth = min(4 * self._depth, _DEEPEST)
            self._call = self._begin()
        best = found[: self._k]
        return tuple([Hit(name, 0.0 - lower, rank, content) for rank, (lower, name, content) in enumerate(best, 1)])

    def _begin(self) -> Call[Answer]:
        namespace, vector, where = self._asked
        return self._service.begin_query(namespace, vector, self._depth, where)


def _ours(matches: Iterable[Match], most: float) -> Iterator[tuple[float, str, str]]:
    """(negative score, id, content hash) of the matches that were written here."""
    for match in matches:
        record_id, content_hash = decoded(match.id), match.metadata.get(HASH)
        if record_id is not None and isinstance(content_hash, str):
            yield -round(min(most, max(-most, match.score)), 6), record_id, content_hash
