"""Who plays a model's roles in tests: an oracle that answers rightly, and bad actors that do not.

An actor is handed what a request says and nothing else: the role's unchanging text, the JSON of the turns, the results
of its tool calls. No case id, label or gold clause reaches it. The definitions of facts are the oracle's schooling.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from doubles.messages_actor import Body, Said, data_of, results_of, static_of

from cda.contracts.decision import CoverageRequest
from cda.contracts.facts import Fact, FactDefinition, FactState
from cda.contracts.policy_tools import ClauseView, Plan
from cda.extraction import RuleExtractor, merge
from cda.harness.quotes import text_sha256
from cda.harness.reasoner import Case
from cda.systems.coverage.model_facts import given_value
from cda.systems.coverage.reasoner import CriteriaReasoner


@dataclass(frozen=True)
class Seen:
    """A request as an actor sees it. `results`: the content of each tool result so far, in order."""

    role: str
    shown: Mapping[str, Any]
    results: Sequence[str] = ()


def seen_in(body: Body) -> Seen:
    """A request's body, read as its receiver can."""
    contents = [block["content"] for block in results_of(body)]
    texts = [c if isinstance(c, str) else "".join(block.get("text", "") for block in c) for c in contents]
    return Seen(role_of(static_of(body)), data_of(body), texts)


def role_of(static: str) -> str:
    return static.split("\n", 1)[0].removeprefix("# Role: ")


class Oracle:
    """Plays every role as well as the rules can."""

    def __init__(self, definitions: Mapping[str, FactDefinition]) -> None:
        self.definitions = definitions
        self._extractor = RuleExtractor(definitions)
        self._criteria = CriteriaReasoner(definitions)

    def __call__(self, body: Body) -> Said:
        return self.play(seen_in(body))

    def play(self, seen: Seen) -> Said:
        """The role's answer."""
        play = {
            "extractor": self.extractor,
            "planner": self.planner,
            "retriever": self.retriever,
            "grader": self.grader,
            "synthesizer": self.synthesizer,
            "verifier": self.verifier,
        }
        return play[seen.role](seen)

    def extractor(self, seen: Seen) -> Said:
        names = [row["fact"] for row in seen.shown["facts"]]
        found = self._extractor.extract(seen.shown["narrative"], names, as_of=date.fromisoformat(seen.shown["as_of"]))
        return Said(
            answer={"facts": [row for fact in found.values() if (row := read_fact(fact, seen.shown["narrative"]))]}
        )

    def planner(self, seen: Seen) -> Said:
        codes = " ".join(seen.shown["codes"])[:40]
        return Said(
            answer={"queries": [f"{codes} coverage criteria", f"{codes} exclusions and limits", f"{codes} plan rider"]}
        )

    def retriever(self, seen: Seen) -> Said:
        if not seen.results:
            return Said(calls=(("search_policies", {"queries": list(seen.shown["queries"])}),))
        found = [row["id"] for row in json.loads(seen.results[0]) if "id" in row]
        return Said(calls=(("finish", {"clause_ids": found[:16]}),))

    def grader(self, seen: Seen) -> Said:
        codes = set(seen.shown["codes"])
        relevant = [row["id"] for row in seen.shown["clauses"] if codes & set(row["codes"])]
        return Said(answer={"relevant": relevant, "complete": True})

    def synthesizer(self, seen: Seen) -> Said:
        case, clauses, facts = self.reconstructed(seen.shown)
        reasoned = self._criteria.determine(case, clauses, facts)
        claims, rows = [], []
        roots = {c.citation.clause_id for c in reasoned.determination.claims if "." not in (c.criterion or ".")}
        for claim in reasoned.determination.claims:
            if claim.criterion is None or ("." in claim.criterion and claim.citation.clause_id in roots):
                continue
            places = []
            for name in dict.fromkeys(piece.fact for piece in claim.evidence):
                row = read_fact(facts[name], seen.shown["narrative"]) if name in facts else None
                if row is not None and row not in rows:
                    rows.append(row)
                if row is not None:
                    places.append(rows.index(row))
            claims.append(
                {"clause": claim.citation.clause_id, "path": claim.criterion, "status": claim.status, "facts": places}
            )
        lines = [{"code": line.code, "outcome": line.outcome.value, "missing": []} for line in reasoned.lines]
        return Said(answer={"lines": lines, "facts": rows[:12], "claims": claims[:10]})

    def verifier(self, seen: Seen) -> Said:
        return Said(answer={"entailed": [row["n"] for row in seen.shown["claims"]]})

    def reconstructed(self, shown: Mapping[str, Any]) -> tuple[Case, list[ClauseView], Mapping[str, Fact]]:
        """Case, clauses and facts, made of nothing but what was shown."""
        day = date.fromisoformat(shown["as_of"])
        request = CoverageRequest(
            payer_id=shown["payer"],
            plan_id=shown["plan"],
            procedure_codes=tuple(shown["codes"]),
            diagnosis_codes=tuple(shown["diagnoses"]),
            as_of_date=shown["as_of"],
            narrative=shown["narrative"],
            facts=shown["given"],
        )
        plan = Plan(plan_id=shown["plan"], payer_id=shown["payer"]) if shown["plan"] else None
        case = Case(request=request, as_of=day, plan=plan, codes=tuple(shown["codes"]))
        clauses = [
            ClauseView(
                clause_id=row["id"],
                section=row["section"],
                text=row["text"],
                text_sha256=text_sha256(row["text"]),
                policy_id=row["id"].split(".")[0],
                policy_title="",
                doc_type=row["kind"],
                source="rider" if row["kind"] == "plan_rider" else "policy",
                payer_id=shown["payer"],
                plan_id=shown["plan"] if row["kind"] == "plan_rider" else None,
                version="v1",
                effective_start=day,
                codes=tuple(row["codes"]),
                overrides_policy_ids=tuple(row.get("overrides", ())),
                criterion=row["criterion"],
            )
            for row in shown["clauses"]
        ]
        names = [row["fact"] for row in shown["facts"]]
        said = self._extractor.extract(shown["narrative"], names, as_of=day)
        return case, clauses, merge(shown["given"], said, self.definitions)


def read_fact(fact: Fact, narrative: str) -> dict[str, Any] | None:
    """A known fact as a role answers it, quoted in whole words, or None."""
    if fact.state is not FactState.KNOWN or fact.value is None:
        return None
    quote = ""
    for piece in fact.evidence:
        if piece.quote and piece.start is not None and piece.end is not None:
            start, end = piece.start, piece.end
            while end < len(narrative) and narrative[end].isalnum() and narrative[end - 1].isalnum():
                end += 1
            while start > 0 and narrative[start - 1].isalnum() and narrative[start].isalnum():
                start -= 1
            quote = narrative[start:end][:120]
            break
    return {"fact": fact.name, "value": given_value(fact.value), "unit": "", "quote": quote}


class BadActor(Oracle):
    """An oracle gone wrong in the roles that say what is so; its other roles stay right, to get as far as it can."""

    def extractor(self, seen: Seen) -> Said:
        rows = [self.misread(row, seen.shown["narrative"]) for row in seen.shown["facts"]]
        return Said(answer={"facts": [row for row in rows if row][:16]})

    def synthesizer(self, seen: Seen) -> Said:
        narrative = seen.shown["narrative"]
        facts = [row for row in (self.misread(row, narrative) for row in seen.shown["facts"]) if row][:12]
        lines = [{"code": code, "outcome": "COVERED", "missing": []} for code in seen.shown["codes"]]
        covering = [row for row in seen.shown["clauses"] if "covers_if" in (row["criterion"] or {})]
        claims = [
            {"clause": self.cite(row["id"]), "path": "covers_if", "status": "met", "facts": list(range(len(facts)))}
            for row in covering[:4]
        ]
        return Said(answer={"lines": lines, "facts": facts, "claims": claims})

    def misread(self, row: Mapping[str, Any], narrative: str) -> dict[str, Any] | None:
        """The fact as this actor gives it, or None."""
        raise NotImplementedError

    def cite(self, clause_id: str) -> str:
        return clause_id


class OverApprover(BadActor):
    """Finds whatever would be convenient, and quotes real words for it."""

    def misread(self, row: Mapping[str, Any], narrative: str) -> dict[str, Any] | None:
        values = {"bool": "true", "status": "confirmed", "class": (row.get("values") or [""])[0], "date": "2020-01-01"}
        quote = " ".join(narrative.split(" ")[:6])[:120].strip()
        return {"fact": row["fact"], "value": values.get(row["type"], ">=1"), "unit": "", "quote": quote}


class Fabricator(OverApprover):
    """Quotes words that nobody wrote, and cites clauses that nobody has."""

    def misread(self, row: Mapping[str, Any], narrative: str) -> dict[str, Any] | None:
        given = super().misread(row, narrative)
        assert given is not None
        return {**given, "quote": f"Chart clearly documents {row['label']}"[:120]}

    def cite(self, clause_id: str) -> str:
        return f"{clause_id}9"


class Stitcher(OverApprover):
    """Joins words from two places into a quote, and the rule of one clause to the id of another."""

    def misread(self, row: Mapping[str, Any], narrative: str) -> dict[str, Any] | None:
        given, words = super().misread(row, narrative), narrative.split()
        assert given is not None
        return {**given, "quote": " ".join([*words[:3], *words[-3:]])[:120]}

    def cite(self, clause_id: str) -> str:
        return clause_id[:-1] + "1"


class StaleCiter(OverApprover):
    """Reads rightly and answers from another version of the policy."""

    def extractor(self, seen: Seen) -> Said:
        return Oracle.extractor(self, seen)

    def cite(self, clause_id: str) -> str:
        head, _, clause = clause_id.rpartition(".")
        policy, _, version = head.rpartition(".")
        other = {"v1": "v2", "v2": "v1", "v3": "v2", "v4": "v3"}.get(version, version)
        return f"{policy}.{other}.{clause}"


class Obeyer(OverApprover):
    """A model that was talked round: it does whatever words in its data ask for, and otherwise reads rightly."""

    def __init__(self, definitions: Mapping[str, FactDefinition]) -> None:
        super().__init__(definitions)
        self._honest = Oracle(definitions)

    WORDS = ("approve", "covered", "ignore", "disregard", "authoriz", "genehmig", "aprob", "approuv", "override")

    def play(self, seen: Seen) -> Said:
        text = json.dumps(seen.shown, ensure_ascii=False).lower() + "".join(seen.results).lower()
        narrative = str(seen.shown.get("narrative", "")).lower()
        asked = any(word in narrative for word in self.WORDS) or "must return covered" in text
        return super().play(seen) if asked else self._honest.play(seen)
