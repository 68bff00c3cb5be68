"""The review file: one version's drafted clauses as YAML, in which a person accepts, edits or rejects each.

A review file is no authored file (`cda corpus build` refuses it), so a draft can decide nothing by lying about. Each
clause carries a digest of what was drafted, and each block of its text: a silent edit and a moved text are both found.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from cda.contracts.definitions import definitions_from_data
from cda.contracts.facts import FactDefinition
from cda.criteria.derive import validate_definition
from cda.errors import CriterionError, UsageError
from cda.extraction import check_definition
from cda.systems.coverage.draft_checks import Candidate, ExceptionNode, faults_of, overlaps, span_of
from corpus.authored import AuthoredPolicy, AuthoredVersion
from corpus.yaml_lines import documents

Decision = Literal["pending", "accept", "edit", "reject"]
HEADER = """\
# Drafted by a model; nothing here decides anything until a person accepts it.
# 1. Put your name into `reviewed_by`.
# 2. For each clause and each new fact set `decision`: accept (as it stands), edit (you changed it), reject.
#    What stays pending is left out. `faults` are what the mechanical checks found: mend them under `edit`.
# 3. An exception word whose node is `none` changes nothing: say `why`.
# 4. cda corpus draft-criteria SOURCE --accept THIS_FILE --out FOLDER
"""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Decided(_Part):
    """What a person decides about. drafted: digest of what the model gave; faults: what was wrong with that."""

    decision: Decision = "pending"
    faults: tuple[str, ...] = ()
    drafted: str

    @property
    def taken(self) -> bool:
        """A person wants it."""
        return self.decision in ("accept", "edit")

    @property
    def named(self) -> str:
        """How it is called."""
        raise NotImplementedError

    @property
    def digest(self) -> str:
        """Of all that a reviewer may edit, and of nothing else."""
        return _digest(self.model_dump(mode="json", exclude={"id", "decision", "faults", "drafted"}))


class ReviewedException(_Part):
    """An exception word of the quote and the node that holds it; why: the reviewer's words for a node of `none`."""

    words: str
    node: str
    why: str = ""


class ReviewedClause(_Decided):
    """One drafted clause; its text is the quote."""

    id: str
    block: str
    section: str
    codes: tuple[str, ...] = ()
    quote: str
    criterion: dict[str, Any] | None = None
    exceptions: tuple[ReviewedException, ...] = ()

    @property
    def named(self) -> str:
        """Its id."""
        return self.id


class ReviewedFact(_Decided):
    """One new fact definition, as authored files hold it."""

    name: str
    definition: dict[str, Any]

    @property
    def named(self) -> str:
        """Its name."""
        return self.name


class Review(_Part):
    """The draft of one version of a policy. blocks: sha256 of the text of each clause that it was drafted from."""

    policy_id: str
    version: str
    model: str
    instructions: str
    reviewed_by: str = ""
    blocks: dict[str, str]
    facts: tuple[ReviewedFact, ...] = ()
    clauses: tuple[ReviewedClause, ...] = ()


def block_ids(version: AuthoredVersion) -> dict[str, str]:
    """The text of each clause without a criterion, by the id that its file gives it: what may be drafted."""
    return {(c.id or c.clause_id or ""): c.text for c in version.clauses if c.criterion is None}


def sha(text: str) -> str:
    """Hex sha256 of a text."""
    return sha256(text.encode("utf-8")).hexdigest()


def judged(
    review: Review, policy: AuthoredPolicy, version: AuthoredVersion, definitions: Mapping[str, FactDefinition]
) -> dict[str, list[str]]:
    """Everything wrong with the facts and clauses of a review, by id or name; empty lists are left out. What is
    rejected is not judged, and its facts are not there."""
    there = {fact.name: fact.definition for fact in review.facts if fact.decision != "reject"}
    found = {fact.name: list(_fact_faults(fact, definitions)) for fact in review.facts if fact.name in there}
    sound = {name: definition for name, definition in there.items() if not found[name]}
    known = {**definitions, **definitions_from_data(sound)}
    texts, whole = block_ids(version), "\n".join(clause.text for clause in version.clauses)
    spans: dict[str, tuple[str, tuple[int, int]]] = {}
    clauses = [clause for clause in review.clauses if clause.decision != "reject"]
    for clause in clauses:
        text = texts.get(clause.block)
        if text is None:
            found[clause.id] = [f"block: {clause.block!r} is no clause of this version without a criterion"]
            continue
        found[clause.id] = faults_of(_candidate(clause, text, frozenset(policy.codes), whole), known)
        if (span := span_of(clause.quote, text)) is not None:
            spans[clause.id] = clause.block, span
    for id_, fault in overlaps(spans):
        found[id_].append(fault)
    used = json.dumps([clause.criterion for clause in clauses])
    for name in there:
        if f'"{name}"' not in used:
            found[name].append("no clause uses it; take it out")
    return {id_: faults for id_, faults in found.items() if faults}


def _candidate(clause: ReviewedClause, text: str, codes: frozenset[str], whole: str) -> Candidate:
    nodes = [ExceptionNode(one.words, one.node, one.why) for one in clause.exceptions]
    return Candidate(clause.quote, clause.codes, clause.criterion, nodes, text, codes, whole)


def _fact_faults(fact: ReviewedFact, definitions: Mapping[str, FactDefinition]) -> Iterator[str]:
    if fact.name in definitions:
        yield "is defined already; use that one, or choose another name"
        return
    try:
        own = definitions_from_data({fact.name: fact.definition})
        check_definition(own[fact.name])
        yield from validate_definition(own[fact.name], {**definitions, **own})
    except CriterionError as error:
        yield str(error).removeprefix(f"fact {fact.name}: ")


def unreviewed(review: Review, file: str) -> list[str]:
    """What keeps the taken parts of a review from counting as reviewed, whatever they say."""
    found = []
    parts: list[_Decided] = [*review.facts, *review.clauses]
    taken = [part for part in parts if part.taken]
    if taken and not review.reviewed_by.strip():
        found.append(f"{file}: reviewed_by is empty; who accepted this says so")
    for part in taken:
        if part.decision == "accept" and part.digest != part.drafted:
            found.append(f"{file}: {part.named}: differs from what was drafted; set decision to edit")
    return found


def written(review: Review) -> str:
    """The text of a review file."""
    from corpus.importers.write import authored_yaml

    held = review.model_dump(mode="json")
    held["facts"] = [_ordered(fact) for fact in held["facts"]]
    held["clauses"] = [_ordered(clause) for clause in held["clauses"]]
    return HEADER + authored_yaml([{"review": held}])


def _ordered(part: Mapping[str, Any]) -> dict[str, Any]:
    """What it is, then the decision, then the rest; the digest last."""
    last = ("decision", "faults", "drafted")
    first = {key: part[key] for key in part if key in ("id", "name")}
    middle = {key: value for key, value in part.items() if key not in last and key not in first}
    return {**first, "decision": part["decision"], "faults": part["faults"], **middle, "drafted": part["drafted"]}


def read_review(path: Path) -> Review:
    """The review of a file. Raises UsageError naming the file, the place and the fault."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read ({type(error).__name__})") from None
    found = list(documents(text))
    for _, faults in found:
        if faults:
            line, message = faults[0]
            raise UsageError(f"{path}:{line or 1}: {message}")
    held = found[0][0] if len(found) == 1 else None
    if not isinstance(held, Mapping) or set(held) != {"review"}:
        raise UsageError(f"{path}: is no review file; `cda corpus draft-criteria SOURCE --out DIR` writes them")
    try:
        return Review.model_validate(_plain(held["review"]))
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        raise UsageError(f"{path}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}") from None


def _plain(value: Any) -> Any:
    """Plain mappings and lists; an author may write a code without quotes."""
    if isinstance(value, Mapping):
        return {
            key: [str(code) for code in item] if key == "codes" and isinstance(item, Sequence) else _plain(item)
            for key, item in value.items()
        }
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _digest(value: Any) -> str:
    return sha(json.dumps(value, sort_keys=True, ensure_ascii=False))[:16]
