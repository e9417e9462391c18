"""Length ranges in o200k tokens of prompt plus answer: the dataset card's, and shorter ones.

The dataset's shortest row has 4,096 tokens. Synthetic rows can be shorter, for servers with a short
window, and have bins of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Bin:
    """A range of token counts, closed above; the first one of the card is closed below too."""

    low: int
    high: int

    def __contains__(self, tokens: int) -> bool:
        """Whether a count of o200k tokens (prompt + answer) lies in this bin."""
        first = BINS[0].low
        if tokens == first:
            # The card's first bin holds its own lower edge, so the range below it does not.
            return self.low == first or self.low < first < self.high
        return self.low < tokens <= self.high

    def __str__(self) -> str:
        return f"{in_short(self.low)}-{in_short(self.high)}"


BINS = tuple(Bin(4096 << i, 8192 << i) for i in range(8))
"""[4096, 8192], (8192, 16384], … (524288, 1048576]: the dataset card's eight bins."""

SHORT_BINS = (Bin(0, 512), Bin(512, 1024), Bin(1024, 2048), Bin(2048, 4096))
"""(0, 512], … (2048, 4096): bins of rows that are shorter than the dataset's."""

ALL_BINS = SHORT_BINS + BINS
"""Every bin, from short to long; each count from 1 to 1,048,576 lies in exactly one."""


def bin_of(tokens: int) -> Bin | None:
    """The bin that holds this count, or None for 0 and above 1,048,576."""
    return next((b for b in ALL_BINS if tokens in b), None)


def known_bin(text: str) -> Bin:
    """One of `ALL_BINS` by its name, such as ``64K-128K``.

    Raises:
        ValueError: there is no such bin.
    """
    wanted = parse_bin(text)
    if wanted not in ALL_BINS:
        raise ValueError(f"{text!r} is none of the bins {', '.join(map(str, ALL_BINS))}")
    return wanted


def parse_bin(text: str) -> Bin:
    """Read ``4K-8K`` or ``128K-1M``; K is 1,024 and M is 1,024 K.

    Raises:
        ValueError: the text is not a range, or its ends are not in order.
    """
    match = re.fullmatch(r"(\d+)([KM]?)-(\d+)([KM]?)", text.strip().upper())
    if not match:
        raise ValueError(f"{text!r} is not a range of tokens such as 4K-8K")
    unit = {"": 1, "K": 1024, "M": 1024 * 1024}
    low, high = int(match[1]) * unit[match[2]], int(match[3]) * unit[match[4]]
    if low >= high:
        raise ValueError(f"{text!r} does not run from a smaller to a larger number of tokens")
    return Bin(low, high)


def in_short(tokens: int) -> str:
    """A number of tokens as bins are named: 128K, 1M."""
    for size, suffix in ((1024 * 1024, "M"), (1024, "K")):
        if tokens >= size and tokens % size == 0:
            return f"{tokens // size}{suffix}"
    return str(tokens)
