"""Several looks at the same thresholds, as samples are added: how many, at what. Pure; no I/O.

Whoever looks again and again until an interval leaves the threshold is wrong more often than one
interval is: with five looks at 95 % some 14 times in 100 (P. Armitage, C. K. McPherson and B. C.
Rowe, Journal of the Royal Statistical Society A 132, 1969). So how many looks there may be, and at
how many samples of a cell, is fixed before the first one, and what all of them together may miss is
shared out evenly (Bonferroni). All intervals then hold at once 95 times in 100, whichever of the
looks are taken and whenever that ends.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mrcr_action.bins import bin_of
from mrcr_action.intervals import LEVEL

if TYPE_CHECKING:
    from mrcr_action.config import RunConfig
    from mrcr_action.config.thresholds import Place
    from mrcr_action.plan import Cell, Plan

GROWTH = 1.5
"""From one look to the next, so many times as many samples of a cell."""

LEAST = 2
"""Samples of a cell that a look adds at least."""


def schedule_of(config: RunConfig) -> tuple[int, ...]:
    """Samples of a cell at each look that there may be; empty where there is one look only."""
    first, most = config.per_cell, config.max_samples_per_cell
    if first is None or most is None:
        return ()
    found = [first]
    while found[-1] < most:
        found.append(min(most, max(found[-1] + LEAST, math.ceil(found[-1] * GROWTH))))
    return tuple(found)


def confidence(plan: Plan) -> float:
    """How often one of a plan's intervals has to hold for all of them to do so 95 times in 100."""
    return 1 - (1 - LEVEL) / max(1, len(plan.schedule))


def cells_in(plan: Plan, place: Place) -> list[Cell]:
    """The cells of a bucket that are asked."""
    return [
        cell
        for cell in plan.cells
        if cell.planned
        and place.n_needles in {None, cell.n_needles}
        and place.bin in {None, cell.bin}
    ]


def level_of(plan: Plan, place: Place) -> int:
    """To how many rows of its cells a bucket goes: to as many as all of them have.

    Of a cell that has got more for another bucket's sake, the further ones do not count here: the
    mean would be of other lengths than the threshold was meant for.
    """
    return min((cell.level for cell in cells_in(plan, place)), default=0)


def counted(plan: Plan, place: Place) -> frozenset[tuple[str, int]]:
    """Shard and row of every sample that a bucket counts."""
    level = level_of(plan, place)
    cells = {(cell.n_needles, cell.bin) for cell in cells_in(plan, place)}
    return frozenset(
        (ask.shard, ask.row)
        for ask in plan.samples
        if ask.rank < level and (ask.n_needles, bin_of(ask.o200k_tokens)) in cells
    )


def taken(plan: Plan) -> list[str]:
    """A sentence about the looks that were taken, where there could be several."""
    if not plan.schedule:
        return []
    added = sum(look.samples for look in plan.looks)
    how = f"Looks at the thresholds: {len(plan.looks) + 1} of at most {len(plan.schedule)}"
    grew = f", {added} samples were added to {len(plan.samples) - added}" if added else ""
    told = (
        f"{how}{grew} (max_samples_per_cell is {plan.schedule[-1]}). Each interval is at"
        f" {confidence(plan):.2%}, so that all of them together hold 95 times in 100."
    )
    return [told]
