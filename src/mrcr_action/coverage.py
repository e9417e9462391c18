"""What of the dataset a run has tested: for every cell, from its rows to its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mrcr_action.bins import Bin, bin_of
from mrcr_action.plan import Dropped

if TYPE_CHECKING:
    from mrcr_action.plan import Ask


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
    match_ratio_openai: float | None = None
    """Mean over the graded samples; None without any."""
    match_ratio_vllm: float | None = None
    requested: bool = False
    """Whether the configuration names the cell, in ``bins`` or by a threshold."""
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

    def match_ratio(self, protocol: str) -> float | None:
        """The mean that a protocol gates on."""
        return self.match_ratio_openai if protocol == "openai" else self.match_ratio_vllm

    @property
    def is_missing(self) -> bool:
        """Whether the configuration names the cell and no row of it can be asked."""
        return self.requested and not self.planned

    @property
    def why_missing(self) -> str:
        """That no row of the cell can be asked, and why."""
        if self.fitting:
            return f"{self.name}: no row to ask: none chosen fits, or num_samples is too small"
        reasons = [f"{count} of {self.rows} {reason}" for reason, count in self.dropped.items()]
        return f"{self.name}: no row to ask: {', '.join(reasons) or 'the dataset has none'}"


def in_bin(ask: Ask, bin_: Bin) -> bool:
    """Whether an ask's sample has its length in a bin."""
    return bin_of(ask.o200k_tokens) == bin_
