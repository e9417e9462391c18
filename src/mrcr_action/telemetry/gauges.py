"""How busy a server is at one moment, by vLLM's gauges, and the most of several moments. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from mrcr_action.telemetry.document import Peaks
from mrcr_action.telemetry.exposition import is_count, samples_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

USAGE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
"""Today's name and an older one; from 0 to 1, whatever they are called."""
RUNNING = "vllm:num_requests_running"
WAITING = "vllm:num_requests_waiting"

T = TypeVar("T", int, float)

GAUGES = frozenset({*USAGE, RUNNING, WAITING})


@dataclass(frozen=True, slots=True)
class Load:
    """One look; None where a figure is not told."""

    kv_cache_usage: float | None
    """Of the fullest engine, 0 to 1."""
    running: int | None
    """Of all engines."""
    waiting: int | None


def read_load(text: str) -> Load | None:
    """The gauges of a /metrics; None where none of them is told."""
    told: dict[str, list[float]] = {}
    for sample in samples_of(text, GAUGES):
        told.setdefault(sample.name, []).append(sample.value)
    usage = next((told[name] for name in USAGE if name in told), [])
    load = Load(
        kv_cache_usage=max(usage) if usage and all(0 <= value <= 1 for value in usage) else None,
        running=_sum(told.get(RUNNING)),
        waiting=_sum(told.get(WAITING)),
    )
    return None if load == Load(None, None, None) else load


def peaks_of(loads: Sequence[Load]) -> Peaks | None:
    """The most of each figure; None without a look."""
    if not loads:
        return None
    return Peaks(
        samples=len(loads),
        kv_cache_usage=_most(load.kv_cache_usage for load in loads),
        running=_most(load.running for load in loads),
        waiting=_most(load.waiting for load in loads),
    )


def _most(values: Iterable[T | None]) -> T | None:
    return max((value for value in values if value is not None), default=None)


def _sum(values: list[float] | None) -> int | None:
    return round(sum(values)) if values and all(map(is_count, values)) else None
