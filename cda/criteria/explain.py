"""Why the same line comes out differently on two dates: which version, rider, criterion or fact changed.

Only what concerns this member is compared: alternatives for another condition than hers are left out on both sides.
"""

from collections.abc import Collection, Iterator, Mapping
from datetime import date

from cda.contracts.decision import Difference
from cda.contracts.facts import Fact, FactState
from cda.criteria.citing import Deciding
from cda.criteria.evaluate import Node
from cda.criteria.line import LineEvaluation
from cda.criteria.rules import Role

_NONE = "none"
_Key = tuple[str, Role, str]
_Asked = Mapping[_Key, tuple[Deciding, Node]]
"""(policy, role, words of a requirement) to where it stands."""


def differences(one: LineEvaluation, other: LineEvaluation) -> tuple[Difference, ...]:
    """What differs between the evaluations of one line on two dates: versions, then riders, criteria and facts, each
    in the order of their ids. Empty when the same rules met the same facts."""
    both = {entry.policy_id for entry in one.considered} & {entry.policy_id for entry in other.considered}
    before, after = dict(_asked(one, both)), dict(_asked(other, both))
    return (
        *_versions(one, other),
        *_riders(one, other),
        *_criteria(before, after, one, other),
        *_facts(before, after, one, other),
    )


def _versions(one: LineEvaluation, other: LineEvaluation) -> Iterator[Difference]:
    before = {entry.policy_id: entry for entry in one.considered}
    after = {entry.policy_id: entry for entry in other.considered}
    for policy_id in sorted(before.keys() | after.keys()):
        first, second = before.get(policy_id), after.get(policy_id)
        if first and second and first.version == second.version:
            continue
        text = f"On {one.as_of} {_governs(policy_id, first)}; on {other.as_of} {_governs(policy_id, second)}."
        yield _difference("version", _version(first), _version(second), text)


def _governs(policy_id: str, entry: Deciding | None) -> str:
    if entry is None:
        return f"no version of {policy_id} governs the code"
    return f"{policy_id} {entry.version} governs ({_window(entry.effective_start, entry.effective_end)})"


def _window(start: date | None, end: date | None) -> str:
    return f"in effect {start} to {end}" if end else f"in effect from {start}"


def _version(entry: Deciding | None) -> str:
    return f"{entry.policy_id} {entry.version}" if entry else _NONE


def _riders(one: LineEvaluation, other: LineEvaluation) -> Iterator[Difference]:
    for clause_id in sorted(set(one.riders) ^ set(other.riders)):
        here, there = (clause_id, _NONE) if clause_id in one.riders else (_NONE, clause_id)
        with_it, without_it = (one, other) if clause_id in one.riders else (other, one)
        text = f"Rider clause {clause_id} applies on {with_it.as_of} and does not on {without_it.as_of}."
        yield _difference("rider", here, there, text)


def _criteria(before: _Asked, after: _Asked, one: LineEvaluation, other: LineEvaluation) -> Iterator[Difference]:
    """Requirements that stand on one date only; those about the same fact are told as one change."""
    gone = [key for key in before if key not in after]
    new = [key for key in after if key not in before]
    for key in gone:
        entry, node = before[key]
        same = next((k for k in new if k[:2] == key[:2] and node.fact and after[k][1].fact == node.fact), None)
        if same is None:
            text = f"{_says(entry, node, one)}. On {other.as_of} no clause at issue says so."
            yield _difference("criterion", node.label, _NONE, text)
        else:
            new.remove(same)
            successor, changed = after[same]
            text = f"{_says(entry, node, one)}. {_says(successor, changed, other)}."
            yield _difference("criterion", node.label, changed.label, text)
    for key in new:
        entry, node = after[key]
        text = f"{_says(entry, node, other)}. On {one.as_of} no clause at issue says so."
        yield _difference("criterion", _NONE, node.label, text)


def _says(entry: Deciding, node: Node, line: LineEvaluation) -> str:
    verb = {Role.EXCLUDES: "excludes", Role.LIMIT: "limits", Role.SCOPE: "reaches"}.get(entry.role, "requires")
    return f"On {line.as_of} {entry.clause_id} {verb}: {node.label}"


def _facts(before: _Asked, after: _Asked, one: LineEvaluation, other: LineEvaluation) -> Iterator[Difference]:
    """Requirements of both dates that came to different truths, and what the chart gives for them."""
    for key in sorted(before.keys() & after.keys()):
        first, second = before[key][1], after[key][1]
        if first.truth is second.truth:
            continue
        here, there = _found(first, one), _found(second, other)
        words = [node.truth.word.replace("_", " ") for node in (first, second)]
        text = f"{first.label}: {words[0]} on {one.as_of} ({here}), {words[1]} on {other.as_of} ({there})."
        yield _difference("fact", here, there, text)


def _found(node: Node, line: LineEvaluation) -> str:
    fact: Fact | None = line.facts.get(node.fact) if node.fact else None
    if fact is None or fact.state is FactState.UNKNOWN:
        return "presumed" if node.presumed else "unknown"
    return str(fact.value) if fact.state is FactState.KNOWN else "conflict"


def _asked(line: LineEvaluation, policies: Collection[str]) -> Iterator[tuple[_Key, tuple[Deciding, Node]]]:
    for entry in line.considered:
        if entry.at_issue and entry.policy_id in policies:
            for node in _requirements(entry.tree):
                yield (entry.policy_id, entry.role, node.label), (entry, node)


def _requirements(node: Node) -> Iterator[Node]:
    """The single requirements of an explanation, each with what lifts it; constants require nothing."""
    if node.kind == "waivable":
        requirement, when = node.children
        yield node._replace(label=f"{node.label}, unless {when.label}", fact=requirement.fact)
    elif node.kind == "waived":
        yield from _requirements(node.children[0])
    elif node.kind == "not" or not node.children:
        yield from () if node.kind == "const" else (node,)
    else:
        for child in node.children:
            yield from _requirements(child)


def _difference(kind: str, before: str, after: str, text: str) -> Difference:
    return Difference.model_validate({"kind": kind, "from": before, "to": after, "text": text})
