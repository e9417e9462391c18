"""Lines of means over ordered steps, as SVG: axes, points with intervals, and n below each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrcr_action.report.html.markup import element, scrolling

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mrcr_action.intervals import Interval
    from mrcr_action.report.html.markup import Element

WIDTH, HEIGHT = 720, 260
LEFT, RIGHT, TOP = 58, 96, 14
"""Margins of the drawing, in units of which the text has 12."""

LINE = 17
"""Height of a line of text below the axis."""

NAME_GAP = 15
"""Least distance of two names at the right end."""


@dataclass(frozen=True, slots=True)
class Point:
    """A mean of some samples."""

    value: float
    n: int
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """One line: its points by the number of their step, from 0."""

    name: str
    look: int
    """From 0; it has a colour, a dash and a shape of its own."""
    points: Mapping[int, Point]


@dataclass(frozen=True, slots=True)
class Floor:
    """A level for comparison, drawn across."""

    name: str
    look: int
    value: float


def plot(
    title: str,
    steps: Sequence[str],
    series: Sequence[Series],
    *,
    below: str,
    floors: Sequence[Floor] = (),
) -> Element:
    """The drawing; a screen reader is told its title and every figure.

    Args:
        title: what it shows.
        steps: names along the horizontal axis.
        series: lines, of values from 0 to 1.
        below: what the steps are.
        floors: levels for comparison.
    """
    height = TOP + HEIGHT + LINE * (len(series) + 2) + 12
    svg = element(
        "svg",
        element("title", f"{title}. {_told(steps, series)}"),
        _grid(),
        (_floor(floor) for floor in floors),
        (_tick(at, name, len(steps)) for at, name in enumerate(steps)),
        (_line(of, len(steps)) for of in series),
        _names(series),
        _counts(series, len(steps)),
        element(
            "text",
            below,
            x=LEFT + _inner() / 2,
            y=TOP + HEIGHT + LINE * (len(series) + 2),
            class_="axis middle",
        ),
        viewBox=f"0 0 {WIDTH} {height}",
        role="img",
        class_="plot",
    )
    return scrolling(svg, title)


def _told(steps: Sequence[str], series: Sequence[Series]) -> str:
    return "; ".join(
        f"{of.name}: "
        + ", ".join(f"{steps[at]} {p.value:.3f} (n {p.n})" for at, p in sorted(of.points.items()))
        for of in series
    )


def _inner() -> float:
    return WIDTH - LEFT - RIGHT


def _x(step: int, steps: int) -> float:
    return LEFT + _inner() * (step + 0.5) / max(1, steps)


def _y(value: float) -> float:
    return TOP + HEIGHT * (1 - min(1.0, max(0.0, value)))


def _grid() -> list[Element]:
    made = []
    for fifth in range(6):
        y = _y(fifth / 5)
        made.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid"))
        made.append(element("text", f"{fifth / 5:.1f}", x=LEFT - 8, y=y + 4, class_="axis end"))
    return made


def _tick(at: int, name: str, steps: int) -> Element:
    return element("text", name, x=_x(at, steps), y=TOP + HEIGHT + LINE, class_="axis middle")


def _floor(floor: Floor) -> list[Element]:
    y = _y(floor.value)
    return [
        element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_=f"floor look{floor.look}"),
        element("text", floor.name, x=LEFT + 4, y=y - 4, class_=f"floor look{floor.look}"),
    ]


def _line(of: Series, steps: int) -> Element:
    points = sorted(of.points.items())
    return element(
        "g",
        (
            element(
                "polyline",
                points=" ".join(f"{_x(at, steps):.1f},{_y(p.value):.1f}" for at, p in run),
                class_="line",
            )
            for run in _runs(points)
        ),
        (_point(of, at, point, steps) for at, point in points),
        class_=f"look{of.look}",
    )


def _runs(points: Sequence[tuple[int, Point]]) -> list[list[tuple[int, Point]]]:
    """Points of steps that follow each other; no line is drawn over a step without one."""
    runs: list[list[tuple[int, Point]]] = []
    for at, point in points:
        if runs and runs[-1][-1][0] == at - 1:
            runs[-1].append((at, point))
        else:
            runs.append([(at, point)])
    return runs


def _point(of: Series, at: int, point: Point, steps: int) -> Element:
    # Series side by side, so that no interval hides another.
    x, y = _x(at, steps), _y(point.value)
    shift = (of.look - 1) * 5
    told = f"{of.name}: {point.value:.4f}, n {point.n}"
    bar = None
    if point.interval is not None and not point.interval.is_point:
        low, high = _y(point.interval.low), _y(point.interval.high)
        told += f", 95 % from {point.interval.low:.3f} to {point.interval.high:.3f}"
        bar = element("line", x1=x + shift, x2=x + shift, y1=low, y2=high, class_="interval")
    return element("g", element("title", told), bar, _shape(of.look, x, y), class_="point")


def _shape(look: int, x: float, y: float) -> Element:
    if look == 1:
        return element("rect", x=x - 4, y=y - 4, width=8, height=8)
    if look == 2:  # noqa: PLR2004 - the third of three shapes
        return element(
            "polygon",
            points=f"{x:.1f},{y - 6:.1f} {x + 5.5:.1f},{y + 4:.1f} {x - 5.5:.1f},{y + 4:.1f}",
        )
    return element("circle", cx=x, cy=y, r=4.5)


def _names(series: Sequence[Series]) -> list[Element]:
    """The name of each line at its end, moved apart where they would meet."""
    ends = sorted(
        ((_y(of.points[max(of.points)].value), of) for of in series if of.points),
        key=lambda end: end[0],
    )
    made, free = [], 0.0
    for at, of in ends:
        y = max(at + 4, free)
        free = y + NAME_GAP
        made.append(
            element("text", of.name, x=WIDTH - RIGHT + 6, y=y, class_=f"name look{of.look}")
        )
    return made


def _counts(series: Sequence[Series], steps: int) -> list[Element]:
    made = []
    for row, of in enumerate(series):
        y = TOP + HEIGHT + LINE * (row + 2)
        label = "n" if len(series) == 1 else f"n, {of.name.split()[0]}"
        made.append(element("text", label, x=LEFT - 8, y=y, class_=f"count end look{of.look}"))
        for at in range(steps):
            n = of.points[at].n if at in of.points else 0
            made.append(
                element(
                    "text", f"{n:,}", x=_x(at, steps), y=y, class_=f"count middle look{of.look}"
                )
            )
    return made
