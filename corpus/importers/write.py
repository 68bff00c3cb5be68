"""Puts an import on disk: authored YAML files and a report, whole or not at all.

The files are written into a new folder beside the target, which is renamed into place at the end. A target that exists
is replaced only when it is an earlier import of the same source whose files nobody has edited since.
"""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from corpus.codes import system_of
from corpus.importers.result import ImportRefused, ImportResult

REPORT = "import-report.json"
CODES = "codes.yaml"
READABLE = 20  # up to so many documents, each has a file of its own
A_FILE = 200  # beyond, so many documents share one

Progress = Callable[[int, int], None]


def report(result: ImportResult, source_format: str, source: Path) -> dict[str, Any]:
    """The report of an import as JSON values: counts, what was skipped and why, what to look at. No path of the
    machine and no clock stands in it, so the same import gives the same bytes."""
    return {
        "import": source_format,
        "source": source.name,
        "counts": dict(result.counts),
        "skipped": [asdict(fault) for fault in result.faults],
        "warnings": [asdict(warning) for warning in result.warnings],
    }


def write_import(
    result: ImportResult, out: Path, source_format: str, source: Path, progress: Progress | None = None
) -> dict[str, Any]:
    """Write the documents and the report to `out`; returns the report with `files` (name to sha256) added.

    progress(done, total) is called after every file. Raises `ImportRefused` when `out` holds anything that this import
    may not replace, or cannot be written; then nothing has changed.
    """
    out = out.resolve()
    _check_target(out, source_format, source)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    except OSError as error:
        raise ImportRefused(f"{out}: cannot be written ({error.strerror}); choose another --out") from error
    try:
        written = report(result, source_format, source)
        written["files"] = _write_files(result.documents, scratch, progress)
        text = json.dumps(written, ensure_ascii=False, indent=2) + "\n"
        (scratch / REPORT).write_text(text, encoding="utf-8", newline="\n")
        scratch.chmod(0o755)
        _swap(scratch, out)
    except OSError as error:
        raise ImportRefused(f"{out}: cannot be written ({error.strerror}); nothing was changed") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return written


def _check_target(out: Path, source_format: str, source: Path) -> None:
    """Raise unless `out` is absent, empty, or an unedited import of the same source."""
    if not out.exists():
        return
    if not out.is_dir():
        raise ImportRefused(f"{out}: is a file; choose another --out")
    present = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if not path.is_dir())
    if not present and not any(out.iterdir()):
        return
    try:
        earlier = json.loads((out / REPORT).read_text(encoding="utf-8"))
        files: dict[str, str] = dict(earlier["files"])
        origin = (earlier["import"], earlier["source"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ImportRefused(f"{out}: holds files that are not an import; choose another --out") from error
    if origin != (source_format, source.name):
        raise ImportRefused(f"{out}: holds the {origin[0]} import of {origin[1]}; choose another --out")
    edited = present != sorted([*files, REPORT]) or any(_hash(out / name) != digest for name, digest in files.items())
    if edited:
        raise ImportRefused(f"{out}: its files were edited since they were imported; move them or choose another --out")


def _swap(scratch: Path, out: Path) -> None:
    if not out.exists():
        os.replace(scratch, out)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    os.replace(out, aside / "earlier")
    try:
        os.replace(scratch, out)
    except BaseException:
        os.replace(aside / "earlier", out)
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _write_files(documents: Sequence[Mapping[str, Any]], folder: Path, progress: Progress | None) -> dict[str, str]:
    hashes: dict[str, str] = {}
    done = 0
    codes = _codes(documents)
    for name, part in _files(documents):
        path = folder / name
        path.write_text(authored_yaml(part), encoding="utf-8", newline="\n")
        hashes[name] = _hash(path)
        done += len(part)
        if progress is not None:
            progress(done, len(documents))
    if codes:
        (folder / CODES).write_text(authored_yaml([{"codes": codes}]), encoding="utf-8", newline="\n")
        hashes[CODES] = _hash(folder / CODES)
    return hashes


def _codes(documents: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The codes that the documents name, by system: a corpus knows a code only when a list names it."""
    named: set[str] = set()
    for document in documents:
        (content,) = document.values()
        clauses = content["clauses"] if "rider" in document else [c for v in content["versions"] for c in v["clauses"]]
        named.update(content.get("codes", ()), *(clause.get("codes", ()) for clause in clauses))
    systems: dict[str, list[str]] = {}
    for code in sorted(named):
        systems.setdefault(str(system_of(code)), []).append(code)
    return systems


def _files(documents: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Sequence[Mapping[str, Any]]]]:
    """(file name, its documents). Names are made of letters, digits, dot, dash and underscore, whatever an id holds."""
    if len(documents) > READABLE:
        for start in range(0, len(documents), A_FILE):
            yield f"policies-{start // A_FILE + 1:04}.yaml", documents[start : start + A_FILE]
        return
    taken = {CODES.removesuffix(".yaml")}
    for document in documents:
        (content,) = document.values()
        name = (
            re.sub(r"[^A-Za-z0-9._-]+", "-", str(content.get("policy_id") or content["rider_id"])).strip("-.")
            or "policy"
        )
        number = 1
        while (unique := name if number == 1 else f"{name}-{number}").casefold() in taken:
            number += 1
        taken.add(unique.casefold())
        yield f"{unique}.yaml", [document]


def authored_yaml(documents: Sequence[Mapping[str, Any]]) -> str:
    """The text of authored documents: keys as they come, no anchors, letters as they are."""
    import yaml

    base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

    class Plain(base):  # type: ignore[misc]
        def ignore_aliases(self, _data: object) -> bool:
            return True  # an authored file is readable where it stands; it has no anchors

    text: str = yaml.dump_all(documents, Dumper=Plain, sort_keys=False, allow_unicode=True, width=110)
    return text


def _hash(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
