"""The value at which responses turn from exact to wrong, if there is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrcr_action.diagnosis.chance import CHANCE, FEW, fisher, leading

if TYPE_CHECKING:
    from collections.abc import Iterable

STEEP = 4
"""So many times as large a share is wrong behind an edge as before it, at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Between two values: before it hardly any response is wrong, behind it most are."""

    below: int
    """Greatest value before it."""
    above: int
    """Least value behind it."""
    wrong_below: int
    of_below: int
    wrong_above: int
    of_above: int
    p: float
    """Chance of the like in a random order."""


def edge_of(values: Iterable[tuple[int, bool]]) -> Edge | None:
    """The likeliest edge; None without one that is more than chance.

    Args:
        values: each with whether its response is wrong.

    Where nothing before it is wrong, the length of that beginning is what is tested. Else the best
    of all places is taken, and its chance multiplied by their number (Bonferroni).
    """
    ordered = sorted(values)
    n, wrong = len(ordered), sum(is_wrong for _, is_wrong in ordered)
    best: Edge | None = None
    before = 0
    for at in range(1, n):
        before += ordered[at - 1][1]
        behind, left = wrong - before, n - at
        if ordered[at - 1][0] == ordered[at][0] or min(at - before, behind) < FEW:
            continue
        if behind * 2 < left or before * left * STEEP > behind * at:
            continue
        p = fisher(behind, left, before, at) * (n - 1)
        if before == 0:
            p = min(p, leading(at, n - wrong, wrong))
        if p <= CHANCE and (best is None or p <= best.p):
            best = Edge(
                below=ordered[at - 1][0],
                above=ordered[at][0],
                wrong_below=before,
                of_below=at,
                wrong_above=behind,
                of_above=left,
                p=p,
            )
    return best
