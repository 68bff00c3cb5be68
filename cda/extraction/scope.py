"""What the words around a mention make of it: negated, hedged, planned, someone else's, past, or in doubt.

Cues are data (cues.yaml). A cue acts on the mentions in its reach: forward or back from it, to the first stop, to a
semicolon, and not over a comma unless the list it opens is closed by or/nor or consists of known members of the
fact's group. The guard is the last rule: a cue that stands near a mention, in the same clause, and that no rule and
no phrase explains, makes the mention doubtful.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cda.extraction.language import Cue, Language
from cda.extraction.note import Note, Sentence, Token

BREAKS = frozenset({";", "\n"})


class FoundCue(NamedTuple):
    """A cue at its place: the token range [first, last] of its sentence and its offsets."""

    cue: Cue
    first: int
    last: int
    start: int
    end: int


class Setting(NamedTuple):
    """What the context says of one mention: the kinds of cue that reach it, each with its words."""

    kinds: dict[str, FoundCue]
    start: int
    end: int

    def has(self, kind: str) -> bool:
        """True when a cue of this kind reaches the mention."""
        return kind in self.kinds


class ScopeReader:
    """Finds the cues of a sentence and decides which of them reach a span."""

    def __init__(self, language: Language) -> None:
        self._language = language

    def cues(self, note: Note, sentence: Sentence) -> list[FoundCue]:
        """All cues of a sentence, longest first where they overlap; "nothing" cues swallow the words they cover."""
        tokens = sentence.tokens(note.norm)
        found: list[FoundCue] = []
        at = 0
        while at < len(tokens):
            match = self._match(tokens, at)
            if match is None:
                at += 1
                continue
            words, cues = match
            last = at + words - 1
            found += [FoundCue(cue, at, last, tokens[at].start, tokens[last].end) for cue in cues]
            at = last + 1
        return [f for f in found if f.cue.kind != "nothing"]

    def _match(self, tokens: Sequence[Token], at: int) -> tuple[int, list[Cue]] | None:
        """The longest cue that begins at a token: its number of words, and every group it belongs to."""
        node = self._language.cues.starting(tokens[at].text)
        hit: tuple[int, list[Cue]] | None = None
        words = 1
        while node is not None:
            if None in node:
                hit = (words, node[None])
            if at + words >= len(tokens):
                break
            node = node.get(tokens[at + words].text)
            words += 1
        return hit

    def setting(
        self,
        note: Note,
        sentence: Sentence,
        span: tuple[int, int],
        *,
        found: Sequence[FoundCue],
        covered: Iterable[tuple[tuple[int, int], frozenset[str] | None]],
        members: Sequence[tuple[int, int]] = (),
        accepts: frozenset[str] = frozenset(),
    ) -> Setting:
        """Which cues reach the mention at `span`.

        Cues that overlap a `covered` span are explained and do nothing, if they share a word with the phrase that
        covers it (None: whatever they are).

        A kind that the fact `accepts` raises no guard: what may stand beside a mention need not be explained.

        `members` are spans of the fact's group in this sentence (COPD beside CHF), for lists without or/nor.
        """
        covered = tuple(covered)
        tokens = sentence.tokens(note.norm)
        kinds: dict[str, FoundCue] = {}
        function_words = self._language.words["function"]
        start, end = span
        for item in found:
            if self._unticked(tokens, item, span):
                continue
            words = {w for t in tokens[item.first : item.last + 1] for w in t.text.split("/")} - function_words
            if any(
                s < item.end and item.start < e and (own is None or not words or words & own) for (s, e), own in covered
            ):
                continue
            if self._reaches(tokens, item, span, members):
                kinds.setdefault(item.cue.kind, item)
                start, end = min(start, item.start), max(end, item.end)
            elif item.cue.guard and item.cue.kind not in accepts and self._near(tokens, item, span, note.norm):
                kinds.setdefault("guard", item)
        return Setting(kinds, start, end)

    @staticmethod
    def _unticked(tokens: Sequence[Token], item: FoundCue, span: tuple[int, int]) -> bool:
        """True for a cue in an empty box behind the mention, or alone in one: `[x] root compression  [ ] none`."""
        if not item.first or tokens[item.first - 1].text != "\x03":
            return False
        alone = item.last + 1 == len(tokens) or tokens[item.last + 1].text in {"\x02", "\x03"}
        return alone or item.start >= span[1]

    def _reaches(
        self, tokens: Sequence[Token], item: FoundCue, span: tuple[int, int], members: Sequence[tuple[int, int]]
    ) -> bool:
        direction = item.cue.direction
        if span[0] <= item.start and item.end <= span[1]:
            return True
        if direction == "sentence":
            return not self._broken(tokens, item, span)
        if direction in {"forward", "both"} and span[0] >= item.start:
            limit = self._forward(tokens, item, members if item.cue.kind == "negation" else ())
            return span[0] < limit
        if direction in {"back", "both"} and span[1] <= item.end:
            return span[1] > self._backward(tokens, item)
        return False

    def _broken(self, tokens: Sequence[Token], item: FoundCue, span: tuple[int, int]) -> bool:
        """True when a clause break stands between the cue and the span."""
        low, high = min(item.end, span[1]), max(item.start, span[0])
        between = [i for i, t in enumerate(tokens) if low <= t.start and t.end <= high]
        return any(tokens[i].text in BREAKS or self._stop(tokens, i, item.cue.stops) for i in between)

    def _stop(self, tokens: Sequence[Token], at: int, name: str) -> bool:
        for words in self._language.stops[name].get(tokens[at].text, ()):
            if all(at + i < len(tokens) and tokens[at + i].text == w for i, w in enumerate(words)):
                return True
        return False

    def _forward(self, tokens: Sequence[Token], item: FoundCue, members: Sequence[tuple[int, int]]) -> int:
        """The offset at which the cue's forward reach ends."""
        chunks: list[list[Token]] = [[]]
        for index in range(item.last + 1, min(len(tokens), item.last + 1 + item.cue.reach)):
            token = tokens[index]
            if token.text in BREAKS or self._stop(tokens, index, item.cue.stops):
                break
            if item.cue.kind == "negation" and token.text in self._language.words["negators"] and index > item.last + 1:
                break
            if token.text == "," and not item.cue.crosses_commas:
                chunks.append([])
            else:
                chunks[-1].append(token)
        kept = 1 + self._list_length(chunks, members)
        last = [t for chunk in chunks[:kept] for t in chunk]
        return last[-1].end if last else item.end

    def _list_length(self, chunks: Sequence[Sequence[Token]], members: Sequence[tuple[int, int]]) -> int:
        """How many comma parts after the first still belong to the cue's list."""
        closed = 0
        for index, chunk in enumerate(chunks[1:], 1):
            words = [t.text for t in chunk]
            if not words or len(words) > 7 or (index > 0 and self._language.words["list_ends"] & set(words)):
                break
            if words[0] in self._language.words["negators"]:
                break  # "suspected RA, no CHF, COPD or NMD": a denial opens a list of its own
            if (
                words[0] in {"or", "nor"}
                or ("or" in words and not any("or" in (t.text for t in c) for c in chunks[:index]))
                or (closed == index - 1 and any(s < chunk[-1].end and e > chunk[0].start for s, e in members))
            ):
                closed = index
        return closed

    def _backward(self, tokens: Sequence[Token], item: FoundCue) -> int:
        """The offset down to which the cue reaches back."""
        limit = item.start
        for index in range(item.first - 1, max(-1, item.first - 1 - item.cue.reach), -1):
            token = tokens[index]
            crossing = token.text == "," and not item.cue.crosses_commas
            if token.text in BREAKS or crossing or self._stop(tokens, index, item.cue.stops):
                break
            limit = token.start
        return limit

    def _near(self, tokens: Sequence[Token], item: FoundCue, span: tuple[int, int], norm: str) -> bool:
        """The guard: within reach of the guard, in the same clause, and without an object of its own."""
        before = item.end <= span[0]
        gap = norm[item.end : span[0]] if before else norm[span[1] : item.start]
        if len(gap) > item.cue.guard or self._broken(tokens, item, span):
            return False
        if item.cue.kind == "negation":
            return self._bare(tokens, item, before, gap)
        return True

    def _bare(self, tokens: Sequence[Token], item: FoundCue, before: bool, gap: str) -> bool:
        """True for a negation that has no words of its own to act on."""
        if before:
            return "," not in gap and self._forward(tokens, item, ()) == item.end
        if "  " in gap.rpartition(":")[0]:
            return False  # the answer to another field of the same line: "Duration: 9 weeks   Injections: No"
        after = tokens[item.last + 1].text if item.last + 1 < len(tokens) else "\n"
        return after in {",", ";", ")", "\n"} and "," not in gap
