"""The heat map: needle count by length, a table that can be read without colour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrcr_action.checks import threshold_of
from mrcr_action.report.html.groups import by_cell
from mrcr_action.report.html.markup import element, folded, foreign, scrolling, section
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
    """A row for each needle count and for all, a column for each length; None without records.

    Further passes that ask the same samples have one each, folded.
    """
    first = _map(result, FIRST)
    if first is None:
        return None
    rounds = result.plan.rounds if result.plan is not None else ()
    others = [r.name for r in rounds if r.has_same_samples and not r.is_first]
    found = [(name, _map(result, name)) for name in others]
    return section(
        "where",
        "Where",
        first,
        element(
            "p",
            "Choose a cell to list its samples. The stronger its colour, the more is missing; marks"
            " say what a threshold decided, and a cell without one has none.",
            class_="note",
        ),
        _legend(),
        (folded(f"The same, pass {foreign(name)}", made) for name, made in found if made),
    )


def _map(result: Result, pass_name: str) -> Element | None:
    """The table of one pass."""
    protocol = result.config.protocol
    own = [record for record in result.records if record.pass_name == pass_name]
    cells = by_cell(own, protocol)
    if not cells:
        return None
    lengths = sorted({length for _, length in cells})
    counts: list[int | None] = [*sorted({needles for needles, _ in cells})]
    rows = [
        _row(_Cells(result, pass_name, cells), lengths, needles)
        for needles in (counts if len(counts) == 1 else [*counts, None])
    ]
    title = f"Mean match ratio ({protocol}) by needles and length in o200k tokens"
    title += "" if pass_name == FIRST else f", pass {foreign(pass_name)}"
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
    return scrolling(made, title)


@dataclass(frozen=True, slots=True)
class _Cells:
    """What is known of one pass."""

    result: Result
    pass_name: str
    groups: dict[tuple[int, Bin], Group]

    def bucket(self, name: str) -> Bucket | None:
        """The bucket that a name means in this pass."""
        for bucket in self.result.buckets:
            if (bucket.round or FIRST) == self.pass_name and name in {bucket.name, bucket.base}:
                return bucket
        return None


def _row(cells: _Cells, lengths: list[Bin], needles: int | None) -> Element:
    name = "all" if needles is None else f"n{needles}"
    title = "all" if needles is None else f"{needles} needles"
    made = [element("th", title, scope="row"), _cell(cells, name, needles, None)]
    if needles is not None:
        made += [_cell(cells, f"{name}/{length}", needles, length) for length in lengths]
    return element("tr", made)


def _cell(cells: _Cells, name: str, needles: int | None, length: Bin | None) -> Element:
    """One cell; the bucket's own figures where it is one, else those of its records."""
    result, bucket = cells.result, cells.bucket(name)
    protocol = result.config.protocol
    group = None if needles is None or length is None else cells.groups.get((needles, length))
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
            data_pass=cells.pass_name,
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
