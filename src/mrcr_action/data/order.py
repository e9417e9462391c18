"""In which order rows are considered, by protocol."""

from __future__ import annotations

import contextlib
import hashlib
from importlib import metadata
from typing import TYPE_CHECKING

import msgspec

from mrcr_action.cache import entry, replace
from mrcr_action.data.paths import PARTS, shards_of

if TYPE_CHECKING:
    from mrcr_action.data.shards import Shards
    from mrcr_action.plan import Candidate

CHARS_PER_TOKEN = 4
"""vLLM's rough filter: a row with more than 4 characters per allowed token is not counted."""

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
    order = shards.index(shard).orders.get(order_name(seed + n_needles), [])
    if not _is_order(order, len(rows)):
        order = shuffled(len(rows), seed + n_needles)
    return [rows[number] for number in order]


def order_name(seed: int) -> str:
    """What a bundle calls the order of a shard's rows: it depends on the library's version too."""
    return f"datasets {metadata.version('datasets')}, seed {seed}"


def shuffled(size: int, seed: int) -> list[int]:
    """The row numbers in the library's order, remembered, since importing it takes a second."""
    path = entry("order", f"datasets-{metadata.version('datasets')}") / f"{size}-{seed}.json"
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        known = msgspec.json.decode(path.read_bytes(), type=list[int])
        if _is_order(known, size):
            return known
    order = _shuffle(size, seed)
    with contextlib.suppress(OSError):
        replace(path, msgspec.json.encode(order))
    return order


def _is_order(order: list[int], size: int) -> bool:
    return sorted(order) == list(range(size))


def _shuffle(size: int, seed: int) -> list[int]:
    import datasets

    if not size:
        return []
    numbers = datasets.Dataset.from_dict({"index": list(range(size))})
    shuffled = numbers.to_iterable_dataset().shuffle(seed=seed, buffer_size=SHUFFLE_BUFFER)
    return [row["index"] for row in shuffled]
