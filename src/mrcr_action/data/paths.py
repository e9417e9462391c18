"""Names of the dataset's files: which rows lie in which shard."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

PARTS = 2
"""Shards for each needle count."""


def shard_path(n_needles: int, part: int) -> str:
    """Path of a shard within the dataset, such as ``2needle/2needle_0.parquet``."""
    return f"{n_needles}needle/{n_needles}needle_{part}.parquet"


def shards_of(n_needles: int, parts: Iterable[int]) -> list[str]:
    """Paths of the shards of a needle count."""
    return [shard_path(n_needles, part) for part in parts]


def needles_of(shard: str) -> int:
    """The needle count that a shard's path names."""
    return int(shard.partition("needle")[0])
