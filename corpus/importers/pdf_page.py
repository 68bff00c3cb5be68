"""The visible text of one PDF page as lines, and the text on it that no reader sees.

Text counts as hidden when it is white, smaller than MIN_SIZE points, drawn invisibly (render mode 3), or placed outside
the page. Hidden text never enters a line. Limits: text covered by a picture or drawn in a colour other than white on
the same ground is not recognised, and white text on a dark ground is hidden by this rule although it can be read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

MIN_SIZE = 2.0  # points; the smallest print in real policies seen is 6
WHITE = 0.98
_SHOW = {b"Tj", b"TJ", b"'", b'"'}
_COLOUR = {b"g", b"rg", b"k", b"sc", b"scn"}


@dataclass(frozen=True, slots=True)
class Line:
    """One visible line: its text and baseline height on the page, in points from the bottom."""

    page: int
    text: str
    y: float


@dataclass(slots=True)
class PageText:
    """What one page says: visible lines from top to bottom as drawn, and hidden pieces as (reason, text)."""

    lines: list[Line] = field(default_factory=list)
    hidden: list[tuple[str, str]] = field(default_factory=list)
    only_ocr_layer: bool = False


@dataclass(slots=True)
class _Paint:
    white: bool = False
    space: str = ""
    mode: int = 0
    size: float = 12.0


def read_page(page: Any, number: int) -> PageText:
    """Read a `pypdf` page. A page whose only text is invisible is a scan with an OCR layer: its text is kept."""
    visit = _Visitor(page.mediabox)
    page.extract_text(visitor_text=visit.text, visitor_operand_before=visit.operator)
    found = PageText(hidden=[(reason, text) for reason, text, _ in visit.pieces if reason and text.strip()])
    shown = [(text, y) for reason, text, y in visit.pieces if not reason]
    if found.hidden and not any(text.strip() for text, _ in shown) and all(r == "invisible" for r, _ in found.hidden):
        found.only_ocr_layer, found.hidden = True, []
        shown = [(text, y) for _, text, y in visit.pieces]
    found.lines = _lines(shown, number)
    return found


class _Visitor:
    """Follows pypdf through a page: it reports operators one by one, and text in pieces at the end of each run."""

    def __init__(self, box: Any) -> None:
        self.pieces: list[tuple[str, str, float]] = []
        self._box = tuple(float(side) for side in (box.left, box.bottom, box.right, box.top))
        self._paint = _Paint()
        self._stack: list[_Paint] = []
        self._seen: list[tuple[str, float]] = []

    def operator(self, name: bytes, operands: Sequence[Any], cm: Sequence[float], tm: Sequence[float]) -> None:
        """Keep the paint state, and note for every piece of text shown how it is painted and where."""
        paint = self._paint
        if name == b"q":
            self._stack.append(replace(paint))
        elif name == b"Q" and self._stack:
            self._paint = self._stack.pop()
        elif name == b"Tf" and len(operands) > 1:
            paint.size = float(operands[1])
        elif name == b"Tr" and operands:
            paint.mode = int(operands[0])
        elif name == b"cs" and operands:
            paint.space, paint.white = str(operands[0]), False
        elif name in _COLOUR:
            paint.white = _is_white(name, operands, paint.space)
        elif name in _SHOW:
            x, y = _place(cm, tm)
            self._seen.append((self._hidden(x, y, paint.size * _scale(cm, tm)), y))

    def text(self, text: str, _cm: object, _tm: object, _font: object, _size: object) -> None:
        """Take a finished piece. Where visible and hidden shows mix in one piece, the piece counts as hidden."""
        if text:
            reason = next((reason for reason, _ in self._seen if reason), "")
            self.pieces.append((reason, text, self._seen[0][1] if self._seen else 0.0))
            self._seen = []

    def _hidden(self, x: float, y: float, size: float) -> str:
        left, bottom, right, top = self._box
        checks: list[tuple[bool, str]] = [
            (self._paint.mode == 3, "invisible"),
            (self._paint.white, "white"),
            (abs(size) < MIN_SIZE, "tiny"),
            (not (left <= x <= right and bottom <= y <= top), "outside the page"),
        ]
        return next((reason for hidden, reason in checks if hidden), "")


def _is_white(name: bytes, operands: Sequence[Any], space: str) -> bool:
    """Whether a colour operator sets white. One number is a grey only where the operator or the space says so: in a
    separation space it is a tint, and 1 is full ink."""
    values = [float(value) for value in operands if isinstance(value, (int, float))]
    if len(values) == 1:
        return (name == b"g" or space == "/DeviceGray") and values[0] >= WHITE
    if len(values) == 3:
        return min(values) >= WHITE
    return len(values) == 4 and max(values) <= 1 - WHITE


def _place(cm: Sequence[float], tm: Sequence[float]) -> tuple[float, float]:
    x, y = tm[4], tm[5]
    return x * cm[0] + y * cm[2] + cm[4], x * cm[1] + y * cm[3] + cm[5]


def _scale(cm: Sequence[float], tm: Sequence[float]) -> float:
    """How much the text's height is scaled on the page (square root of the area scale, right for turned text too)."""
    area: Callable[[Sequence[float]], float] = lambda matrix: abs(matrix[0] * matrix[3] - matrix[1] * matrix[2])  # noqa: E731
    return float((area(cm) * area(tm)) ** 0.5)


def _lines(pieces: list[tuple[str, float]], number: int) -> list[Line]:
    """Pieces joined to lines at pypdf's line ends; a line stands where its first piece stands."""
    lines: list[Line] = []
    text, at = "", 0.0
    for piece, y in [*pieces, ("\n", 0.0)]:
        head, *rest = piece.split("\n")
        if not text.strip():
            at = y
        text += head
        for following in rest:
            if text.strip():
                lines.append(Line(number, " ".join(text.split()), at))
            text, at = following, y
    return lines
