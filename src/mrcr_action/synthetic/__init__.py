"""Rows in the dataset's exact schema and shape, made up by a small grammar and a seed.

They stand in for the dataset where it cannot be downloaded, and give short rows for servers with
a short window. The same arguments give the same bytes on every machine and Python version.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from mrcr_action.synthetic.row import DATE_ADDED, Row
from mrcr_action.synthetic.spec import LONGEST_ROW, MOST_NEEDLES, SyntheticSpec
from mrcr_action.synthetic.turns import question, request

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mrcr_action.bins import Bin

__all__ = [
    "DATE_ADDED",
    "LONGEST_ROW",
    "MOST_NEEDLES",
    "SyntheticSpec",
    "question",
    "request",
    "synthetic_row",
    "synthetic_rows",
]


def synthetic_rows(
    needles: Sequence[int],
    bins: Sequence[Bin],
    per_cell: int,
    seed: int,
    *,
    hostile: bool = False,
    non_latin: int = 0,
) -> Iterator[dict[str, Any]]:
    """``per_cell`` rows for each needle count and bin, in that order.

    A row depends on its own cell and index alone: more rows, needle counts or bins leave the
    others as they were. What is out of range in any cell is said before the first row is made.

    Raises:
        UsageError: as `synthetic_row` does.
    """

    def spec(n_needles: int, bin_: Bin, index: int) -> SyntheticSpec:
        return SyntheticSpec(
            n_needles=n_needles,
            bin=bin_,
            seed=seed,
            index=index,
            hostile=hostile,
            non_latin=non_latin,
        )

    for n_needles, bin_ in itertools.product(needles, bins):
        spec(n_needles, bin_, 0).check()
    cells = itertools.product(needles, bins, range(per_cell))
    return (synthetic_row(spec(*cell)) for cell in cells)


def synthetic_row(spec: SyntheticSpec) -> dict[str, Any]:
    """One row with the dataset's columns, its o200k count within the bin.

    Raises:
        UsageError: the needle count, the bin or the percentage is out of range, so many needles
            and the preamble do not fit the bin, or the exact number of tokens lies outside it.
        DataError: the o200k vocabulary is missing or not the one expected.
    """
    spec.check()
    return Row(spec).build()
