"""Ages that no unit tells: beside a sex ("F, 54"), after a name ("Mr. Brown (58)"), in a field, as a decade of life."""

from collections.abc import Iterator, Mapping
from typing import Any

from cda.contracts.facts import Interval
from cda.extraction.units import Quantity
from cda.patterns import compiled

_WINDOW = 70


class AgeReader:
    """Reads such ages by the frames of quantities.yaml: what stands before the bare number, and what after it."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._low, self._high = data["plausible"]
        self._frames = [(compiled(f"(?:{before})$"), compiled(after)) for before, after in data["frames"]]
        self._decade = compiled(data["decade"])
        self._glued = compiled(data["glued"])
        self._decades: dict[str, int] = {
            name: int(first) for first, names in data["decades"].items() for name in names.split()
        }
        self._parts: dict[str, tuple[int, int]] = {part: (low, high) for part, (low, high) in data["parts"].items()}

    def end(self, norm: str, first: int, last: int, quantity: Quantity) -> int | None:
        """Where the age ends whose bare number is `quantity`, in the sentence [first, last); None when it is none."""
        value = quantity.value
        if not (self._low <= value.lo <= value.hi <= self._high):
            return None
        window = norm[max(first, quantity.start - _WINDOW) : quantity.start]
        for before, after in self._frames:
            if (match := after.match(norm, quantity.end, last)) and before.search(window):
                return match.end()
        return None

    def decades(self, norm: str, first: int, last: int) -> Iterator[Quantity]:
        """`a woman in her mid-fifties`: from 53 to 57 years. Also an age glued to the sex: `F/54`."""
        sentence = norm[first:last]
        for match in self._glued.finditer(norm, first, last) if any(map(str.isdigit, sentence)) else ():
            group = "n" if match["n"] else "m"
            at, end, value = match.start(group), match.end(group), float(match[group])
            if self._low <= value <= self._high:
                yield Quantity(at, end, "age", Interval.exactly(value), number_end=end)
        for match in self._decade.finditer(norm, first, last) if any(map(sentence.__contains__, self._decades)) else ():
            start = self._decades[match["decade"]]
            low, high = self._parts[match["part"] or ""]
            yield Quantity(
                match.start("decade"),
                match.end(),
                "age",
                Interval(start + low, start + high),
                number_end=match.end("decade"),
            )
