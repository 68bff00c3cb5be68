"""Judges case files before they count: `cda evals validate`. Every fault at once, with file, case and what to do.

The same gates stand before the shipped sets and before whatever a person or a model proposes. Nothing is computed by
the criteria engine or the verifier: what is judged here is the label, and not the product.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from cda.errors import UsageError
from evals.case_files import CASES, COVERAGE_SETS
from evals.corpus_view import shipped
from evals.expand import generated_files
from evals.validation.duplicates import id_findings, probe_findings, request_findings
from evals.validation.finding import Finding
from evals.validation.judging import Held, judge
from evals.validation.spread import attack_spread, coverage_spread, pair_spread, planted_spread, query_spread

# Sets in which every case probes something of its own: the others repeat a probe on purpose (styles, days, laws).
DISTINCT = frozenset({"adversarial", "medicare"})


def shipped_findings(folder: Path = CASES) -> tuple[Held, tuple[Finding, ...]]:
    """All that is wrong with the shipped sets, each by itself and all together."""
    held = Held()
    found: list[Finding] = []
    for file in sorted(folder.rglob("*.json")):
        if not file.name.endswith(".first.json"):
            name = str(file.relative_to(folder))
            found += judge(entries_of(file), name, held, blind=name.startswith("rounds/"))
    distinct = [(file, case) for file, case in held.cases if _distinct(file, shipped_set=True)]
    found += [*_ids(held), *_requests(held), *probe_findings(distinct), *_spread(held)]
    found += [
        Finding(name, "", "generated", "differs from what its patterns give; run `cda evals expand`")
        for name, text in generated_files().items()
        if not (folder / name).exists() or (folder / name).read_text(encoding="utf-8") != text
    ]
    return held, tuple(sorted(found))


def proposed_findings(files: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[Held, tuple[Finding, ...]]:
    """All that is wrong with proposed entries, by file name, the shipped sets being there already. A shipped file is
    judged in its own place."""
    places = {name: _shipped_name(name) for name in files}
    known, held = _without(shipped_findings()[0], {place for place in places.values() if place}), Held()
    found: list[Finding] = []
    for name, entries in files.items():
        found += judge(entries, name, held, blind=(places[name] or "").startswith("rounds/"))
    both = Held(*(there + new for there, new in zip(known.lists, held.lists, strict=True)))
    repeated = [finding for finding in (*_ids(both), *_requests(both)) if finding.file in files]
    distinct = [(file, case) for file, case in held.cases if _distinct(file, shipped_set=places[file] is not None)]
    return held, tuple(sorted([*found, *repeated, *probe_findings(distinct, known.cases)]))


def _shipped_name(file: str) -> str | None:
    """The name of a shipped file among the sets, or None for a file from anywhere else."""
    path = Path(file).resolve()
    return str(path.relative_to(CASES)) if path.is_relative_to(CASES) else None


def _distinct(name: str, *, shipped_set: bool) -> bool:
    """Whether each case of a file must probe something of its own: all that is proposed must."""
    return not shipped_set or Path(name).stem in DISTINCT


def _without(held: Held, names: AbstractSet[str]) -> Held:
    return Held(*([entry for entry in entries if entry[0] not in names] for entries in held.lists))


def entries_of(file: Path) -> list[Mapping[str, Any]]:
    """The objects of a file of cases. Raises UsageError when it cannot be read or is no such file."""
    try:
        data = json.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{file}: cannot be read ({type(error).__name__})") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{file}: not a JSON document in UTF-8") from None
    found = data.get("cases") if isinstance(data, dict) else data
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise UsageError(f'{file}: a file of cases is a list of objects, or {{"cases": [...]}}')
    return found


def _ids(held: Held) -> Iterator[Finding]:
    """Ids are one space over all coverage cases, and one for each other suite."""
    sides = ((file, side.case_id) for file, pair in held.pairs for side in (pair.base, pair.twin))
    yield from id_findings([*((file, case.case_id) for file, case in held.cases), *sides])
    yield from id_findings((file, pair.pair_id) for file, pair in held.pairs)
    yield from id_findings((file, case.case_id) for file, case in held.planted)
    yield from id_findings((file, case.case_id) for file, case in held.queries)
    yield from id_findings((file, case.case_id) for file, case in held.attacks)


def _requests(held: Held) -> Iterator[Finding]:
    """Pairs share their base by design, so they are left out."""
    yield from request_findings(held.cases)
    asked: dict[tuple[str, ...], str] = {}
    for file, query in held.queries:
        key = (query.query, query.payer_id or "", query.plan_id or "", query.as_of_date or "", *query.procedure_codes)
        if key in asked:
            yield Finding(
                file, query.case_id, "request_twice", f"{asked[key]} asks the same; change it or leave it out"
            )
        asked.setdefault(key, query.case_id)
    put: dict[tuple[str, str, str], str] = {}
    for file, attack in held.attacks:
        words = (attack.words, attack.corpus, attack.request.model_dump_json() if attack.corpus else "")
        if words in put:
            yield Finding(file, attack.case_id, "words_twice", f"{put[words]} has the same words; find others")
        put.setdefault(words, attack.case_id)


def _spread(held: Held) -> Iterator[Finding]:
    sets = {
        name: [case for file, case in held.cases if Path(file).parts[0] in (name, f"{name}.json")]
        for name in COVERAGE_SETS
    }
    yield from coverage_spread(sets, shipped())
    yield from pair_spread([pair for _, pair in held.pairs])
    yield from planted_spread([case for _, case in held.planted])
    yield from query_spread([case for _, case in held.queries])
    yield from attack_spread([case for _, case in held.attacks])


def _counts(held: Held) -> dict[str, int]:
    return {
        "cases": len(held.cases),
        "pairs": len(held.pairs),
        "planted": len(held.planted),
        "queries": len(held.queries),
        "attacks": len(held.attacks),
    }


@click.command("validate")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def validate_command(ctx: click.Context, files: Sequence[Path], as_json: bool) -> None:
    """Judge the shipped case sets, or any FILES of cases beside them. Exit 1 when a case is rejected."""
    held, found = proposed_findings({str(file): entries_of(file) for file in files}) if files else shipped_findings()
    if as_json:
        state = "faulty" if found else "sound"
        document = {"state": state, **_counts(held), "findings": [asdict(finding) for finding in found]}
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        _print(held, found)
    if found:
        ctx.exit(1)


def _print(held: Held, found: Sequence[Finding]) -> None:
    for finding in found:
        click.echo(str(finding))
    counted = ", ".join(f"{number} {name}" for name, number in _counts(held).items() if number)
    click.echo(f"{len(found) or 'no'} fault{'s' if len(found) > 1 else ''}; of sound form: {counted or 'nothing'}")
