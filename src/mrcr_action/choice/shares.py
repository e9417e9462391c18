"""A number of samples shared out over cells that hold so many each."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def level(total: int, capacities: Sequence[int]) -> list[int]:
    """As even shares of a total as the capacities allow, the remainder to those listed first.

    No share shrinks when the total grows.
    """
    shares = [0] * len(capacities)
    left = min(total, sum(capacities))
    while left:
        open_ = [i for i, capacity in enumerate(capacities) if shares[i] < capacity]
        room = min(capacities[i] - shares[i] for i in open_)
        step = max(1, min(left // len(open_), room))
        for i in open_[: max(1, left // step)]:
            shares[i] += step
            left -= step
    return shares
