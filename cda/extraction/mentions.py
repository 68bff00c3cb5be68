"""Where a note speaks of a fact: by phrases, by quantities near an anchor, by measured values."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import cached_property
from math import inf

from cda.contracts.facts import Interval
from cda.extraction.kin import wholly_of_relative
from cda.extraction.language import Language
from cda.extraction.lexicon import Form, Lexicon
from cda.extraction.note import Note, Sentence
from cda.extraction.phrases import Phrase
from cda.extraction.quantities import QuantityReader
from cda.extraction.scope import FoundCue, ScopeReader
from cda.extraction.standing import Mention, Standing, judge
from cda.extraction.units import Quantity

Span = tuple[int, int]
Cover = tuple[Span, frozenset[str] | None]
_NO_WORDS: frozenset[str] = frozenset()
_LIST_BEFORE = re.compile(r"(?:\b(?:and|or|plus|with)|[/+&])[ \x00]*$")
_LIST_AFTER = re.compile(r"[ \x00]*(?:(?:and|or|plus|as well as)\b|[/+&])")
# how near, in characters, a term stands to a quantity that is plainly its own: "Enbrel for 2 years"
_TOUCHING = 8
TRAILING = " \x00,.:;-(/'\"*"


class Reader:
    """Reads the mentions of facts in one note; sentences, cues and quantities are read once and shared."""

    def __init__(self, note: Note, language: Language, quantities: QuantityReader) -> None:
        self.note = note
        self._scope = ScopeReader(language)
        self._language = language
        self._quantities = quantities
        self._cues: dict[int, list[FoundCue]] = {}
        self._read: dict[int, list[Quantity]] = {}
        self._spans: dict[int, list[tuple[Span, int]]] = {}  # by the identity of a lexicon's group

    def quantities(self, sentence: Sentence) -> list[Quantity]:
        """The quantities of a sentence."""
        if sentence.start not in self._read:
            self._read[sentence.start] = self._quantities.read(self.note, sentence)
        return self._read[sentence.start]

    def cues(self, sentence: Sentence) -> list[FoundCue]:
        """The cues of a sentence."""
        if sentence.start not in self._cues:
            self._cues[sentence.start] = self._scope.cues(self.note, sentence)
        return self._cues[sentence.start]

    def spans(self, phrases: tuple[Phrase, ...]) -> list[tuple[Span, int]]:
        """The spans of the phrases with the index of the phrase."""
        if (found := self._spans.get(id(phrases))) is None:
            found = self._spans[id(phrases)] = []
            for worth in self.note.worth_trying(phrases):
                for match in self.note.matches(worth):
                    if words := match[0]:
                        start = match.start()
                        found.append(((start, start + len(words.rstrip(TRAILING))), worth.place))
        return found

    def by_sentence(self, spans: Iterable[Span]) -> Mapping[int, list[Span]]:
        """The spans by the start of their sentence, which none of them leaves.

        Spans are only ever compared within a sentence: over a long chart, all against all would take minutes.
        """
        found: dict[int, list[Span]] = {}
        for span in spans:
            found.setdefault(self.note.sentence_at(span[0]).start, []).append(span)
        return found

    def of_relative(self, span: Span) -> bool:
        """True in a sentence that is wholly about a relative: what it says is no word on the patient, nor a doubt."""
        return bool(self._relatives) and self.note.sentence_at(span[0]).start in self._relatives

    @cached_property
    def _relatives(self) -> frozenset[int]:
        lines = [(s.start, self.note.norm[s.start : s.end]) for s in self.note.sentences]
        after = [*(line for _, line in lines[1:]), ""]
        return frozenset(
            start for (start, line), following in zip(lines, after, strict=False) if wholly_of_relative(line, following)
        )

    def sayings(self, lexicon: Lexicon) -> list[Mention]:
        """Mentions by phrases. Of overlapping phrases the longest speaks; a mask silences what it covers."""
        sayings, said = lexicon.sayings, lexicon.said
        if lexicon.noted_sayings and self.spans(lexicon.noted):
            sayings, said = sayings + lexicon.noted_sayings, lexicon.noted_said
        rivals = self.by_sentence(span for span, _ in self.spans(lexicon.rivals))
        candidates = [
            (span, i)
            for span, i in self.spans(said)
            if not any(self._crosses(span, rival) for rival in self._beside(span, rivals))
        ]
        masks = [(span, -1) for span, _ in self.spans(lexicon.masks)]
        ranked = [(span, i, not (i < 0 or sayings[i].own)) for span, i in candidates + masks]
        chosen = _longest(ranked)
        covers: dict[Span, frozenset[str] | None] = {
            span: None if i < 0 else sayings[i].phrase.spoken for span, i in chosen if i < 0 or sayings[i].own
        }
        covered = self.by_sentence(covers)
        members = self.by_sentence(span for span, _ in self.spans(lexicon.group)) if lexicon.group else {}
        found = []
        for span, index in chosen:
            if index >= 0:
                saying = sayings[index]
                mention = Mention(saying.value, *span, own=saying.own, dated=self._day_of(lexicon, span))
                explained = [(s, covers[s]) for s in self._beside(span, covered)]
                explained.append((span, saying.phrase.spoken))
                found.append(self.place(lexicon, mention, [span], explained, self._beside(span, members)))
        return found

    def _beside(self, span: Span, spans: Mapping[int, list[Span]]) -> Sequence[Span]:
        """Of spans by sentence, those of the sentence that holds `span`."""
        return spans.get(self.note.sentence_at(span[0]).start, ()) if spans else ()

    def place(
        self,
        lexicon: Lexicon,
        mention: Mention,
        parts: Sequence[Span],
        covered: Sequence[Cover] = (),
        members: Sequence[Span] = (),
    ) -> Mention:
        """The mention with its standing, as the context of each of its parts decides."""
        kinds: dict[str, FoundCue] = {}
        start, end = mention.start, mention.end
        sentence = self.note.sentence_at(mention.start)
        answer = self._answer(mention, sentence) if not lexicon.is_quantity else None
        if answer:
            covered = [*covered, ((mention.end, answer[2]), None)]
        for part in parts:
            setting = self._scope.setting(
                self.note,
                sentence,
                part,
                found=self.cues(sentence),
                covered=covered,
                members=members,
                accepts=lexicon.accepts,
            )
            start, end = min(start, setting.start), max(end, setting.end)
            for kind, cue in setting.kinds.items():
                kinds.setdefault(kind, cue)
        words = {kind: self.note.text[cue.start : cue.end] for kind, cue in kinds.items()}
        if self._on_unticked_line(sentence, mention):
            words.setdefault("unticked", "an empty box")
        if sentence.mood:
            words.setdefault(sentence.mood, "a sentence without end" if sentence.run_on else f"{sentence.mood} section")
        if answer:
            words.pop("guard", None)
            words.setdefault(answer[0], answer[1])
            end = max(end, answer[2])
        placed = judge(lexicon, mention._replace(start=start, end=end), words)
        return placed._replace(now="now" in words and "past" not in words)

    def _on_unticked_line(self, sentence: Sentence, mention: Mention) -> bool:
        """True on a line of boxes (`( ) csDMARD >= 3 months, no response`) when the mention's own box is empty."""
        line = self.note.norm[sentence.start : mention.start].rpartition(";")[2]
        return line.lstrip(" \x00-*").startswith(("\x02", "\x03")) and line.rfind("\x03") > line.rfind("\x02")

    def _answer(self, mention: Mention, sentence: Sentence) -> tuple[str, str, int] | None:
        """A form's answer behind (or a box before) the mention: `CHF: N`, `CHF (-)`, `[ ] CHF`."""
        head = self.note.norm[sentence.start : mention.start].rstrip()
        whole = self.note.norm[sentence.start : sentence.end]
        after = mention.end + self.note.norm.startswith(")", mention.end)
        boxed_first = "[-]" in whole and head.endswith(("[-]", "\x02")) and not _signs_follow(whole)
        for kind, pattern in self._language.answers.items():
            if boxed_first:
                break
            if match := pattern.match(self.note.norm, after, sentence.end):
                return kind, self.note.text[match.start() : match.end()].strip(), match.end()
        if whole.rstrip().endswith(("\x02", "\x03")):
            # Boxes behind their labels: `CHF [ ]  COPD [x]`.
            own = next((sign for sign in self.note.norm[mention.end : sentence.end] if sign in "\x02\x03"), "")
            empty = own == "\x03"
        else:
            empty = head.endswith("\x03") or (boxed_first and head.endswith("[-]"))
        return ("unticked", "an empty box", mention.end) if empty else None

    def quantity_mentions(self, lexicon: Lexicon) -> list[Mention]:
        """Mentions of a quantity: by forms first, then by the nearest anchor."""
        marks = _longest(
            [(span, 0, False) for span, _ in self.spans(lexicon.anchors)]
            + [(span, 1, False) for span, _ in self.spans(lexicon.barriers)]
            + [(span, 2, False) for span, _ in self.spans(lexicon.masks)]
        )
        marked: dict[int, list[tuple[Span, int]]] = {}
        for mark in marks:
            marked.setdefault(self.note.sentence_at(mark[0][0]).start, []).append(mark)
        rivals = self.by_sentence(span for span, _ in self.spans(lexicon.rivals))
        found: list[Mention] = []
        anchored = 0
        formed = self._formed(lexicon.forms)
        for index, sentence in enumerate(self.note.sentences):
            here = marked.get(sentence.start, [])
            anchors = [s for s, kind in here if kind == 0]
            if not (anchors or formed >> index & 1 or (lexicon.ellipsis and anchored)):
                anchored = 0
                continue
            owners = sorted([(s, 0) for s in anchors] + [(s, 1) for s in rivals.get(sentence.start, ())])
            masks = [s for s, kind in here if kind == 2]
            for q in self.quantities(sentence):
                if any(s < q.end and q.start < e for s, e in masks) or self._in_empty_box(sentence, q):
                    continue
                mention = self._by_form(lexicon, lexicon.forms, sentence, q, owners)
                if mention is None and anchors:
                    mention = self._by_anchor(lexicon, sentence, q, here)
                if mention is None and (anchored or anchors):
                    mention = self._by_form(lexicon, lexicon.ellipsis, sentence, q, owners)
                if mention:
                    found.append(mention)
            anchored = lexicon.ellipsis_reach if anchors else max(anchored - 1, 0)
            if owners and owners[-1][1]:
                anchored = 0
        return found

    def _in_empty_box(self, sentence: Sentence, q: Quantity) -> bool:
        """True for a quantity in an empty box: `[ ] under 6 wk  [x] 6 wk or more`."""
        return self.note.norm[sentence.start : q.start].rstrip().endswith("\x03")

    def _crosses(self, span: Span, rival: Span) -> bool:
        """True when a phrase reaches over a rival that does not merely stand in one list with the fact's own term."""
        if not (span[0] <= rival[0] and rival[1] <= span[1]):
            return False
        before, after = self.note.norm[span[0] : rival[0]], self.note.norm[rival[1] : span[1]]
        return not (_LIST_BEFORE.search(before) or _LIST_AFTER.match(after))

    def _formed(self, forms: tuple[Form, ...]) -> int:
        """The sentences (as bits) that hold the words of one of the forms."""
        mask = 0
        for worth in self.note.worth_trying(forms):
            mask |= worth.mask
        return mask

    def _by_form(
        self,
        lexicon: Lexicon,
        forms: tuple[Form, ...],
        sentence: Sentence,
        q: Quantity,
        owners: Sequence[tuple[Span, int]] = (),
    ) -> Mention | None:
        bit = self.note.bit(sentence)
        for worth in self.note.worth_trying(forms):
            if worth.mask & bit and (span := self._form_span(worth.item, sentence, q)):
                if _rival_owns(q, span, owners):
                    continue
                return self._quantity(lexicon, q, [span], sentence, worth.item.spoken())
        return None

    def _form_span(self, form: Form, sentence: Sentence, q: Quantity) -> Span | None:
        if q.kind not in form.kinds or (q.mark is not None) != (form.slot == "ago"):
            return None
        start, end = q.start, q.end
        if form.before:
            window = max(sentence.start, q.start - 90)
            match = form.before.regex.search(self.note.norm[window : q.start])
            if not match:
                return None
            start = window + match.start()
        if form.after:
            after = form.after.regex.match(self.note.norm, q.end, sentence.end)
            if not after:
                return None
            end = after.end()
        return start, end

    def _by_anchor(
        self, lexicon: Lexicon, sentence: Sentence, q: Quantity, marks: Sequence[tuple[Span, int]]
    ) -> Mention | None:
        if q.kind not in lexicon.takes or q.mark is not None:
            return None
        costs = sorted(
            (self._cost(span, q), kind, span)
            for span, kind in marks
            if kind == 0 or not (q.start <= span[0] and span[1] <= q.end)
        )
        cost, kind, span = costs[0]
        rival = min((c for c, k, _ in costs if k != 0), default=inf)
        if kind != 0 or cost > lexicon.reach:
            return None
        mention = self._quantity(lexicon, q, [span, (q.start, q.end)], sentence, _NO_WORDS)
        if mention and cost and rival - cost <= 3 and mention.standing is Standing.HOLDS:
            return mention._replace(standing=Standing.DOUBT, why="another measure stands as near")
        return mention

    def _cost(self, span: Span, q: Quantity) -> int:
        """The distance of an anchor from a quantity in characters; a comma counts 12 more, a semicolon 40."""
        if span[0] < q.end and q.start < span[1]:
            return 0
        low, high = (span[1], q.start) if span[1] <= q.start else (q.end, span[0])
        gap = self.note.norm[low:high]
        return len(gap) + 12 * gap.count(",") + 40 * gap.count(";")

    def _quantity(
        self, lexicon: Lexicon, q: Quantity, parts: list[Span], sentence: Sentence, spoken: frozenset[str]
    ) -> Mention | None:
        value = self._converted(lexicon, q)
        if value is None:
            mention = Mention(q.value, min(p[0] for p in parts), max(p[1] for p in parts))
            return mention._replace(standing=Standing.DOUBT, why=self.note.text[q.start : q.end])
        low, high = lexicon.plausible
        edges = [e for e in (value.lo, value.hi) if abs(e) != inf]
        mention = Mention(value, min(p[0] for p in parts), max(p[1] for p in parts), dated=self._date_of(sentence, q))
        if not all(low <= edge <= high for edge in edges):
            if q.kind == "number" or value.hi < low:
                return None
            return mention._replace(standing=Standing.DOUBT, why="the number is not plausible")
        return self.place(lexicon, mention, parts, [((q.start, q.end), None), *((part, spoken) for part in parts)])

    @staticmethod
    def _converted(lexicon: Lexicon, q: Quantity) -> Interval | None:
        """The value in the fact's unit; None when it counts over another time than the fact does."""
        if rule := lexicon.convert.get(q.kind):
            times, plus = rule
            return Interval(round(q.value.lo * times + plus, 1), round(q.value.hi * times + plus, 1))
        if lexicon.per_days and q.kind in {"rate", "amount"}:
            return q.over(lexicon.per_days)
        return q.in_unit(lexicon.definition.unit)

    def _date_of(self, sentence: Sentence, q: Quantity) -> tuple[date, date] | None:
        """The nearest absolute date of the same sentence, within 25 characters and nearer to no other number."""
        best: tuple[int, Quantity] | None = None
        for other in self.quantities(sentence):
            if other.date is None:
                continue
            gap = other.start - q.end if other.start >= q.end else q.start - other.end
            if gap <= 25 and (best is None or gap < best[0]):
                best = (gap, other)
        return (best[1].date.first, best[1].date.last) if best and best[1].date else None

    def _day_of(self, lexicon: Lexicon, span: Span) -> tuple[date, date] | None:
        """The date inside or up to 60 characters before a phrase, where dates decide (`combine: newest`)."""
        if lexicon.combine != "newest" or lexicon.is_quantity:
            return None
        days = [
            q for q in self.quantities(self.note.sentence_at(span[0])) if q.date and span[0] - 60 <= q.end <= span[1]
        ]
        return (days[-1].date.first, days[-1].date.last) if days and days[-1].date else None

    def measured(self, lexicon: Lexicon) -> list[Mention]:
        """Mentions of a bool or class that follow from a measured value (a glucose of 48 is below 54)."""
        found = []
        masks = self.by_sentence(span for span, _ in self.spans(lexicon.masks))
        for sentence in self.note.chosen(self._formed(lexicon.measured)):
            for q in self.quantities(sentence):
                if any(s < q.end and q.start < e for s, e in masks.get(sentence.start, ())):
                    continue
                for form, *_ in self.note.worth_trying(lexicon.measured):
                    span = self._form_span(form, sentence, q)
                    if span and form.gives is not None and _meets(q, form):
                        mention = Mention(form.gives, *span)
                        found.append(
                            self.place(lexicon, mention, [span], [((q.start, q.end), None), (span, form.spoken())])
                        )
                        break
        return found


def _rival_owns(q: Quantity, span: Span, owners: Sequence[tuple[Span, int]]) -> bool:
    """True when, of the terms beside the quantity within the form, a rival stands nearest to it on either side.

    `owners` are the terms of a sentence in order of place: 0 the fact's own, 1 a rival's. A form without a term of
    its own (an ellipsis) belongs to the last term before it.
    """
    inside = [(s, kind) for s, kind in owners if span[0] <= s[0] and s[1] <= span[1]]
    before = [(s, kind) for s, kind in owners if s[1] <= q.start]
    if before and before[-1][1] and (not inside or q.start - before[-1][0][1] <= _TOUCHING):
        return True
    left = [kind for s, kind in inside if s[1] <= q.start]
    right = [kind for s, kind in inside if s[0] >= q.end]
    return bool((left and left[-1]) or (right and right[0]))


def _signs_follow(line: str) -> bool:
    """True for a list with its signs behind the findings: `fever [-] rash [+]`, and not `[-] fever [+] rash`."""
    first = min(at for at in (line.find("[-]"), line.find("\x02")) if at >= 0)
    return bool(line[:first].rpartition(":")[2].strip())


def _meets(q: Quantity, form: Form) -> bool:
    if q.value.hi < form.least:
        return False
    match form.op:
        case "<":
            return q.value.hi < form.bound or (q.value.hi == form.bound and q.value.hi_open)
        case "<=":
            return q.value.hi <= form.bound
        case ">":
            return q.value.lo > form.bound or (q.value.lo == form.bound and q.value.lo_open)
        case ">=":
            return q.value.lo >= form.bound
    return True


def _longest(candidates: list[tuple[Span, int, bool]]) -> list[tuple[Span, int]]:
    """Of overlapping spans keep those of the first rank (False), then the longest, then the leftmost."""
    kept: list[tuple[Span, int]] = []  # disjoint, in the order of the text
    for span, index, _ in sorted(candidates, key=lambda c: (c[2], c[0][0] - c[0][1], c[0][0], c[1])):
        place = bisect_left(kept, span[1], key=lambda k: k[0][0])
        if place == 0 or kept[place - 1][0][1] <= span[0]:
            kept.insert(place, (span, index))
    return kept
