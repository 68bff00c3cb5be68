"""Large corpora for measuring: many payers, versions, windows, riders and codes, the same for the same seed.

The clauses read like policy bulletins and say nothing true; they have no criteria, so that nothing is ever decided
from them. Ids, windows and codes keep every rule of an authored corpus.
"""

from collections.abc import Iterator
from datetime import date, timedelta
from random import Random

from corpus.contents import Contents
from corpus.model import Clause, Code, DateState, DocType, Payer, PlanRecord, VersionRecord

WORDS_MIN, WORDS_MAX = 45, 90  # the length of a clause, in words

_SENTENCE_MAX = 24  # words of the longest sentence below, so that one more never passes WORDS_MAX
_EPOCH = date(2015, 1, 1)
_PLANS = ("PPO-GOLD", "PPO-STD", "HMO-BASE", "EPO-VALUE")
_SECTIONS = ("Scope", "Coverage Criteria", "Coverage Criteria", "Coverage Criteria", "Limitations", "Exclusions")
_SERVICES = (
    "negative pressure wound therapy", "spinal cord stimulation", "hyperbaric oxygen therapy", "cardiac rehabilitation",
    "capsule endoscopy", "intravenous immune globulin", "bone growth stimulation", "cochlear implantation",
    "sacral nerve stimulation", "bariatric surgery", "transcranial magnetic stimulation", "pneumatic compression",
    "home oxygen therapy", "speech generating devices", "power wheelchairs", "insulin pumps",
    "external cardiac monitoring",
    "botulinum toxin injection", "epidural steroid injection", "radiofrequency ablation", "autologous cell therapy",
    "molecular tumor profiling", "allergen immunotherapy", "enteral nutrition", "orthotic bracing", "lymphedema pumps",
)  # fmt: skip
_CONDITIONS = (
    "chronic venous ulcers", "refractory epilepsy", "severe persistent asthma", "rotator cuff tears", "heart failure",
    "peripheral artery disease", "chronic kidney disease", "ulcerative colitis", "treatment-resistant depression",
    "multiple sclerosis", "plaque psoriasis", "urinary incontinence", "chronic migraine", "diabetic foot ulcers",
    "spinal stenosis", "sensorineural hearing loss", "obesity with comorbidity", "atrial fibrillation",
    "chronic obstructive pulmonary disease", "primary immunodeficiency", "spasticity after stroke", "osteoporosis",
)  # fmt: skip
_TRIALS = (
    "physical therapy", "first-line medication", "compression therapy", "dietary counseling", "home exercise",
    "inhaled corticosteroids", "oral anticoagulation", "splinting", "behavioral therapy", "topical treatment",
)  # fmt: skip
_FINDINGS = (
    "imaging within the prior {n} months", "a specialist evaluation", "two office visits in {n} months",
    "laboratory results above the reference range", "a functional assessment", "a documented treatment plan",
    "photographs and measurements", "a sleep diary of {n} weeks", "pulmonary function testing",
)  # fmt: skip
_SENTENCES = (
    "{Service} is considered medically necessary for members with {condition} when the following are documented.",
    "The member has completed at least {n} weeks of {trial} without improvement, unless {trial} is contraindicated.",
    "The medical record includes {finding} and {finding2}.",
    "Requests for more than {n} units per {m} days require additional documentation of medical necessity.",
    "{Service} is not covered for {condition2}, except when {finding} supports the request.",
    "Continuation beyond {n} months requires evidence that the member has improved by {m} percent or more.",
    "The member is {m} years of age or older and is not a candidate for {service2}.",
    "Repeat treatment within {n} months of an earlier course is considered not medically necessary.",
    "The ordering provider reviews the response at week {n} and documents whether {trial} should resume.",
    "{Service} performed together with {service2} is reviewed on an individual basis.",
)


def synthesize(clauses: int, seed: int) -> Contents:
    """Return a corpus of exactly `clauses` clauses, at least 1, that depends on the two numbers alone."""
    if clauses < 1:
        raise ValueError("a corpus has at least one clause")
    return _Synthesis(Random(seed)).run(clauses)  # noqa: S311 -- reproducible test data, no secret


class _Synthesis:
    """Draws policies payer by payer until there are enough clauses."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._versions: list[VersionRecord] = []
        self._clauses: list[Clause] = []
        cpt = sorted(f"{number:05d}" for number in rng.sample(range(10000, 99999), 3000))
        hcpcs = sorted(f"{letter}{number:04d}" for letter in "AEJL" for number in rng.sample(range(10000), 250))
        self._codes = [*(Code(code, "CPT") for code in cpt), *(Code(code, "HCPCS") for code in hcpcs)]

    def run(self, wanted: int) -> Contents:
        payers = [Payer(f"SY{number:02d}", f"Synthetic Payer {number:02d}") for number in range(1, 3 + wanted // 5000)]
        plans = [PlanRecord(f"{payer.payer_id}-{name}", payer.payer_id) for payer in payers for name in _PLANS]
        number = 0
        while len(self._clauses) < wanted:
            number += 1
            payer = payers[number % len(payers)].payer_id
            policy = self._policy(payer, number, wanted)
            if policy is not None and number % 12 == 0 and len(self._clauses) < wanted:
                self._rider(payer, number, policy, wanted)
        policies = {version.policy_id for version in self._versions if version.source == "policy"}
        undated = sum(clause.date_state is DateState.UNDATED for clause in self._clauses)
        figures = {
            "payers": len(payers),
            "plans": len(plans),
            "policies": len(policies),
            "versions": sum(version.source == "policy" for version in self._versions),
            "riders": sum(version.source == "rider" for version in self._versions),
            "clauses": wanted,
            "codes": len(self._codes),
            "date_states": {"DATED": wanted - undated, "UNDATED": undated, "AMBIGUOUS": 0},
        }
        return Contents(
            payers=tuple(payers),
            plans=tuple(plans),
            codes=tuple(self._codes),
            versions=tuple(self._versions),
            clauses=tuple(self._clauses),
            facts={},
            corpora={"synth": figures},
        )

    def _policy(self, payer: str, number: int, wanted: int) -> VersionRecord | None:
        """One policy with its versions, without overlap or gap; the last DATED one is open three times in four."""
        rng = self._rng
        faq = number % 20 == 0
        service = rng.choice(_SERVICES)
        codes = tuple(code.code for code in rng.sample(self._codes, rng.randint(1, 6)))
        last: VersionRecord | None = None
        start = _EPOCH + timedelta(days=rng.randrange(2500))
        count = rng.randint(1, 4)
        for index in range(1, count + 1):
            if len(self._clauses) >= wanted:
                break
            undated = rng.randrange(33) == 0
            end = start + timedelta(days=rng.randint(180, 900))
            open_ended = index == count and rng.randrange(4) > 0
            base = VersionRecord(
                policy_id=f"{payer}-{'FAQ' if faq else 'MP'}-{number:05d}",
                policy_title=service.title(),
                doc_type=DocType.FAQ if faq else DocType.BULLETIN,
                source="policy",
                payer_id=payer,
                plan_id=None,
                version=f"v{index}",
                effective_start=None if undated else start,
                effective_end=None if undated or open_ended else end,
                date_state=DateState.UNDATED if undated else DateState.DATED,
                window_provenance="posted" if open_ended else "next_version",
                codes=codes,
            )
            last = self._write(base, f"{base.policy_id}.v{index}", service, rng.randint(3, 8), wanted)
            if not undated:
                start = end + timedelta(days=1)
        return last

    def _rider(self, payer: str, number: int, policy: VersionRecord, wanted: int) -> None:
        rider_id = f"{payer}-RID-{number:05d}"
        base = VersionRecord(
            policy_id=rider_id,
            policy_title=f"Rider to {policy.policy_title}",
            doc_type=DocType.RIDER,
            source="rider",
            payer_id=payer,
            plan_id=f"{payer}-{self._rng.choice(_PLANS)}",
            version="v1",
            effective_start=_EPOCH + timedelta(days=self._rng.randrange(3650)),
            effective_end=None,
            codes=policy.codes,
            overrides_policy_ids=(policy.policy_id,),
        )
        self._write(base, rider_id, policy.policy_title.lower(), self._rng.randint(1, 2), wanted)

    def _write(self, base: VersionRecord, owner: str, service: str, count: int, wanted: int) -> VersionRecord:
        count = min(count, wanted - len(self._clauses))
        clauses = [self._clause(base, f"{owner}.C{index}", index, service) for index in range(1, count + 1)]
        self._clauses += clauses
        fields = {name: getattr(base, name) for name in VersionRecord.__slots__ if name != "clause_ids"}
        self._versions.append(VersionRecord(**fields, clause_ids=tuple(clause.clause_id for clause in clauses)))
        return self._versions[-1]

    def _clause(self, base: VersionRecord, clause_id: str, index: int, service: str) -> Clause:
        rider = base.source == "rider"
        section = "Rider" if rider else _SECTIONS[(index - 1) % len(_SECTIONS)]
        return Clause(
            clause_id=clause_id,
            section="Frequently Asked Questions" if base.doc_type is DocType.FAQ else section,
            text=" ".join(self._sentences(service)),
            policy_id=base.policy_id,
            policy_title=base.policy_title,
            doc_type=base.doc_type,
            source=base.source,
            payer_id=base.payer_id,
            plan_id=base.plan_id,
            version=base.version,
            effective_start=base.effective_start,
            effective_end=base.effective_end,
            date_state=base.date_state,
            window_provenance=base.window_provenance,
            codes=tuple(sorted(self._rng.sample(base.codes, self._rng.randint(1, len(base.codes))))),
            overrides_policy_ids=base.overrides_policy_ids,
        )

    def _sentences(self, service: str) -> Iterator[str]:
        words, enough = 0, self._rng.randint(WORDS_MIN, WORDS_MAX - _SENTENCE_MAX)
        while words < enough:
            sentence = self._sentence(service)
            words += len(sentence.split())
            yield sentence

    def _sentence(self, service: str) -> str:
        rng = self._rng
        return rng.choice(_SENTENCES).format(
            Service=service.capitalize(),
            service2=rng.choice(_SERVICES),
            condition=rng.choice(_CONDITIONS),
            condition2=rng.choice(_CONDITIONS),
            trial=rng.choice(_TRIALS),
            finding=rng.choice(_FINDINGS).format(n=rng.randint(2, 12)),
            finding2=rng.choice(_FINDINGS).format(n=rng.randint(2, 12)),
            n=rng.randint(2, 24),
            m=rng.randint(5, 90),
        )
