"""Several threads read the first charts of a process: what is made on first use is made once."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from threading import Barrier

from cda.contracts.definitions import definitions_from_data
from cda.extraction import RuleExtractor
from corpus.reading import read

sys.setswitchinterval(1e-5)
definitions = definitions_from_data({name: entry.value for name, entry in read(["builtin"]).facts})
extractor, together = RuleExtractor(definitions), Barrier(16)


def first(number):
    together.wait()
    note = f"Visit {number}. Type 1 diabetes. Fingersticks QID, five times a day."
    return extractor.extract(note, ("fingersticks_per_day",), as_of=date(2024, 3, 15))["fingersticks_per_day"].state


with ThreadPoolExecutor(16) as pool:
    print(len(set(pool.map(first, range(16)))))
"""


@pytest.mark.promise("extraction.threads")
def test_the_first_charts_of_a_process_can_be_read_by_many_threads_at_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr[-600:]
    assert done.stdout.strip() == "1"
