"""From the lines of PDF pages to paragraphs under headings: running lines out, words and sentences whole again.

Every repair is conservative: a line is dropped only when it repeats at the same edge of most pages, a hyphen at a line
end stays unless it splits a word, and a paragraph is cut only where `continues` allows.
"""

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from corpus.importers.pdf_page import Line
from corpus.importers.text import continues

EDGE = 2  # lines at the top and at the bottom of a page that can be running lines
MIN_PAGES = 3  # fewer pages prove no repetition
SHARE = 0.6
GAP = 1.45  # a paragraph break is a step this much taller than the usual one
MAX_HEADING = 70
_PAGE_NUMBER = re.compile(r"(page\s+)?\d{1,4}(\s*(of|/)\s*\d{1,4})?|-\s*\d{1,4}\s*-", re.IGNORECASE)
_LIST_ITEM = re.compile(r"[-*•‣]\s|\(?\d{1,2}[.)]\s|\(?[a-z]\)\s")
_PREFIX = re.compile(r"anti|co|cross|follow|high|in|long|low|multi|non|out|over|post|pre|re|self|semi|short|sub|well")
_HEADING = re.compile(r"(?:\d{1,2}(?:\.\d{1,2})*\.?\s+|[A-Z]\.\s+|[IVX]{1,4}\.\s+)?[A-Z][A-Za-z0-9 ,/&()’'-]*:?")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A whole paragraph or list: its heading, the page it starts on, its text with list items on lines of their own."""

    section: str
    page: int
    text: str


def without_running_lines(pages: list[list[Line]]) -> list[list[Line]]:
    """The pages without running headers and footers (digits ignored) and without bare page numbers at their edges."""
    seen = Counter(key for lines in pages for key in {_key(line) for line in _edges(lines)})
    enough = max(MIN_PAGES, SHARE * len(pages))
    running = {key for key, times in seen.items() if times >= enough}
    return [
        [line for line in lines if not (line in _edges(lines) and (_key(line) in running or _is_number(line)))]
        for lines in pages
    ]


def _edges(lines: list[Line]) -> list[Line]:
    return [*lines[:EDGE], *lines[-EDGE:]]


def _key(line: Line) -> str:
    return re.sub(r"\d+", "#", line.text.casefold())


def _is_number(line: Line) -> bool:
    return _PAGE_NUMBER.fullmatch(line.text) is not None


def paragraphs(pages: list[list[Line]]) -> list[Paragraph]:
    """Paragraphs in reading order; a sentence that runs over a page end is one paragraph, on the page it starts."""
    words = Counter(re.findall(r"[A-Za-z]+", " ".join(line.text for lines in pages for line in lines).casefold()))
    found: list[Paragraph] = []
    section = "Statement"
    for lines in _groups(pages):
        if _is_heading(lines):
            section = lines[0].text.rstrip(":")
            continue
        text = _join([line.text for line in lines], words)
        last = found[-1] if found else None
        if last is not None and last.section == section and continues(last.text, text):
            found[-1] = Paragraph(section, last.page, _join([last.text, text], words))
        else:
            found.append(Paragraph(section, lines[0].page, text))
    return found


def _groups(pages: list[list[Line]]) -> list[list[Line]]:
    """Lines grouped by vertical steps. Headings and page ends close a group; `continues` joins across both ends."""
    groups: list[list[Line]] = []
    for lines in pages:
        steps = [above.y - line.y for above, line in pairwise(lines) if above.y > line.y]
        limit = GAP * median(steps) if steps else 0.0
        above: Line | None = None
        for line in lines:
            apart = above is None or above.y - line.y > limit or above.y < line.y
            if apart or _is_heading([line]) or _is_heading(groups[-1]):
                groups.append([])
            groups[-1].append(line)
            above = line
    return groups


def _is_heading(lines: list[Line]) -> bool:
    """One short line of title words without an end mark, as `Coverage Criteria`, `2. Exclusions`, `LIMITATIONS:`."""
    text = lines[0].text
    if len(lines) != 1 or len(text) > MAX_HEADING or _HEADING.fullmatch(text) is None:
        return False
    words = [word for word in re.findall(r"[A-Za-z]+", text) if len(word) > 3]
    return bool(words) and all(word[0].isupper() for word in words)


def _join(lines: list[str], words: Counter[str]) -> str:
    text = lines[0]
    for line in lines[1:]:
        if re.search(r"[A-Za-z]-$", text) and re.match(r"[a-z]", line):
            text = (text[:-1] if _splits_a_word(text, line, words) else text) + line
        elif _LIST_ITEM.match(line):
            text = f"{text}\n{line}"
        else:
            text = f"{text} {line}"
    return text


def _splits_a_word(text: str, line: str, words: Counter[str]) -> bool:
    """Whether the hyphen at the end of `text` is a line break's. What the document writes elsewhere decides; a first
    half that is a word of its own there (evidence-based), or a known prefix, keeps its hyphen."""
    first = re.findall(r"[A-Za-z]+", text)[-1].casefold()
    second = re.findall(r"[a-z]+", line)[0]
    if words[first + second]:
        return True
    return _PREFIX.fullmatch(first) is None and words[first] < 2
