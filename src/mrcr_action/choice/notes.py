"""What a person must know about a choice of samples by cell, each in a sentence. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mrcr_action.errors import NothingReadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mrcr_action.config import RunConfig
    from mrcr_action.data.lengths import Length
    from mrcr_action.plan import Cell

FAULTS_SHOWN = 5


def faults(rows: Iterable[Length]) -> list[str]:
    """Rows that break an invariant of the dataset, as far as rows were read."""
    found = [f"{x.candidate.shard}#{x.candidate.row} was left out: {x.row.fault}." for x in rows]
    more = len(found) - FAULTS_SHOWN
    if more > 0:
        return [
            *found[:FAULTS_SHOWN],
            f"{more} more rows were left out: they break the dataset's invariants.",
        ]
    return found


def unreadable(reasons: Iterable[str]) -> list[str]:
    """That rows were left out which the model is known to be unable to read.

    Args:
        reasons: one for each such row.
    """
    counts = Counter(reasons)
    if not counts:
        return []
    rows = "1 row was" if counts.total() == 1 else f"{counts.total():,} rows were"
    why = "; ".join(f"{reason} ({count:,})" for reason, count in sorted(counts.items()))
    return [f"{rows} left out, because the probe cannot read such: {why}."]


def shortages(config: RunConfig, cells: Sequence[Cell], limit: int) -> list[str]:
    """Where there are fewer samples than were wanted."""
    per_cell = config.per_cell
    if per_cell is not None:
        short = [c for c in cells if c.planned < per_cell and (c.planned or c.fitting)]
        few = [c for c in short if c.planned == _usable(c)]
        cut = [c for c in short if c not in few]
        found = []
        if few:
            names = ", ".join(f"{c.name} ({c.planned})" for c in few)
            found.append(f"Fewer than {per_cell} samples, because there are no more, in {names}.")
        if cut:
            names = ", ".join(f"{c.name} ({c.planned})" for c in cut)
            found.append(
                f"Fewer than {per_cell} samples, because the others of the first {per_cell} are too"
                f" long for the window, in {names}."
            )
        return found
    found = []
    for n_needles, quota in config.quotas().items():
        own = [c for c in cells if c.n_needles == n_needles]
        planned = sum(c.planned for c in own)
        if planned < quota:
            rows = sum(c.rows for c in own)
            long = sum(c.dropped.get("too long", 0) for c in own)
            odd = sum(c.dropped.get("unreadable", 0) for c in own)
            also = f", and {odd} cannot be read" if odd else ""
            found.append(
                f"Only {planned} of {quota} samples with {n_needles} needles were found: of"
                f" {rows} rows, {long} do not fit into {limit:,} prompt tokens{also}."
            )
    return found


def nothing_readable(config: RunConfig, limit: int, told: str) -> NothingReadable:
    """The error where every row that fits is one that the model cannot read.

    Args:
        config: names the dataset.
        limit: most tokens of a prompt.
        told: why the rows were left out.
    """
    return NothingReadable(
        f"{config.dataset}: no row is left that fits into {limit:,} prompt tokens and can be read:"
        f" {told}",
        hint="docs/probe.md says what the probe can read.",
    )


def _usable(cell: Cell) -> int:
    """Rows that nothing is wrong with."""
    return cell.rows - cell.dropped.get("invalid", 0) - cell.dropped.get("unreadable", 0)


def untested(cells: Sequence[Cell], longest: int | None) -> list[str]:
    """That the window ends within a bin that is tested, if it does.

    Args:
        cells: the cells of a plan.
        longest: about how many o200k tokens of prompt the limit is.
    """
    tested = [cell.bin for cell in cells if cell.planned]
    if longest is None or not tested:
        return []
    last = max(tested)
    dropped = sum(c.dropped.get("too long", 0) for c in cells if c.bin == last)
    if longest >= last.high or not dropped:
        return []
    sentence = (
        f"The top of the last bin, {last}, is untested: the limit is about {longest:,} of its"
        f" {last.high:,} o200k tokens, and {dropped} of its rows are longer."
    )
    return [sentence]
