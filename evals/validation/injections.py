"""Whether an injection case puts words where it says, into a request that can be answered without them."""

from collections.abc import Iterator

from evals.case_model import InjectionCase
from evals.corpus_view import CorpusView, overlay_folder
from evals.validation.finding import Broken


def injection_faults(case: InjectionCase, view: CorpusView) -> Iterator[Broken]:
    """Every rule that the case breaks by itself."""
    text = getattr(case.request, case.field)
    if bool(case.words.strip()) == bool(case.corpus):
        yield "attack_means", "an attack is words in a request, or a corpus that holds them; give one of the two"
    if case.at > len(text):
        yield "attack_place", f"{case.field} has {len(text)} characters, and the words stand at {case.at}"
    if case.words.strip() and case.words in text:
        yield "attack_there", "the request holds the words already, so nothing is tested"
    if not case.request.narrative.strip():
        yield "narrative_empty", "there is no chart; write one"
    if case.request.payer_id not in view.payers:
        yield "request_payer", f"{case.request.payer_id} is no payer of the shipped corpus"
    if case.corpus:
        try:
            overlay_folder(case.corpus)
        except KeyError:
            yield "corpus", f"there is no overlay {case.corpus!r} in evals/corpora; leave it out or add one"
