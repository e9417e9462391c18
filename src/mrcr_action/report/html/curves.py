"""The two curves: match ratio by length and by where the wanted needle lies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.report.html.groups import TENTHS, by_cell, by_depth, first_round
from mrcr_action.report.html.markup import element, folded, section, table
from mrcr_action.report.html.plot import Floor, Point, Series, plot
from mrcr_action.report.html.published import NOISE_FLOOR, published
from mrcr_action.report.rows import areas

if TYPE_CHECKING:
    from mrcr_action.report.html.markup import Element
    from mrcr_action.result import Result

FLOORS = (
    " The dotted lines are what a model scores that repeats any one of the needles: second-hand"
    " figures, for orientation."
)

LOOKS = {2: 0, 4: 1, 8: 2}


def by_length(result: Result) -> Element | None:
    """A line for each needle count; None without a graded sample."""
    protocol = result.config.protocol
    cells = by_cell(first_round(result.records), protocol)
    lengths = sorted({length for (_, length), of in cells.items() if of.mean is not None})
    counts = sorted({needles for (needles, _), of in cells.items() if of.mean is not None})
    if not lengths:
        return None
    intervals = {b.name: b.interval for b in result.buckets if b.bin is not None}
    series = []
    for needles in counts:
        points = {}
        for at, length in enumerate(lengths):
            of = cells.get((needles, length))
            if of is not None and of.mean is not None:
                points[at] = Point(of.mean, of.n, intervals.get(f"n{needles}/{length}"))
        series.append(Series(f"{needles} needles", LOOKS.get(needles, 0), points))
    floors = [
        Floor(f"any of {needles} needles, at random", LOOKS.get(needles, 0), NOISE_FLOOR[needles])
        for needles in counts
        if needles in NOISE_FLOOR and protocol == "openai"
    ]
    area = areas(result)
    scores = published(protocol, counts)
    return section(
        "length",
        "By length",
        plot(
            f"Mean match ratio ({protocol}) by length",
            [str(length) for length in lengths],
            series,
            below="prompt and answer, o200k tokens",
            floors=floors,
        ),
        element("p", area, class_="note") if area else None,
        element(
            "p",
            "Bars are 95 % intervals, where a cell has one." + (FLOORS if floors else ""),
            class_="note",
        ),
        folded(
            "Published scores, second-hand",
            table(scores, caption=f"As others published them ({protocol} scoring)", words=4),
            element(
                "p",
                "Copied from public tables, not measured here. They hold for the needle count and"
                " the version of the data that they name; no threshold was taken from them.",
                class_="note",
            ),
        )
        if len(scores) > 1
        else None,
    )


def by_place(result: Result) -> Element | None:
    """One line over tenths of the conversation; None where nobody knows where the needles lie."""
    protocol = result.config.protocol
    tenths = by_depth(first_round(result.records), protocol)
    points = {at: Point(of.mean, of.n) for at, of in tenths.items() if of.mean is not None}
    if not points:
        return None
    names = [f"{10 * at}–{10 * at + 10} %" for at in range(TENTHS)]
    return section(
        "depth",
        "By depth",
        plot(
            f"Mean match ratio ({protocol}) by where the wanted needle begins",
            names,
            [Series("all samples", 0, points)],
            below="share of the conversation's characters before it: 0 % is the beginning",
        ),
    )
