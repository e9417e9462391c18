"""A number of samples shared out over cells that hold so many each."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def level(total: int, capacities: Sequence[int]) -> list[int]:
    """As even shares of a total as the capacities allow.

    The remainder goes to the last of those that are not full, the first, the middle one and so on,
    so that a few samples are of all lengths. No share shrinks when the total grows.
    """
    shares = [0] * len(capacities)
    left = min(total, sum(capacities))
    while left:
        open_ = [i for i, capacity in enumerate(capacities) if shares[i] < capacity]
        room = min(capacities[i] - shares[i] for i in open_)
        step = max(1, min(left // len(open_), room))
        for i in apart(open_)[: max(1, left // step)]:
            shares[i] += step
            left -= step
    return shares


def apart(items: Sequence[int]) -> list[int]:
    """The last item, the first, the one in the middle between them, those in between, and so on."""
    if len(items) < 2:  # noqa: PLR2004 - there is nothing to put in order
        return list(items)
    found = [items[-1], items[0]]
    gaps = deque([(0, len(items) - 1)])
    while gaps:
        low, high = gaps.popleft()
        if high - low > 1:
            middle = (low + high) // 2
            found.append(items[middle])
            gaps += [(low, middle), (middle, high)]
    return found
