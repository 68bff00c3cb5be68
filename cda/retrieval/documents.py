"""A clause as the index takes it: the text that is embedded and searched, its record's fields, and the hash of both.

The hash is what makes a hit trustworthy: it covers every field and word that went into the index, so a clause that
has since changed in its text or in its dates is dropped at hydration instead of being answered from a stale filter.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from hashlib import sha256
from typing import Protocol, TypeVar

from backends.schema import CODES_NONE, JURISDICTION_ANY, PLAN_ANY, UNNAMED, Meta, window
from cda.contracts.policy_tools import ClauseView
from cda.retrieval.codes import all_forms, codes_in
from cda.retrieval.words import stems
from corpus.model import Clause, DateState

T = TypeVar("T")
_KEPT = 1024
_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False)


def _once_a_clause(make: Callable[[Clause], T]) -> Callable[[Clause], T]:
    """`make`, remembered for the very clause object it was made of: a store gives equal rows as one immutable object,
    and a clause that was read as another object, whatever its id, is made anew. At most _KEPT clauses are held."""
    held: dict[str, tuple[Clause, T]] = {}

    def made(clause: Clause) -> T:
        known = held.get(clause.clause_id)
        if known is not None and known[0] is clause:
            return known[1]
        if len(held) >= _KEPT:
            held.clear()
        value = make(clause)
        held[clause.clause_id] = clause, value
        return value

    return made


class ClauseStore(Protocol):
    """The text store of the policy collection, as far as search needs it."""

    @property
    def digest(self) -> str:
        """Over everything in the store; an index belongs to one digest."""
        ...

    def clauses_of(self, clause_ids: Collection[str]) -> Mapping[str, Clause]:
        """Those of these ids that it has, by id, in one read."""
        ...

    def clauses(self) -> Iterator[Clause]:
        """All clauses, sorted by id."""
        ...


def indexed_text(clause: Clause) -> str:
    """What is embedded and what the words are searched in."""
    return f"{clause.policy_title}. {clause.section}. {clause.text}"


def own_codes(clause: Clause) -> list[str]:
    """The codes this clause governs, in every form, and the ids of itself, its version and its policy."""
    ids = (clause.clause_id, f"{clause.policy_id}.{clause.version}", clause.policy_id)
    return [*all_forms(clause.codes), *(name.upper() for name in ids)]


def said_codes(clause: Clause) -> list[str]:
    """The codes and ids that the text only mentions."""
    return codes_in(f"{clause.policy_title} {clause.text}")


def meta_of(clause: Clause) -> Meta:
    """The filterable fields: every one written, with its sentinel where nothing applies."""
    start, end = window(clause.effective_start, clause.effective_end, dated=clause.date_state is DateState.DATED)
    return {
        "payer_id": clause.payer_id,
        "policy_id": clause.policy_id,
        "version": clause.version or UNNAMED,
        "section": clause.section or UNNAMED,
        "source": clause.source,
        "doc_type": clause.doc_type.value,
        "plan_id": clause.plan_id or PLAN_ANY,
        "codes": clause.codes or (CODES_NONE,),
        "jurisdiction": clause.jurisdiction or (JURISDICTION_ANY,),
        "effective_start_i": start,
        "effective_end_i": end,
    }


def content_hash(clause: Clause, meta: Meta | None = None) -> str:
    """Hex sha256 over the indexed text and the fields; `meta` spares a caller who has the fields their making."""
    held = [clause.clause_id, indexed_text(clause), meta or meta_of(clause)]
    return sha256(_CANONICAL.encode(held).encode("utf-8")).hexdigest()


@_once_a_clause
def hash_read(clause: Clause) -> str:
    """The `content_hash` of a clause that a store gave."""
    return content_hash(clause)


@_once_a_clause
def stems_of(clause: Clause) -> frozenset[str]:
    """The stems of its indexed text."""
    return frozenset(stems(indexed_text(clause)))


@_once_a_clause
def view_of(clause: Clause) -> ClauseView:
    """The clause as the policy tools answer with it."""
    return ClauseView(
        clause_id=clause.clause_id,
        section=clause.section,
        text=clause.text,
        text_sha256=clause.text_sha256,
        policy_id=clause.policy_id,
        policy_title=clause.policy_title,
        doc_type=clause.doc_type.value,
        source="rider" if clause.source == "rider" else "policy",
        payer_id=clause.payer_id,
        plan_id=clause.plan_id,
        version=clause.version,
        effective_start=clause.effective_start,
        effective_end=clause.effective_end,
        date_state=clause.date_state.value,
        implementation_date=clause.implementation_date,
        retirement_date=clause.retirement_date,
        jurisdiction=clause.jurisdiction,
        codes=clause.codes,
        codes_linkage="ours" if clause.codes_linkage == "ours" else "policy",
        overrides_policy_ids=clause.overrides_policy_ids,
        source_ref=clause.source_ref,
        criterion=clause.criterion,
    )
