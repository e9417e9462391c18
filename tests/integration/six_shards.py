"""A dataset of six shards: 2, 4 and 8 needles, two files each, rows of known lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.handmade import WORDS, row, write_rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NEEDLES = (2, 4, 8)

EDGES = (4096, 8192, 8193, 16384, 16385, 32768, 40000, 65536, 65537, 131072, 131073, 200000)
"""o200k tokens of the rows of a needle count: two of every bin from 4K-8K to 128K-256K."""

SHORT = (300, 512, 600, 900, 1100, 1500, 2500, 4000, 4096, 5000, 8192, 9000)
"""The same where it is not the lengths that matter."""


def write_six_shards(folder: Path, sizes: Sequence[int] = SHORT) -> Path:
    """Write the dataset; the rows of a needle count go to its two shards in turn."""
    rows = [
        row(n_needles, number, size, word=WORDS[number % len(WORDS)])
        for n_needles in NEEDLES
        for number, size in enumerate(sizes)
    ]
    return write_rows(folder, rows)
