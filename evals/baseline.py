"""The baseline: what a run is compared with. Only `cda eval --set-baseline` writes it.

It holds, for each suite, the figures, every case's answer and the provenance, under one digest. The digest finds an
accident; against an edit that renews it, a test runs the suite again and compares.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from cda.errors import UsageError
from evals.suite import Run

FILE = Path(__file__).parent / "baseline.json"
FORMAT = 1


def read_baseline(suite: str, file: Path = FILE) -> dict[str, Any] | None:
    """The suite's part of the baseline, None when there is none. Raises UsageError for a file whose digest is off."""
    part: dict[str, Any] | None = _read(file)["suites"].get(suite)
    return part


def entry_of(run: Run, commit: str | None, accepted: str | None) -> dict[str, Any]:
    """What the baseline keeps of a run: no times, no ids."""
    card = run.scorecard
    return {
        "commit": commit,
        "accepted": accepted,
        "failures": list(run.failures),
        "case_set": card["case_set"],
        "provenance": card["provenance"],
        "figures": {name: card[name] for name in run.figures},
        "intervals": {name: ends for name, ends in card["intervals"].items() if name in run.figures},
        "cases": {
            name: f"{'right' if decision.right else 'WRONG'} {decision.answer}"
            for name, decision in sorted(run.decisions.items())
        },
    }


def write_baseline(suite: str, entry: Mapping[str, Any], file: Path = FILE) -> None:
    """Put the suite's entry in, the others as they were."""
    document = _read(file)
    document["suites"] = dict(sorted({**document["suites"], suite: dict(entry)}.items()))
    document["digest"] = digest_of(document)
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    draft = file.with_suffix(".draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(file)


def digest_of(document: Mapping[str, Any]) -> str:
    """Sha256 over content and provenance, the digest itself left out."""
    held = {key: value for key, value in document.items() if key != "digest"}
    return sha256(json.dumps(held, sort_keys=True, ensure_ascii=False).encode("utf-8")).hexdigest()


def _read(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {"format": FORMAT, "suites": {}}
    try:
        document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        whole = document["format"] == FORMAT and document["digest"] == digest_of(document)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{file}: is no baseline ({type(error).__name__}); restore it from version control") from None
    if not whole:
        raise UsageError(
            f"{file}: its digest does not fit its content, so it was edited by hand; restore it from version control "
            "and let `cda eval --set-baseline` write it"
        )
    return document
