"""The change in percent between two weights that one note gives, the earlier and the present one."""

import re

from cda.contracts.facts import Interval
from cda.extraction.lexicon import Lexicon
from cda.extraction.mentions import Reader
from cda.extraction.standing import Mention, Standing

# The largest distance between the two weights, in characters: they belong to one statement.
_GAP = 160


def pair_mentions(reader: Reader, lexicon: Lexicon) -> list[Mention]:
    """One mention of the change when the note gives exactly one earlier and one present weight in one unit.

    `pairs` of the lexicon holds regular expressions: `earlier` and `present` (groups `n`, `unit`), which must stand
    close together, and `veto` (another person, a goal), which must not stand beside them. The change is absolute.
    """
    earlier, present = (_values(reader, lexicon.pairs[name]) for name in ("earlier", "present"))
    if len({value for *_, value in earlier}) != 1 or len({value for *_, value in present}) != 1:
        return []
    (start, end, unit, then), (start2, end2, unit2, now) = earlier[0], present[0]
    if not (unit or unit2) or (unit and unit2 and unit[0] != unit2[0]) or not then:
        return []
    first, last = min(start, start2), max(end, end2)
    if last - first > _GAP or lexicon.pairs["veto"].search(reader.note.norm, max(first - 30, 0), last):
        return []
    percent = round(abs(now - then) / then * 100, 2)
    mention = Mention(Interval.exactly(percent), first, last)
    placed = [reader.place(lexicon, mention, [span], [(span, None)]) for span in ((start, end), (start2, end2))]
    out = next((p for p in placed if p.standing is not Standing.HOLDS), placed[0])
    return [out]


def _values(reader: Reader, pattern: re.Pattern[str]) -> list[tuple[int, int, str, float]]:
    found = []
    for sentence in reader.note.sentences:
        for match in pattern.finditer(reader.note.norm, sentence.start, sentence.end):
            unit = match["unit"] or ""
            found.append((match.start(), match.end(), "l" if unit[:1] in "pl" and unit else unit, float(match["n"])))
    return found
