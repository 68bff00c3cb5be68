"""Takes away one verifier step, gate reason or halt at a time and sees which planted fault then goes unnoticed.

`python -m evals.mutation [NAME...] [--json]`. A mutant that turns no case red would be a step that nothing tests. Exit
1 when there is one.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

from cda.harness import gate, halts, verifier
from cda.harness.loop import Parts
from cda.harness.reasoner import Judge
from cda.settings import load_settings
from cda.systems.coverage.setting_up import to_stderr
from evals.case_files import load_verifier
from evals.case_model import VerifierCase
from evals.catching import judge
from evals.planted import answer_planted, planted_parts

Mutation = Callable[[Parts], AbstractContextManager[Parts]]
TABLES: dict[str, dict[str, Any]] = {
    "verifier": verifier.CHECKS,
    "supports": verifier.SUPPORTS,
    "gate": gate.SHARED,
    "line": gate.OWN,
    "halt": halts.HALTS,
}
REDUNDANT = {
    "supports.verbatim": "quote_verbatim has already named the fault; it only keeps the later rules off such a quote",
    "gate.no_determination": "a run without an answer has another reason too, and no line that could be determined",
}
"""Mutants that no case can turn red, and why; a test sees that each of them indeed stays green."""


def mutations() -> dict[str, Mutation]:
    """Every mutant by name: an entry of one of the tables taken out, or the judge's word on the whole answer."""
    found: dict[str, Mutation] = {
        f"{table}.{name}": _without(held, name) for table, held in TABLES.items() for name in held
    }
    found["supports.outcome"] = _without_outcome
    return found


def killers(
    mutation: Mutation, cases: Sequence[VerifierCase], parts: Mapping[str, Parts], *, enough: int | None = None
) -> list[str]:
    """The cases that the mutant turns red, at most `enough` of them; `parts` by the corpus that a case names."""
    red: list[str] = []
    for corpus, whole in parts.items():
        with mutation(whole) as mutated:
            for case in cases:
                if len(red) == enough:
                    return red
                if case.corpus == corpus and not judge(case, answer_planted(case, mutated)).right:
                    red.append(case.case_id)
    return red


def likely(name: str, cases: Sequence[VerifierCase]) -> list[VerifierCase]:
    """The cases in the order in which they should be tried: first those whose owner is of the mutant's kind."""
    table, _, entry = name.partition(".")
    owner = {"verifier": f"verifier.{entry}", "supports": "verifier.supports_claim"}.get(table, f"{table}.")
    kind = "gate." if table == "line" else owner
    return sorted(cases, key=lambda case: not case.caught_by.startswith(kind))


def _without(table: dict[str, Any], name: str) -> Mutation:
    @contextmanager
    def mutated(parts: Parts) -> Iterator[Parts]:
        kept = dict(table)
        del table[name]
        try:
            yield parts
        finally:
            table.clear()
            table.update(kept)

    return mutated


class _NoWordOnTheWhole:
    def __init__(self, inner: Judge) -> None:
        self.node = inner.node

    def outcome(self, *_: object) -> str | None:
        return None


@contextmanager
def _without_outcome(parts: Parts) -> Iterator[Parts]:
    yield replace(parts, judge=_NoWordOnTheWhole(parts.judge))


def main(arguments: list[str] | None = None) -> int:
    """Print the table of mutants and what turns red."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants to try; all by default")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    every = mutations()
    if unknown := [name for name in options.names if name not in every]:
        parser.error(f"no such mutant: {', '.join(unknown)}; there are {', '.join(every)}")
    cases = load_verifier()
    parts = planted_parts(cases, load_settings(), to_stderr)
    table = {name: killers(every[name], cases, parts) for name in options.names or every}
    survivors = [name for name, red in table.items() if not red and name not in REDUNDANT]
    if options.json:
        json.dump({"mutants": table, "redundant": REDUNDANT, "survivors": survivors}, sys.stdout, indent=1)
        sys.stdout.write("\n")
    else:
        for name, red in table.items():
            shown = ", ".join(red[:4]) + (f" and {len(red) - 4} more" if len(red) > 4 else "")
            print(f"{name:28} {shown or REDUNDANT.get(name, 'NOTHING TURNS RED')}")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
