"""The heat map: needle count by length, a table that can be read without colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.checks import threshold_of
from mrcr_action.report.html.groups import by_cell, first_round
from mrcr_action.report.html.markup import element, scrolling, section
from mrcr_action.rounds import FIRST

if TYPE_CHECKING:
    from mrcr_action.bins import Bin
    from mrcr_action.report.html.groups import Group
    from mrcr_action.report.html.markup import Element
    from mrcr_action.result import Bucket, Result

SIGNS = {"fail": "✗ fail", "inconclusive": "? unclear", "pass": "✓ pass", "measured": ""}

STEPS = (0.2, 0.4, 0.6, 0.8, 0.95)
"""Where one colour ends and the next begins; a cell also says its value."""


def heat_map(result: Result) -> Element | None:
    """A row for each needle count and for all, a column for each length; None without records."""
    protocol = result.config.protocol
    cells = by_cell(first_round(result.records), protocol)
    if not cells:
        return None
    lengths = sorted({length for _, length in cells})
    counts = sorted({needles for needles, _ in cells})
    buckets = {bucket.name: bucket for bucket in result.buckets}
    rows = [_row(result, buckets, cells, lengths, needles) for needles in counts]
    if len(counts) > 1:
        rows.append(_row(result, buckets, cells, lengths, None))
    title = f"Mean match ratio ({protocol}) by needles and length in o200k tokens"
    names = ("", "all lengths", *map(str, lengths))
    made = element(
        "table",
        element("caption", title),
        element(
            "thead",
            element(
                "tr",
                (
                    element("th" if name else "td", name, scope="col" if name else None)
                    for name in names
                ),
            ),
        ),
        element("tbody", rows),
        class_="heat",
    )
    return section(
        "where",
        "Where",
        scrolling(made, title),
        element(
            "p",
            "Choose a cell to list its samples. The stronger its colour, the more is missing; marks"
            " say what a threshold decided, and a cell without one has none.",
            class_="note",
        ),
        _legend(),
    )


def _row(
    result: Result,
    buckets: dict[str, Bucket],
    cells: dict[tuple[int, Bin], Group],
    lengths: list[Bin],
    needles: int | None,
) -> Element:
    name = "all" if needles is None else f"n{needles}"
    title = "all" if needles is None else f"{needles} needles"
    made = [element("th", title, scope="row"), _cell(result, buckets.get(name), needles, None)]
    if needles is not None:
        made += [
            _cell(
                result,
                buckets.get(f"{name}/{length}"),
                needles,
                length,
                cells.get((needles, length)),
            )
            for length in lengths
        ]
    return element("tr", made, class_="sum" if needles is None else None)


def _cell(
    result: Result,
    bucket: Bucket | None,
    needles: int | None,
    length: Bin | None,
    group: Group | None = None,
) -> Element:
    """One cell; the bucket's own figures where it is one, else those of its records."""
    protocol = result.config.protocol
    if bucket is not None:
        mean, n, lost = bucket.match_ratio(protocol), bucket.graded, bucket.lost
    elif group is not None:
        mean, n, lost = group.mean, group.n, group.lost
    else:
        return element("td", element("span", "–", aria_label="nothing asked"), class_="none")
    state = "measured" if bucket is None else result.verdict.state_of(bucket.name)
    bound = None if bucket is None else threshold_of(bucket, result.config)
    needed = None if bound is None else bound - result.config.tolerance
    value = "–" if mean is None else f"{mean:.3f}"
    lines = [
        element("span", value, class_="value"),
        element("span", f"n {n:,}" + (f", {lost:,} lost" if lost else ""), class_="n"),
    ]
    if needed is not None:
        lines.append(element("span", f"needs {needed:.3f}", class_="n"))
    if SIGNS[state]:
        lines.append(element("span", SIGNS[state], class_=f"mark {state}"))
    return element(
        "td",
        element(
            "button",
            ([line, " "] for line in lines),
            type="button",
            class_="opener",
            data_needles=needles,
            data_bin=None if length is None else str(length),
            data_pass=FIRST,
        ),
        class_=f"step{step_of(mean)} {state}",
    )


def step_of(mean: float | None) -> str:
    """Which colour a mean has, from 0 for the worst; nothing without one."""
    return "" if mean is None else str(sum(mean >= edge for edge in STEPS))


def _legend() -> Element:
    edges = (0.0, *STEPS)
    labels = [f"from {edge:g}" for edge in edges]
    return element(
        "ul",
        (
            element("li", element("span", class_=f"swatch step{at}"), label)
            for at, label in enumerate(labels)
        ),
        class_="legend",
        aria_label="Colours of the match ratio",
    )
