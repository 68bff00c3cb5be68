"""Writing many records: cut into requests, several under way at once, every id accounted for."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import replace
from typing import Any

from backends.base import Capabilities, Failure, Record, WriteReport
from backends.batching import Batch, batches
from backends.checks import require_id_length
from backends.deadlines import Call
from backends.errors import BackendUnavailable
from backends.pinecone_records import size, stored
from backends.pinecone_service import PineconeService
from backends.sparse import SparseRecord

NOTHING, UNKNOWN = 0, -1  # log positions: before every write; of a write for which the service told none
_ENVELOPE = 4096  # bytes of a request beside its vectors: braces, the namespace
_IN_FLIGHT = 4  # upserts at once


class Upload:
    """One upsert of any number of records into a namespace."""

    def __init__(
        self, service: PineconeService, namespace: str, on_batch: Callable[[WriteReport], None] | None
    ) -> None:
        self._service = service
        self._namespace = namespace
        self._on_batch = on_batch
        self._reports: list[WriteReport] = []
        self._under_way: dict[Call[tuple[int, int]], Batch[dict[str, Any]]] = {}

    def written(self, records: Iterable[Record | SparseRecord], limits: Capabilities) -> WriteReport:
        """Write all, which were checked, and report all. BackendUnavailable when the service stops to answer, after
        every batch that was answered was reported."""
        refused: list[Failure] = []
        limit = (limits.max_request_bytes or 0) - _ENVELOPE
        sendable = _sendable(records, limits, limit, refused)
        try:
            for batch in batches(sendable, max_bytes=limit, max_count=limits.max_records_per_request or 1):
                self._under_way[self._service.begin_upsert(self._namespace, batch.items, batch.size)] = batch
                if len(self._under_way) == _IN_FLIGHT:
                    self._collect(all_of_them=False)
        finally:
            self._collect(all_of_them=True)
        if refused:
            self._told(WriteReport((), tuple(refused), str(NOTHING)))
        return _summed(self._reports)

    def _told(self, report: WriteReport) -> None:
        self._reports.append(report)
        if self._on_batch is not None:  # batches are answered in any order; a later token covers the earlier ones
            self._on_batch(replace(report, token=_summed(self._reports).token))

    def _collect(self, *, all_of_them: bool) -> None:
        """Report the batches that are answered: one at least, or all. The first failure of the service is raised when
        every other batch was reported."""
        trouble: BackendUnavailable | None = None
        if not all_of_them:
            patience = self._service.config.write_deadline_s
            wait([call.future for call in self._under_way], return_when=FIRST_COMPLETED, timeout=patience)
        ready = [call for call in self._under_way if all_of_them or call.future.done()]
        for call in ready or [*self._under_way][:1]:
            batch = self._under_way.pop(call)
            try:
                self._told(_reported(batch, *self._service.finished("upsert", call)))
            except BackendUnavailable as error:
                trouble = trouble or error
        if trouble is not None:
            raise trouble


def _sendable(
    records: Iterable[Record | SparseRecord], limits: Capabilities, limit: int, refused: list[Failure]
) -> Iterator[tuple[str, dict[str, Any], int]]:
    """(id, vector, bytes) of what can be sent; what is too large alone is a failure with its name."""
    for record in records:
        vector = stored(record)
        require_id_length(record.id, vector["id"], limits)
        if size(vector["metadata"]) > (limits.max_meta_bytes or 0):
            refused.append(Failure(record.id, "fields_too_large", retryable=False))
        elif (bytes_sent := size(vector)) > limit:
            refused.append(Failure(record.id, "too_large", retryable=False))
        else:
            yield record.id, vector, bytes_sent


def _reported(batch: Batch[dict[str, Any]], count: int, position: int) -> WriteReport:
    """A batch of which the service counts fewer than were sent has failed whole: it does not say which are missing."""
    if count != len(batch.ids):
        failed = tuple(Failure(record_id, "not_all_counted", retryable=True) for record_id in batch.ids)
        return WriteReport((), failed, str(position))
    return WriteReport(tuple(batch.ids), (), str(position))


def _summed(reports: Sequence[WriteReport]) -> WriteReport:
    """One report of all. A batch without a position leaves the whole without one: it could not be waited for."""
    positions = [int(report.token) for report in reports if report.accepted]
    token = UNKNOWN if UNKNOWN in positions else max(positions, default=NOTHING)
    return WriteReport(
        tuple(record_id for report in reports for record_id in report.accepted),
        tuple(failure for report in reports for failure in report.failed),
        str(token),
    )
