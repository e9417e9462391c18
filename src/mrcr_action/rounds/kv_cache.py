"""What a server tells of its KV cache: in /metrics, in its arguments, in its log."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from mrcr_action.client import ApiError
from mrcr_action.result import CacheInfo
from mrcr_action.telemetry.exposition import is_count, samples_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from mrcr_action.client import Client

QUERIED = "vllm:prefix_cache_queries_total"
HIT = "vllm:prefix_cache_hits_total"
CONFIGURED = "vllm:cache_config_info"

CHUNK_FLAG = "--max-num-batched-tokens"
CHUNK_LOGGED = re.compile(rb"max_num_batched_tokens=(\d{1,9})\b")
LOG_READ = 1_000_000
"""Bytes of a server's log, from its start, that are searched for what it was started with."""


async def look(client: Client, command: Sequence[str], log: Path | None) -> CacheInfo:
    """What can be known now; its counters are those since the server's start."""
    try:
        text = await client.metrics()
    except ApiError:
        text = ""
    chunk = _of_arguments(command) or _of_log(log)
    return msgspec.structs.replace(read_metrics(text), prefill_chunk=chunk)


def read_metrics(text: str) -> CacheInfo:
    """The cache as the Prometheus text of /metrics tells of it; of several engines, their sum."""
    sums: dict[str, float] = {}
    labels: Mapping[str, str] = {}
    for sample in samples_of(text, {QUERIED, HIT, CONFIGURED}):
        if sample.name == CONFIGURED:
            labels = labels or sample.labels
        elif is_count(sample.value):
            sums[sample.name] = sums.get(sample.name, 0.0) + sample.value
    caching = {"True": True, "False": False}.get(labels.get("enable_prefix_caching", ""))
    return CacheInfo(
        block_size=_whole(labels.get("block_size")),
        blocks=_whole(labels.get("num_gpu_blocks")),
        capacity=_whole(labels.get("kv_cache_size_tokens")),
        prefix_caching=caching,
        queried_tokens=sums.get(QUERIED),
        hit_tokens=sums.get(HIT),
    )


def since(before: CacheInfo, after: CacheInfo) -> CacheInfo:
    """What was found, with counters of the time between two looks."""
    return msgspec.structs.replace(
        before,
        queried_tokens=_between(before.queried_tokens, after.queried_tokens),
        hit_tokens=_between(before.hit_tokens, after.hit_tokens),
    )


def _between(before: float | None, after: float | None) -> float | None:
    # A counter that fell is that of another process behind the same address.
    return None if before is None or after is None or after < before else after - before


def _of_arguments(words: Iterable[str]) -> int | None:
    rest = iter(words)
    found = None
    for word in rest:
        name, equals, value = word.partition("=")
        if name.replace("_", "-") == CHUNK_FLAG:
            found = _whole(value if equals else next(rest, ""))
    return found


def _of_log(log: Path | None) -> int | None:
    if log is None:
        return None
    try:
        with log.open("rb") as file:
            found = CHUNK_LOGGED.search(file.read(LOG_READ))
    except OSError:
        return None
    return int(found[1]) if found else None


def _whole(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"[1-9]\d{0,8}", text) else None
