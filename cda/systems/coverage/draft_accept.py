"""From reviewed drafts to authored files: a whole new folder, in which accepted clauses replace what they quote.

Nothing is taken on trust: what the reviewer accepted is checked again as a whole corpus, and with any fault nothing is
written. What nobody accepted keeps its text, without a criterion.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cda.errors import UsageError
from cda.systems.coverage.authored_corpus import check_corpus
from cda.systems.coverage.draft_checks import span_of
from cda.systems.coverage.draft_review import (
    Review,
    ReviewedClause,
    block_ids,
    judged,
    read_review,
    sha,
    unreviewed,
)
from cda.systems.coverage.drafting import Source, read_source
from corpus import BUILTIN
from corpus.codes import system_of
from corpus.importers.write import authored_yaml
from corpus.yaml_lines import documents

ADDED = "reviewed-facts-and-codes.yaml"


class NotReviewed(UsageError):
    """What keeps a review from being compiled; `faults` holds every reason."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join([f"{len(faults)} fault(s) in the reviews; nothing was written", *faults]))


@dataclass(frozen=True, slots=True)
class Accepted:
    """What was compiled: clauses that decide now, clauses that were accepted without a criterion, and what nobody
    accepted."""

    out: Path
    deciding: int
    informing: int
    left_out: int
    versions: str


def accept(source_path: Path, files: Sequence[Path], out: Path, beside: Sequence[str] = (BUILTIN,)) -> Accepted:
    """Compile the accepted clauses of review files with the policies they were drafted from into the new folder `out`.

    beside: the sources that the corpus will be built with. Raises NotReviewed with every fault; then nothing is
    written.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"--out {out}: is there already; name a new folder")
    source = read_source(source_path)
    reviews = [(str(file), read_review(file)) for file in files]
    faults = [fault for file, review in reviews for fault in _faults(file, review, source)]
    named = [(review.policy_id, review.version) for _, review in reviews]
    faults += [f"{'.'.join(one)}: is reviewed twice" for one in dict.fromkeys(named) if named.count(one) > 1]
    faults += _defined_twice([review for _, review in reviews])
    if faults:
        raise NotReviewed(faults)
    out.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        folder = scratch / out.name
        folder.mkdir()
        _compile(source_path, folder, {key: review for key, (_, review) in zip(named, reviews, strict=True)}, source)
        contents, found = check_corpus([*beside, folder])
        if contents is None:
            raise NotReviewed([str(fault).replace(f"{folder.as_posix()}/", "") for fault in found])
        if out.exists():
            out.rmdir()
        os.replace(folder, out)
    except OSError as error:
        raise UsageError(f"--out {out}: cannot be written ({error.strerror}); nothing was changed") from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    clauses = [clause for _, review in reviews for clause in review.clauses]
    taken = [clause for clause in clauses if clause.taken]
    deciding = sum(clause.criterion is not None for clause in taken)
    return Accepted(out, deciding, len(taken) - deciding, len(clauses) - len(taken), ", ".join(map(".".join, named)))


def _defined_twice(reviews: Sequence[Review]) -> list[str]:
    """Accepted facts of one name that mean different things: the clauses of one review would be read by the other's."""
    meant: dict[str, set[str]] = {}
    for fact in (fact for review in reviews for fact in review.facts if fact.taken):
        meant.setdefault(fact.name, set()).add(json.dumps(fact.definition, sort_keys=True))
    return [f"{name}: is defined in two ways; give one of them another name" for name in meant if len(meant[name]) > 1]


def _faults(file: str, review: Review, source: Source) -> Iterator[str]:
    """Why the taken parts of one review cannot be compiled."""
    found = source.version(review.policy_id, review.version)
    if found is None:
        yield f"{file}: SOURCE has no version {review.policy_id}.{review.version}"
        return
    policy, version = found
    texts = {id_: sha(text) for id_, text in block_ids(version).items()}
    moved = sorted(id_ for id_ in review.blocks.keys() | texts.keys() if review.blocks.get(id_) != texts.get(id_))
    if moved:
        yield f"{file}: the text of {', '.join(moved)} has changed since it was drafted; draft it again"
        return
    yield from unreviewed(review, file)
    taken = review.model_copy(
        update={
            "clauses": tuple(clause for clause in review.clauses if clause.taken),
            "facts": tuple(fact for fact in review.facts if fact.taken),
        }
    )
    for id_, faults in judged(taken, policy, version, source.definitions).items():
        yield from (f"{file}: {id_}: {fault}" for fault in faults)
    ids = [clause.id for clause in taken.clauses]
    yield from (
        f"{file}: {id_}: the id stands twice; each clause has its own" for id_ in {i for i in ids if ids.count(i) > 1}
    )


def _compile(source_path: Path, folder: Path, reviews: Mapping[tuple[str, str], Review], source: Source) -> None:
    """Write every file of the source: as it is, or with the reviewed versions changed."""
    root = source_path if source_path.is_dir() else source_path.parent
    files = [source_path] if source_path.is_file() else sorted([*root.rglob("*.yaml"), *root.rglob("*.yml")])
    for file in files:
        target = folder / file.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text(encoding="utf-8")
        held = [_plain(document) for document, _ in documents(text)]
        changed = [_with_reviews(document, reviews) for document in held]
        target.write_text(text if changed == held else authored_yaml(changed), encoding="utf-8", newline="\n")
    added = list(_added(reviews.values(), source))
    if added:
        (folder / ADDED).write_text(authored_yaml(added), encoding="utf-8", newline="\n")


def _added(reviews: Any, source: Source) -> Iterator[dict[str, Any]]:
    """Accepted fact definitions, and codes that no list of the source names."""
    facts = {fact.name: fact.definition for review in reviews for fact in review.facts if fact.taken}
    if facts:
        yield {"facts": facts}
    listed = {
        code
        for entry in source.authored.codes
        for system in ("CPT", "HCPCS", "ICD10CM")
        for code in getattr(entry.value, system)
    }
    listed |= {code for entry in source.authored.policies for code in entry.value.codes}
    new: dict[str, list[str]] = {}
    for code in sorted(
        {c for review in reviews for clause in review.clauses if clause.taken for c in clause.codes} - listed
    ):
        new.setdefault(str(system_of(code)), []).append(code)
    if new:
        yield {"codes": new}


def _with_reviews(document: Any, reviews: Mapping[tuple[str, str], Review]) -> Any:
    """An authored document with the reviewed versions of its policy changed; any other as it is."""
    policy = document.get("policy") if isinstance(document, dict) else None
    if not isinstance(policy, dict):
        return document
    codes = list(policy.get("codes", ()))
    versions = []
    for version in policy["versions"]:
        review = reviews.get((str(policy["policy_id"]), str(version["version"])))
        taken = [clause for clause in review.clauses if clause.taken] if review else []
        if not taken:
            versions.append(version)
            continue
        codes += sorted({code for clause in taken for code in clause.codes} - set(map(str, codes)))
        clauses = [piece for clause in version["clauses"] for piece in _pieces(clause, taken)]
        versions.append({**version, "clauses": clauses})
    changed = {**policy, "versions": versions}
    return {**document, "policy": {**changed, "codes": codes} if codes else changed}


def _pieces(clause: Mapping[str, Any], taken: Sequence[ReviewedClause]) -> Iterator[Mapping[str, Any]]:
    """A clause of the source, split where accepted clauses quote it; what none quotes stays, without a criterion."""
    id_ = str(clause.get("id") or clause.get("clause_id"))
    text = str(clause["text"]).strip()
    spans = sorted((span_of(one.quote, text) or (0, 0), one) for one in taken if one.block == id_) if taken else []
    if not spans:
        yield clause
        return
    key = "id" if clause.get("id") else "clause_id"
    at, rest = 0, 0
    for (start, end), one in [*spans, ((len(text), len(text)), None)]:
        left = text[at:start].strip()
        if any(letter.isalnum() for letter in left):
            rest += 1
            yield {**clause, key: f"{id_}-rest{rest}", "text": left, "criterion": None}
        if one is not None:
            changed = {key: one.id, "section": one.section, "codes": list(one.codes)}
            yield {**clause, **changed, "text": one.quote, "criterion": one.criterion}
        at = end


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
