"""What a ledger needs now and then: old segments removed, a torn end set aside."""

import os
from datetime import UTC, datetime
from pathlib import Path

from cda.ledger.chain_end import segment_files
from cda.ledger.checkpoints import RETAINED, checked, signed
from cda.ledger.keys import SigningKey, read_ring
from cda.ledger.ledger import Ledger, last_checkpoint
from cda.ledger.record import Entry, read_line


def retain(folder: Path, head: Path, keys: Path, *, before: datetime) -> list[str]:
    """Remove the whole segments whose last record is older than `before` and vouched for by a signed checkpoint; the
    end of what was removed is signed, so that the rest still verifies. Gives the names of what was removed."""
    covered = last_checkpoint(head)
    removable: list[Path] = []
    end = None
    for file in segment_files(folder)[:-1]:
        last = read_line(file.read_bytes().splitlines(keepends=True)[-1])
        if covered is None or last["seq"] > covered["count"] or datetime.fromisoformat(last["at"]) >= before:
            break
        removable.append(file)
        end = last
    if end is None:
        return []
    place = head / RETAINED
    if place.exists():
        checked(place.read_bytes(), read_ring(keys))
    draft = place.with_name(f".{RETAINED}.{os.getpid()}")
    draft.write_bytes(signed({"count": end["seq"], "hash": end["hash"]}, SigningKey(keys)))
    draft.replace(place)
    for file in removable:
        file.unlink()
    return [file.name for file in removable]


def mend(folder: Path, head: Path, keys: Path) -> int:
    """Move a torn last record to a file beside the ledger and note that in it; gives the number of bytes moved."""
    last = segment_files(folder)[-1]
    content = last.read_bytes()
    whole = content.rfind(b"\n") + 1
    torn = content[whole:]
    if not torn:
        return 0
    (folder / f"{last.name}.{datetime.now(UTC):%Y%m%dT%H%M%S}.torn").write_bytes(torn)
    if whole:
        os.truncate(last, whole)
    else:
        last.unlink()
    ledger = Ledger(folder, head, keys)
    ledger.append(Entry("note", call="", principal="operator", tool="ledger", outcome="torn_record_set_aside"))
    ledger.close()
    return len(torn)
