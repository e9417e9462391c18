"""One number for a server's reading over all lengths: the area under its curve. Pure; no I/O.

Counted as Context Arena does: by trapezoids over the upper bounds of the bins, on a linear axis of
tokens, divided by its width. So the longest bins weigh most: half of the area up to 1M lies beyond
512K.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import msgspec

from mrcr_action.bins import BINS, Bin

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mrcr_action.coverage import Coverage

UP_TO = (131_072, 1_048_576)
"""Where Context Arena's areas end."""


class Area(msgspec.Struct, frozen=True, kw_only=True):
    """The area of one needle count up to one length."""

    n_needles: int
    up_to: int
    """Upper bound of the last bin, in o200k tokens."""
    auc: float
    """A mean match ratio of the openai protocol, from 0 to 1."""
    n: int
    """Graded samples that it rests on."""


def auc(means: Mapping[Bin, float], up_to: int) -> float | None:
    """The area under the means of the card's bins, divided by its width.

    Args:
        means: by bin; what they count, ratios or percents, the area counts too.
        up_to: upper bound of the last bin, in tokens.

    Returns:
        None where a bin up to there has no mean, or where no bin but the first ends by then.
    """
    bins = [bin_ for bin_ in BINS if bin_.high <= up_to]
    if len(bins) < 2 or bins[-1].high != up_to or any(bin_ not in means for bin_ in bins):  # noqa: PLR2004 - the ends of a line
        return None
    area = sum((means[a] + means[b]) / 2 * (b.high - a.high) for a, b in itertools.pairwise(bins))
    return area / (up_to - bins[0].high)


def areas_of(coverage: Sequence[Coverage]) -> tuple[Area, ...]:
    """The areas of every needle count of which enough was measured.

    Args:
        coverage: the cells of a run's first round.
    """
    found = []
    for n_needles in dict.fromkeys(cell.n_needles for cell in coverage):
        cells = {cell.bin: cell for cell in coverage if cell.n_needles == n_needles}
        means = {
            bin_: cell.match_ratio_openai
            for bin_, cell in cells.items()
            if cell.match_ratio_openai is not None
        }
        for up_to in UP_TO:
            area = auc(means, up_to)
            if area is not None:
                n = sum(
                    cell.scored + cell.truncated
                    for bin_, cell in cells.items()
                    if bin_ in BINS and bin_.high <= up_to
                )
                found.append(Area(n_needles=n_needles, up_to=up_to, auc=area, n=n))
    return tuple(found)
