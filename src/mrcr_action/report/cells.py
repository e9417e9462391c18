"""The table of cells, as planned and as covered, that the console and the summary both show."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mrcr_action.coverage import in_bin
from mrcr_action.report.rows import lost, number, span

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mrcr_action.coverage import Coverage, Spread
    from mrcr_action.intervals import Interval
    from mrcr_action.plan import Plan

PLAN_COLUMNS = ("cell", "rows", "fit", "planned", "o200k tokens", "prompt tokens", "left out")
COVERAGE_COLUMNS = (
    "cell",
    "ratio",
    "asked",
    "graded",
    "lost",
    "o200k tokens",
    "rows",
    "fit",
    "left out",
)
"""``ratio`` is the gated protocol's mean over the cell, ``rows`` are the dataset's, ``fit`` those
the window has room for, ``o200k tokens`` least, median and most of prompt and answer, ``prompt
tokens`` what all prompts of the cell come to."""


def plan_table(plan: Plan, cells: Sequence[Coverage]) -> list[tuple[str, ...]]:
    """A header, a row for each cell that the window reaches or that is named, and the sum."""
    table: list[tuple[str, ...]] = [PLAN_COLUMNS]
    for cell in shown(cells):
        total = sum(
            ask.prompt_tokens
            for ask in plan.samples
            if ask.n_needles == cell.n_needles and in_bin(ask, cell.bin)
        )
        table.append(
            (
                cell.name,
                _number(cell.rows),
                _number(cell.fitting),
                str(cell.planned),
                spread(cell.o200k_tokens),
                f"{total:,}",
                left_out(cell),
            )
        )
    table.append(
        (
            "all",
            _sum(cell.rows for cell in shown(cells)),
            _sum(cell.fitting for cell in shown(cells)),
            str(len(plan.samples)),
            "–",
            f"{sum(ask.prompt_tokens for ask in plan.samples):,}",
            "–",
        )
    )
    return _without_blank(table)


def coverage_table(
    cells: Sequence[Coverage],
    protocol: str,
    intervals: Mapping[str, Interval | None] | None = None,
) -> list[tuple[str, ...]]:
    """A header and a row for each cell that was planned or that is named.

    Args:
        cells: what was tested.
        protocol: whose match ratio is shown.
        intervals: of that ratio, by the name of the cell; they make a column of their own.
    """
    first, second, *others = COVERAGE_COLUMNS
    header = (first, second, *([] if intervals is None else ["95 %"]), *others)
    table: list[tuple[str, ...]] = [header]
    table += [
        (
            cell.name,
            number(cell.match_ratio(protocol)),
            *([] if intervals is None else [span(intervals.get(cell.name))]),
            f"{cell.asked}/{cell.planned}",
            str(cell.scored + cell.truncated),
            lost(cell),
            spread(cell.o200k_tokens),
            _number(cell.rows),
            _number(cell.fitting),
            left_out(cell),
        )
        for cell in shown(cells)
    ]
    return _without_blank(table)


def shown(cells: Sequence[Coverage]) -> list[Coverage]:
    """The cells worth a line: those that are planned, named, or could have been planned."""
    return [cell for cell in cells if cell.planned or cell.requested or cell.fitting]


def beyond(cells: Sequence[Coverage]) -> str:
    """A sentence about the cells without a line, by reason; empty if there are none."""
    lines = shown(cells)
    rows: Counter[str] = Counter()
    places: dict[str, list[str]] = {}
    for cell in sorted(cells, key=lambda c: (c.low, c.n_needles)):
        if not cell.rows or cell in lines:
            continue
        alone = any(other.bin == cell.bin for other in lines)
        for reason, count in cell.dropped.items():
            rows[reason] += count
            places.setdefault(reason, []).append(cell.name if alone else str(cell.bin))
    parts = []
    for what, count in rows.items():
        where = ", ".join(dict.fromkeys(places[what]))
        parts.append(f"{count:,} {'row' if count == 1 else 'rows'} {what} ({where})")
    return f"Not tested: {'; '.join(parts)}." if parts else ""


def spread(lengths: Spread | None) -> str:
    """Least, median and most; a dash without any."""
    if lengths is None:
        return "–"
    if lengths.least == lengths.most:
        return f"{lengths.least:,}"
    return f"{lengths.least:,} – {lengths.median:,.0f} – {lengths.most:,}"


def left_out(cell: Coverage) -> str:
    """Why rows of a cell cannot be asked."""
    return ", ".join(f"{count} {reason}" for reason, count in cell.dropped.items()) or "–"


def _without_blank(table: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The table without its last column, where nothing was left out of any cell."""
    blank = all(row[-1] == "–" for row in table[1:])
    return [row[:-1] if blank else row for row in table]


def _number(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _sum(values: Iterable[int | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{sum(known):,}" if known else "–"
