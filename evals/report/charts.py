"""Charts as inline SVG, coloured by the page's style sheet alone, so that light and dark need no second drawing."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor, log10

from evals.report.markup import Child, Html, tag

WIDTH, HEIGHT = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 56, 26, 16, 46
BINS = 24


def interval_bar(value: float | None, ends: Sequence[float] | None) -> Html:
    """A rate on a line from 0 to 1, its 95 % interval as a band."""
    parts: list[Html] = [tag("line", x1=6, x2=114, y1=8, y2=8, class_="axis")]
    if value is not None and ends:
        low, high = (6 + 108 * end for end in ends)
        parts.append(tag("rect", x=f"{low:.1f}", y=4, width=f"{max(high - low, 1.5):.1f}", height=8, class_="band"))
        parts.append(tag("circle", cx=f"{6 + 108 * value:.1f}", cy=8, r=4, class_="dot"))
    return tag("svg", parts, viewBox="0 0 120 16", class_="interval", aria_hidden="true")


def risk_coverage_plot(points: Sequence[Mapping[str, float]], auto: tuple[float, float]) -> Html:
    """Risk against coverage as the threshold falls; the ring is where the gate stands: what it determined alone."""
    top = 1.2 * max([point["risk"] for point in points] + [auto[1], 0.05])
    plot = _Plot((0.0, 1.0), (0.0, top))
    corners: list[tuple[float, float]] = []
    for point in points:
        corners += [(corners[-1][0] if corners else 0.0, point["risk"]), (point["coverage"], point["risk"])]
    line = " ".join("{:.1f},{:.1f}".format(*plot.at(*corner)) for corner in corners)
    dots = [plot.dot(point["coverage"], point["risk"], "dot", r=4) for point in points]
    return plot.drawn(
        [tag("polyline", points=line, class_="curve"), dots, plot.dot(*auto, "ring", r=8)],
        labels=("share of cases answered (coverage)", "share wrong (risk)"),
        ticks=([0, 0.25, 0.5, 0.75, 1], [0, round(top / 2, 3), round(top, 3)]),
        title=f"Risk-coverage curve; the gate determined {auto[0]:.3f} of the cases at risk {auto[1]:.3f}",
    )


def latency_histogram(seconds: Sequence[float]) -> Html:
    """Counts of latencies in milliseconds, on a logarithmic scale, with the median and the 95th percentile."""
    millis = sorted(max(1000 * value, 0.1) for value in seconds)
    low = floor(log10(millis[0]))
    high = max(ceil(log10(millis[-1])), low + 1)
    step = (high - low) / BINS
    counts = [0] * BINS
    for value in millis:
        counts[min(int((log10(value) - low) / step), BINS - 1)] += 1
    plot = _Plot((low, high), (0, 1.15 * max(counts)))
    bars = [plot.bar(low + place * step, step, count) for place, count in enumerate(counts) if count]
    quantiles = [millis[round(share * (len(millis) - 1))] for share in (0.5, 0.95)]
    rules = [
        plot.rule(log10(value), f"{name} {value:.0f} ms", before=name == "p50")
        for name, value in zip(("p50", "p95"), quantiles, strict=True)
    ]
    return plot.drawn(
        [bars, rules],
        labels=("milliseconds (logarithmic)", "cases"),
        ticks=(list(range(low, high + 1)), [0, max(counts)]),
        words=lambda tick: f"{10**tick:g}",
        title=f"Latency: median {quantiles[0]:.0f} ms, 95th percentile {quantiles[1]:.0f} ms",
    )


class _Plot:
    """A frame with two linear axes; places are given in the axes' units."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self._x, self._y = x, y

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Where a point lies on the drawing."""
        right = (x - self._x[0]) / (self._x[1] - self._x[0])
        up = (y - self._y[0]) / (self._y[1] - self._y[0])
        return LEFT + right * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    def dot(self, x: float, y: float, kind: str, *, r: int) -> Html:
        """A mark."""
        cx, cy = self.at(x, y)
        return tag("circle", cx=f"{cx:.1f}", cy=f"{cy:.1f}", r=r, class_=kind)

    def bar(self, x: float, width: float, count: float) -> Html:
        """A bar from the floor."""
        (left, top), (right, bottom) = self.at(x, count), self.at(x + width, 0)
        return tag(
            "rect",
            x=f"{left + 0.5:.1f}",
            y=f"{top:.1f}",
            width=f"{right - left - 1:.1f}",
            height=f"{bottom - top:.1f}",
            class_="bar",
        )

    def rule(self, x: float, words: str, *, before: bool) -> Html:
        """An upright line with words at its top, on the side that `before` says."""
        left = self.at(x, 0)[0]
        place = left - 6 if before else left + 6
        return tag(
            "g",
            tag("line", x1=f"{left:.1f}", x2=f"{left:.1f}", y1=TOP, y2=HEIGHT - BOTTOM, class_="rule"),
            tag("text", words, x=f"{place:.1f}", y=TOP + 12, class_="end" if before else None),
        )

    def drawn(
        self,
        marks: Child,
        *,
        labels: tuple[str, str],
        ticks: tuple[Sequence[float], Sequence[float]],
        title: str,
        words: Callable[[float], str] = lambda tick: f"{tick:g}",
    ) -> Html:
        """The whole drawing with axes, ticks and a title for those who do not see it."""
        bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
        grid = []
        for tick in ticks[0]:
            x = self.at(tick, 0)[0]
            grid.append(tag("text", words(tick), x=f"{x:.1f}", y=bottom + 18, class_="middle"))
        for tick in ticks[1]:
            y = self.at(self._x[0], tick)[1]
            grid.append(tag("line", x1=LEFT, x2=right, y1=f"{y:.1f}", y2=f"{y:.1f}", class_="axis"))
            grid.append(tag("text", f"{tick:g}", x=LEFT - 8, y=f"{y + 4:.1f}", class_="end"))
        named = [
            tag("text", labels[0], x=(LEFT + right) // 2, y=HEIGHT - 8, class_="middle label"),
            tag("text", labels[1], x=-(TOP + bottom) // 2, y=14, transform="rotate(-90)", class_="middle label"),
        ]
        return tag(
            "svg", tag("title", title), grid, named, marks, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", class_="chart"
        )
