"""Sparse vectors on Pinecone: an index of their own beside the dense one, since the service compares a sparse vector by
product only. The filter, the records and the marker are those of the dense index.

The marker of a name is written last, when everything before it is seen: an index that was cut short is not there.
"""

import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from backends.base import Hit, IndexSpec
from backends.checks import require_filter, require_k
from backends.errors import BackendError, BackendUnavailable, InvalidRecord
from backends.filters import Where, check_fields
from backends.pinecone import CAPABILITIES
from backends.pinecone_config import PineconeConfig
from backends.pinecone_filters import compile_filter
from backends.pinecone_ranking import Ranking
from backends.pinecone_service import SPARSE, PineconeService
from backends.pinecone_targets import Targets
from backends.pinecone_writing import Upload
from backends.schema import Schema
from backends.sparse import SparseRecord, SparseVector

SUFFIX = "-words"  # of the index beside CDA_PINECONE_INDEX
_LONGEST_NAME = 45  # of an index
_MOST_PLACES = 1_000  # non-zero components; https://docs.pinecone.io/reference/api/database-limits
_PROBE = SparseVector((0,), (1.0,))


class PineconeSparse:
    """Sparse indexes of one schema and one model. Thread-safe."""

    def __init__(self, config: PineconeConfig, schema: Schema, model: str) -> None:
        if len(config.index + SUFFIX) > _LONGEST_NAME:
            raise BackendError(
                f"words on Pinecone need a second index {config.index + SUFFIX!r}, which is too long a name; "
                f"CDA_PINECONE_INDEX may have {_LONGEST_NAME - len(SUFFIX)} characters"
            )
        self._service = PineconeService(replace(config, index=config.index + SUFFIX), SPARSE)
        self._release = weakref.finalize(self, self._service.close)
        self._targets = Targets(self._service, f"{config.namespace}.")
        self._spec = IndexSpec(schema, model, 0)

    def holds(self, name: str) -> bool:
        """See `SparseIndex.holds`. IndexMismatch when it was made with another model or schema."""
        if self._service.index_facts() is None or self._targets.asked(name) is None:
            return False
        self._targets.opened(name, self._spec)
        return True

    def build(self, name: str, records: Iterable[SparseRecord]) -> int:
        """See `SparseIndex.build`. BackendUnavailable when the service does not show what was written in time."""
        if self._service.index_facts() is None:
            self._service.create_index(None)
        report = Upload(self._service, self._targets.namespace(name), None).written(
            self._checked(records), CAPABILITIES
        )
        if report.failed:
            first = report.failed[0]
            raise BackendUnavailable(
                f"{len(report.failed)} record(s) were not taken, {first.id!r} first ({first.code}); build it again"
            )
        patience = self._service.config.write_deadline_s
        seen = self._targets.seen(name, int(report.token), _PROBE, patience)
        if not seen.confirmed:
            raise BackendUnavailable(f"the words {name!r} are written and not seen: {seen.why}")
        self._targets.marked(name, self._spec)
        return len(report.accepted)

    def search(self, name: str, vectors: Sequence[SparseVector], *, where: Where, k: int) -> list[tuple[Hit, ...]]:
        """See `SparseIndex.search`."""
        require_k(CAPABILITIES, k)
        check_fields(where, self._spec.schema)
        require_filter(CAPABILITIES, where)
        compiled = compile_filter(where, self._spec.schema)
        namespace = self._targets.opened(name, self._spec)
        if compiled is None:
            return [() for _ in vectors]
        rankings = [
            Ranking(self._service, namespace, vector, compiled, k) if vector.places else None for vector in vectors
        ]
        found = [_matching(ranking.hits()) if ranking else () for ranking in rankings]
        if not any(found):
            self._targets.reopened(name, self._spec)
        return found

    def close(self) -> None:
        """Close the connections."""
        self._release()

    def _checked(self, records: Iterable[SparseRecord]) -> Iterator[SparseRecord]:
        for record in records:
            self._spec.schema.check(record.id, record.meta)
            if not 1 <= len(record.vector.places) <= _MOST_PLACES:
                raise InvalidRecord(
                    f"record {record.id!r}: a sparse vector of {len(record.vector.places)} components; "
                    f"1 to {_MOST_PLACES} are kept"
                )
            yield record


def _matching(hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
    """Those that have a component in common with the question: the service may fill up with others."""
    return tuple([hit for hit in hits if hit.score > 0])
