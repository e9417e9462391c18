"""In which order rows are considered, by protocol."""

from __future__ import annotations

import contextlib
import hashlib
import json
from importlib import metadata
from typing import TYPE_CHECKING

from mrcr_action.cache import entry, replace
from mrcr_action.data.paths import PARTS, shards_of

if TYPE_CHECKING:
    from mrcr_action.data.shards import Shards
    from mrcr_action.plan import Candidate

SHUFFLE_BUFFER = 16
"""Rows that vLLM's streaming shuffle holds at a time."""


def parts_of(protocol: str) -> range:
    """Which of a needle count's shards a protocol reads: all of them, or vLLM's first one."""
    return range(PARTS if protocol == "openai" else 1)


def candidates_in_order(
    shards: Shards, *, protocol: str, n_needles: int, seed: int
) -> list[Candidate]:
    """All rows that a protocol may choose from, first choice first."""
    if protocol == "openai":
        return _hashed(shards, n_needles, seed)
    return _streamed(shards, n_needles, seed)


def _hashed(shards: Shards, n_needles: int, seed: int) -> list[Candidate]:
    """Both shards, ordered by a hash of seed and row: a larger sample contains a smaller one."""
    paths = shards_of(n_needles, parts_of("openai"))
    rows = [c for shard in paths for c in shards.candidates(shard)]

    def place(candidate: Candidate) -> bytes:
        key = f"{seed}:{candidate.shard}:{candidate.row}"
        return hashlib.sha256(key.encode()).digest()

    return sorted(rows, key=place)


def _streamed(shards: Shards, n_needles: int, seed: int) -> list[Candidate]:
    """The first shard only, in the order in which vLLM's script sees its rows.

    That is ``load_dataset(..., streaming=True).shuffle(seed + n_needles, buffer_size=16)``. The
    library's shuffle looks at positions alone, so shuffling the row numbers gives the very same
    order without streaming the text (a test compares the two).
    """
    (shard,) = shards_of(n_needles, parts_of("vllm"))
    rows = shards.candidates(shard)
    return [rows[number] for number in _shuffled(len(rows), seed + n_needles)]


def _shuffled(size: int, seed: int) -> list[int]:
    """The row numbers in the library's order, remembered, since importing it takes a second."""
    path = entry("order", f"datasets-{metadata.version('datasets')}") / f"{size}-{seed}.json"
    with contextlib.suppress(OSError, ValueError):
        known = json.loads(path.read_bytes())
        if sorted(known) == list(range(size)):
            return list(known)
    order = _shuffle(size, seed)
    with contextlib.suppress(OSError):
        replace(path, json.dumps(order).encode())
    return order


def _shuffle(size: int, seed: int) -> list[int]:
    import datasets

    if not size:
        return []
    numbers = datasets.Dataset.from_dict({"index": list(range(size))})
    shuffled = numbers.to_iterable_dataset().shuffle(seed=seed, buffer_size=SHUFFLE_BUFFER)
    return [row["index"] for row in shuffled]
