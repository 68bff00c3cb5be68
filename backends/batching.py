"""Requests cut by encoded bytes and by count, whichever comes first."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class Batch(Generic[T]):
    """What goes into one request, and its size in bytes without the envelope."""

    ids: list[str] = field(default_factory=list)
    items: list[T] = field(default_factory=list)
    size: int = 0


def batches(sized: Iterable[tuple[str, T, int]], *, max_bytes: int, max_count: int) -> Iterator[Batch[T]]:
    """Batches of (id, item, encoded bytes) in their order. Each item takes one byte more, for what parts it from the
    next. An item that is larger than a whole request alone is the caller's to refuse beforehand: it is sent alone."""
    batch: Batch[T] = Batch()
    for record_id, item, size in sized:
        if batch.items and (len(batch.items) == max_count or batch.size + size + 1 > max_bytes):
            yield batch
            batch = Batch()
        batch.ids.append(record_id)
        batch.items.append(item)
        batch.size += size + 1
    if batch.items:
        yield batch
