"""What of the dataset a run has tested: for every cell, from its rows to its answers. Pure."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import msgspec

from mrcr_action.bins import ALL_BINS, Bin, bin_of
from mrcr_action.plan import Cell, Dropped

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mrcr_action.plan import Ask, Plan
    from mrcr_action.result import Record


class Spread(msgspec.Struct, frozen=True):
    """Least, middle and most of some lengths in tokens."""

    least: int
    median: float
    most: int


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """One cell: a needle count and a bin."""

    name: str
    """Such as ``n8/64K-128K``."""
    n_needles: int
    low: int
    """Edges of the bin, in o200k tokens of prompt and answer."""
    high: int
    rows: int | None
    """Rows that the dataset holds; None where the protocol does not look at all of them."""
    fitting: int | None
    """Rows that the server's window has room for."""
    planned: int
    asked: int
    """Rows that were sent at least once."""
    scored: int
    truncated: int
    rejected: int
    failed: int
    requested: bool = False
    """Whether the configuration names the cell."""
    dropped: dict[Dropped, int] = {}
    """Rows that could not be asked, by reason."""
    o200k_tokens: Spread | None = None
    """Of prompt and answer, over the rows planned; None without any."""
    prompt_tokens: Spread | None = None
    """Of the prompt with its chat template, in the server's tokens: as it reported them, else as
    planned."""

    @property
    def bin(self) -> Bin:
        """The range of lengths."""
        return Bin(self.low, self.high)

    @property
    def is_missing(self) -> bool:
        """Whether the configuration names the cell and no row of it could be asked."""
        return self.requested and not self.planned


def coverage_of(plan: Plan | None, records: Sequence[Record]) -> tuple[Coverage, ...]:
    """Every cell of the plan, planned or not, by needle count and length.

    Args:
        plan: what was to be asked; without one, nothing is covered.
        records: finished asks.
    """
    if plan is None:
        return ()
    by_ask = {record.ask: record for record in records}
    cells = plan.cells or _cells_of(plan.asks)
    found = []
    for cell in cells:
        asks = [a for a in plan.asks if a.n_needles == cell.n_needles and in_bin(a, cell.bin)]
        own = [by_ask[ask.index] for ask in asks if ask.index in by_ask]
        outcomes = [record.outcome for record in own]
        lengths = [
            (by_ask[a.index].prompt_tokens if a.index in by_ask else None) or a.prompt_tokens
            for a in asks
        ]
        found.append(
            Coverage(
                name=cell.name,
                n_needles=cell.n_needles,
                low=cell.low,
                high=cell.high,
                rows=cell.rows if plan.cells else None,
                fitting=cell.fitting if plan.cells else None,
                planned=len(asks),
                asked=sum(record.attempts > 0 for record in own),
                scored=outcomes.count("scored"),
                truncated=outcomes.count("truncated"),
                rejected=outcomes.count("rejected"),
                failed=outcomes.count("failed"),
                requested=cell.requested,
                dropped=cell.dropped,
                o200k_tokens=_spread(ask.o200k_tokens for ask in asks),
                prompt_tokens=_spread(lengths),
            )
        )
    return tuple(found)


def in_bin(ask: Ask, bin_: Bin) -> bool:
    """Whether an ask's sample has its length in a bin."""
    return bin_of(ask.o200k_tokens) == bin_


def _cells_of(asks: Sequence[Ask]) -> list[Cell]:
    """The cells that the asks of a plan without cells happen to lie in."""
    needles = dict.fromkeys(ask.n_needles for ask in asks)
    return [
        Cell(n_needles=n, low=b.low, high=b.high, rows=0, fitting=0, planned=0)
        for n in needles
        for b in ALL_BINS
        if any(ask.n_needles == n and in_bin(ask, b) for ask in asks)
    ]


def _spread(lengths: Iterable[int]) -> Spread | None:
    values = list(lengths)
    return Spread(min(values), statistics.median(values), max(values)) if values else None
