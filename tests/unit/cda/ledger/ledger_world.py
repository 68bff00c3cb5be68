"""A ledger in a folder of its own, and what a hostile hand may do to it."""

import os
import signal
import sys
import threading
from pathlib import Path

from cda.ledger import Ledger, Verdict, verify
from cda.ledger.keys import make_keys, read_ring
from cda.ledger.record import Entry


class Place:
    """The three folders of a ledger."""

    def __init__(self, root: Path) -> None:
        self.folder, self.head, self.keys = root / "ledger", root / "head", root / "keys"
        make_keys(self.keys)

    def open(self, every: int = 10, segment_bytes: int = 2000) -> Ledger:
        return Ledger(self.folder, self.head, self.keys, every=every, segment_bytes=segment_bytes)

    def filled(self, records: int) -> "Place":
        ledger = self.open()
        for number in range(records):
            ledger.append(entry(number))
        ledger.close()
        return self

    def verdict(self) -> Verdict:
        return verify(self.folder, self.head, read_ring(self.keys))

    def segments(self) -> list[Path]:
        return sorted(self.folder.glob("*.jsonl"))


def entry(number: int) -> Entry:
    kind = "outcome" if number % 2 else "intent"
    return Entry(kind, call=f"call-{number // 2}", principal="analyst", tool="get_thing", arguments="ab" * 16, rows=1)  # type: ignore[arg-type]


if __name__ == "__main__":
    place, threads, each, stop = Place(Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    ledger = place.open(every=50, segment_bytes=20_000)

    def work(name: int) -> None:
        for number in range(each):
            ledger.append(Entry("intent", f"{os.getpid()}-{name}-{number}", "analyst", "get_thing"))
            if stop and number == each // 2:
                os.kill(os.getpid(), signal.SIGKILL)
            ledger.append(Entry("outcome", f"{os.getpid()}-{name}-{number}", "analyst", "get_thing", outcome="ok"))

    workers = [threading.Thread(target=work, args=(name,)) for name in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    ledger.close()
