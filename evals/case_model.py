"""What a case is: the fixed forms of everything in `evals/cases`. Unknown keys are errors.

A case holds what is asked and what was authored as the answer, and nothing that the product computed.
"""

from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

Outcome = Literal["COVERED", "NOT_COVERED", "INSUFFICIENT_EVIDENCE"]
GateState = Literal["DETERMINE", "REVIEW", "REFUSE", "HALT"]
Step = Literal[
    "exists", "quote_verbatim", "quote_whole", "in_effect_on_as_of", "governs_request", "supports_claim"
]  # fmt: skip
Law = Literal[
    "reorder_sentences", "irrelevant_history", "change_units", "synonyms", "cross_boundary", "add_deciding_fact"
]  # fmt: skip
RetrievalKind = Literal["paraphrase", "code_only", "polarity", "superseded_twin", "wrong_payer_twin", "literal"]
REQUEST_FIELDS = (
    "payer_id",
    "plan_id",
    "procedure_codes",
    "diagnosis_codes",
    "as_of_date",
    "narrative",
    "question",
    "facts",
    "field_confidence",
)
STEPS: tuple[str, ...] = get_args(Step)
SAME_LAWS: frozenset[str] = frozenset({"reorder_sentences", "irrelevant_history", "change_units", "synonyms"})


class CaseModel(BaseModel):
    """Base of the case forms: immutable, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Asked(CaseModel):
    """The request of a case, as `cda ask` takes it. What is empty here is meant to be: a halt may be what is tested."""

    payer_id: str = ""
    plan_id: str | None = None
    procedure_codes: tuple[str, ...] = ()
    diagnosis_codes: tuple[str, ...] = ()
    as_of_date: str = ""
    narrative: str = ""
    question: str = ""
    facts: dict[str, Any] | None = None
    field_confidence: dict[str, float] | None = None

    def request(self) -> dict[str, Any]:
        """The JSON object of the request, what is None left out."""
        return {name: value for name in REQUEST_FIELDS if (value := getattr(self, name)) is not None}


class CoverageCase(Asked):
    """One question with its authored outcome, gate and gold clauses.

    trap: what the case probes, free words ("T1", "near-miss clause"). stress: what makes its chart hard to read, tags
    ("ocr", "hedged", "injection"). style: how the narrative is written. origin: the authored pattern it was expanded
    from. disputed: why its label may be quarrelled with; it is scored with and without. labelled_facts: what the author
    read out of the narrative (never asked; `facts` are).
    expected_reasons: kinds that the gate must give ("source_conflict"); expected_halt: the field the halt must name.
    corpus: an overlay of `evals/corpora` that is added to the shipped policies for this case; "" for none.
    """

    case_id: str = Field(min_length=1, max_length=200)
    trap: str = ""
    expected_outcome: Outcome
    expected_gate: GateState
    gold_clause_ids: tuple[str, ...] = ()
    rationale: str = ""
    stress: tuple[str, ...] = ()
    style: str = ""
    origin: str = ""
    disputed: str = ""
    labelled_facts: dict[str, Any] | None = None
    expected_reasons: tuple[str, ...] = ()
    expected_halt: str = ""
    corpus: str = ""


class MetamorphicPair(CaseModel):
    """Two questions and the law between their answers.

    The laws of `SAME_LAWS` hold when both answers have the same outcome and gate; the others hold when each answer is
    the one expected of it, and the two expectations differ. Both are also scored as coverage cases, under the ids that
    they carry.
    """

    pair_id: str
    law: Law
    base: CoverageCase
    twin: CoverageCase

    @property
    def unchanged(self) -> bool:
        """The law says that nothing changes."""
        return self.law in SAME_LAWS

    @model_validator(mode="after")
    def _expectations_follow_the_law(self) -> "MetamorphicPair":
        same = (self.base.expected_outcome, self.base.expected_gate) == (
            self.twin.expected_outcome,
            self.twin.expected_gate,
        )
        if same != self.unchanged:
            raise ValueError(f"{self.pair_id}: the two expectations do not fit the law {self.law}")
        return self


class PlantedEvidence(CaseModel):
    """A fact shown by a planted claim; its place is looked up in the narrative unless `start` and `end` are given."""

    fact: str
    value: Any
    quote: str = ""
    start: int | None = None
    end: int | None = None


class PlantedClaim(CaseModel):
    """A claim as planted. `quote` None is the clause's whole text. Offsets and hash are those of the quote in the
    clause as the corpus has it, unless given (a wrong one is a fault that can be planted)."""

    text: str
    clause_id: str
    quote: str | None = None
    criterion: str | None = None
    status: Literal["met", "not_met", "unknown", "presumed"]
    evidence: tuple[PlantedEvidence, ...] = ()
    start: int | None = None
    end: int | None = None
    clause_sha256: str | None = None


class PlantedConflict(CaseModel):
    """A conflict that a planted answer notes."""

    kind: Literal["source", "fact"]
    text: str
    clause_ids: tuple[str, ...] = ()
    changes_answer: bool = False


class PlantedAnswer(CaseModel):
    """An answer handed to verifier and gate in a reasoner's place.

    lines: outcome by code, when it is not the whole's outcome for each requested code. review_reasons: what the
    reasoner itself raises ("routed_here: ..."), on every line. refusal: why a refused line is refused.
    """

    outcome: Outcome
    summary: str = "A planted answer."
    confidence: float = 0.95
    claims: tuple[PlantedClaim, ...] = ()
    gap: str | None = None
    noted_conflicts: tuple[PlantedConflict, ...] = ()
    lines: dict[str, Outcome] | None = None
    review_reasons: tuple[str, ...] = ()
    refusal: str | None = None


class VerifierCase(CaseModel):
    """An answer with one planted fault, and what must catch it.

    caught_by: "verifier.STEP" (the named claim's first failed step), "gate.KIND" (a kind among the gate's reasons),
    "halt.FIELD" (the field the halt names; no answer is needed then), or "" for a sound answer that must pass as it
    stands. claim: place of the faulty claim, from 0. expected_gate: what the gate must then say.
    """

    case_id: str = Field(min_length=1, max_length=200)
    fault: str
    caught_by: str = Field(pattern=r"^(verifier\.[a-z_]+|gate\.[a-z_]+|halt\.[a-z_]+|)$")
    claim: int = 0
    expected_gate: GateState = "REVIEW"
    request: Asked
    answer: PlantedAnswer | None = None
    rationale: str = ""

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> "VerifierCase":
        if self.answer is None and not self.caught_by.startswith("halt."):
            raise ValueError(f"{self.case_id}: only a halt is caught without an answer")
        kind, _, name = self.caught_by.partition(".")
        if kind == "verifier" and name not in STEPS:
            raise ValueError(f"{self.case_id}: {name} is none of the verifier's steps {', '.join(STEPS)}")
        return self


class RetrievalCase(CaseModel):
    """One query with the clauses that answer it.

    gold: must be found within 8. also: help, without being needed. never: must not be returned at all (superseded,
    another payer's, another plan's). rival: a clause of opposite polarity that must rank below the gold ones. split:
    `tune` may shape a setting, `held_out` may not.
    """

    case_id: str = Field(min_length=1, max_length=200)
    kind: RetrievalKind
    query: str
    payer_id: str | None = None
    plan_id: str | None = None
    as_of_date: str | None = None
    procedure_codes: tuple[str, ...] = ()
    gold_clause_ids: tuple[str, ...]
    also_clause_ids: tuple[str, ...] = ()
    never_clause_ids: tuple[str, ...] = ()
    rival_clause_ids: tuple[str, ...] = ()
    split: Literal["tune", "held_out"] = "held_out"
    rationale: str = ""


InjectionFamily = Literal[
    "directive", "bracketed", "role_play", "forged_clause", "forged_result", "forged_request", "encoded", "hidden",
    "mixed_script", "language", "pressure", "false_fact", "policy_text", "look_alike",
]  # fmt: skip


class InjectionCase(CaseModel):
    """One request asked twice: as it is, and with `words` put into a field at a place (code points), or over a corpus
    whose clauses address the reader. A look-alike holds words that only resemble an attack."""

    case_id: str = Field(min_length=1, max_length=200)
    family: InjectionFamily
    request: Asked
    words: str = ""
    field: Literal["narrative", "question"] = "narrative"
    at: int = Field(default=0, ge=0)
    corpus: str = ""

    @property
    def hostile(self) -> bool:
        """An attack, and no look-alike."""
        return self.family != "look_alike"

    def attacked(self) -> dict[str, Any]:
        """The request with the words in it."""
        text: str = getattr(self.request, self.field)
        return self.request.request() | {self.field: text[: self.at] + self.words + text[self.at :]}
