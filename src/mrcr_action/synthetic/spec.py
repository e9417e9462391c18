"""Which synthetic row is wanted, and the limits of what can be asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrcr_action.errors import UsageError

if TYPE_CHECKING:
    from mrcr_action.bins import Bin

MOST_NEEDLES = 16
"""Needles that a synthetic row may have; the dataset's have 2, 4 or 8."""

LONGEST_ROW = 1024 * 1024
"""The o200k tokens of the longest synthetic row: the upper edge of the dataset's last bin."""

_PERCENT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticSpec:
    """Which row is wanted; equal specs give equal rows."""

    n_needles: int
    """How many identical requests the conversation holds: 1 to 16."""
    bin: Bin
    """The range of o200k tokens (prompt + answer) the row must lie in."""
    seed: int
    index: int = 0
    """Which row of its cell; the rows of a cell are spread evenly over its bin."""
    hostile: bool = False
    """Whether pieces hold what reports, shells and chat templates must escape."""
    non_latin: int = 0
    """Percent of the pieces that are written in other scripts than Latin."""
    exact: int | None = None
    """How many o200k tokens the row must have, to the token; it must lie in the bin."""

    def check(self) -> None:
        """Refuse what no row can be.

        Raises:
            UsageError: the needle count, the bin or the percentage is out of range, or the exact
                number of tokens lies outside the bin.
        """
        if not 1 <= self.n_needles <= MOST_NEEDLES:
            raise UsageError(
                f"{self.n_needles} needles were asked for; a synthetic row has 1 to {MOST_NEEDLES}",
                hint="the dataset's own rows have 2, 4 or 8",
            )
        if self.bin.high > LONGEST_ROW:
            raise UsageError(
                f"the bin {self.bin} is too long: a synthetic row has at most 1M tokens",
                hint="512K-1M is the longest bin of the dataset",
            )
        if not 0 <= self.non_latin <= _PERCENT:
            raise UsageError(
                f"{self.non_latin} percent of the pieces cannot be non-Latin: 0 to 100"
            )
        if self.exact is not None and self.exact not in self.bin:
            raise UsageError(
                f"a row of exactly {self.exact} tokens was asked for in the bin {self.bin}",
                hint="ask for the bin that holds this number of tokens",
            )
