"""Two results side by side: a line a bucket, from the baseline's mean to this run's, as SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.report.html.markup import element, scrolling

if TYPE_CHECKING:
    from mrcr_action.comparison.document import BucketChange, Comparison
    from mrcr_action.report.html.markup import Element

WIDTH, LEFT, RIGHT, LINE, TOP = 720, 130, 70, 26, 26
"""Of the drawing, in units of which the text has 12: width, margins, the height of a line."""


def sides(comparison: Comparison, names: tuple[str, str]) -> Element:
    """The drawing; the table beside it has the same figures."""
    rows = comparison.buckets
    title = f"Mean match ratio by bucket: {names[0]} (hollow) and {names[1]} (filled)"
    height = TOP + LINE * len(rows) + 26
    return scrolling(
        element(
            "svg",
            element("title", title),
            element("text", title, x=LEFT, y=14, class_="axis"),
            (_grid(fifth / 5, height) for fifth in range(6)),
            (_bucket(at, row, names) for at, row in enumerate(rows)),
            viewBox=f"0 0 {WIDTH} {height}",
            role="img",
            class_="plot",
        ),
        title,
    )


def _x(value: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * min(1.0, max(0.0, value))


def _grid(value: float, height: float) -> list[Element]:
    x, low = _x(value), height - 22
    return [
        element("line", x1=x, x2=x, y1=TOP, y2=low, class_="grid"),
        element("text", f"{value:.1f}", x=x, y=low + 16, class_="axis middle"),
    ]


def _bucket(at: int, row: BucketChange, names: tuple[str, str]) -> Element:
    y = TOP + LINE * at + LINE / 2
    a, b = _x(row.mean_a), _x(row.mean_b)
    told = f"{row.name}: {names[0]} {row.mean_a:.4f}, {names[1]} {row.mean_b:.4f}, n {row.n}"
    return element(
        "g",
        element("title", told),
        element("text", row.name, x=LEFT - 10, y=y + 4, class_="axis end"),
        element("line", x1=a, x2=b, y1=y, y2=y, class_="shift"),
        element("circle", cx=a, cy=y, r=5, class_="before"),
        element("circle", cx=b, cy=y, r=5, class_="after"),
        element("text", f"{row.difference:+.3f}", x=WIDTH - RIGHT + 12, y=y + 4, class_="axis"),
        class_=row.state,
    )
