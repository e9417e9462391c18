"""vLLM's counters before and after the asking, and what they rose by. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrcr_action.telemetry.document import Counted
from mrcr_action.telemetry.exposition import is_count, samples_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mrcr_action.telemetry.document import Gap

PROMPT = "vllm:prompt_tokens_total"
OUTPUT = "vllm:generation_tokens_total"
QUERIES = ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total")
HITS = ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total")
"""Today's name and an older one; versions between have both, and count each twice."""
PREEMPTIONS = "vllm:num_preemptions_total"
FINISHED = "vllm:request_success_total"
RESPONSES = "http_requests_total"
"""Of the library that counts vLLM's HTTP responses; ``status`` is ``5xx`` or a number."""
STARTED = "process_start_time_seconds"
"""Seconds since 1970; absent where several processes share their metrics."""

COUNTERS = frozenset({PROMPT, OUTPUT, *QUERIES, *HITS, PREEMPTIONS, FINISHED, RESPONSES})

REASONS = 12
"""Most finish reasons; vLLM has five."""
_REASON = re.compile(r"[a-z_]{1,32}")


@dataclass(frozen=True, slots=True)
class Series:
    """One counter with its labels, such as those of one engine."""

    name: str
    labels: frozenset[tuple[str, str]]

    def label(self, name: str) -> str:
        """The value of a label; empty without it."""
        return dict(self.labels).get(name, "")


@dataclass(frozen=True, slots=True)
class Reading:
    """All counters at one moment."""

    values: Mapping[Series, float]
    started: float | None
    """When the process began that tells them; None unknown."""


def read_counters(text: str) -> Reading | None:
    """The counters of a /metrics; None without any, or where one is no count."""
    values: dict[Series, float] = {}
    started = None
    for sample in samples_of(text, COUNTERS | {STARTED}):
        if not is_count(sample.value):
            return None
        if sample.name == STARTED:
            started = sample.value
        else:
            values[Series(sample.name, frozenset(sample.labels.items()))] = sample.value
    return Reading(values, started) if values else None


def between(before: Reading | None, after: Reading | None) -> tuple[Counted | None, Gap]:
    """What the counters rose by from one reading to another, and why that is unknown, if it is.

    A counter of one engine that fell or went away is that of another process behind the same
    address: its other counters, too, began anew, and no difference says anything. One that was
    not there before began at 0, as counters with labels do.
    """
    if before is None or after is None:
        return None, "no metrics"
    was, now = before.values, after.values
    if before.started != after.started or any(now.get(key, -1) < was[key] for key in was):
        return None, "restarted"
    rises = {series: now[series] - was.get(series, 0) for series in now}

    def rise(*names: str) -> int | None:
        """Of the first of these names that is told, over all engines."""
        for name in names:
            told = [rises[series] for series in rises if series.name == name]
            if told:
                return round(sum(told))
        return None

    errors = [
        rises[series]
        for series in rises
        if series.name == RESPONSES and series.label("status").startswith("5")
    ]
    counts_responses = any(series.name == RESPONSES for series in rises)
    return (
        Counted(
            prompt_tokens=rise(PROMPT),
            output_tokens=rise(OUTPUT),
            prefix_cache_queries=rise(*QUERIES),
            prefix_cache_hits=rise(*HITS),
            preemptions=rise(PREEMPTIONS),
            finished=_by_reason(rises.items()),
            http_errors=round(sum(errors)) if counts_responses else None,
        ),
        "",
    )


def _by_reason(rises: Iterable[tuple[Series, float]]) -> dict[str, int]:
    """Finished requests; reasons that are no plain word, or too many, together as ``other``."""
    found: dict[str, int] = {}
    for series, rise in rises:
        if series.name != FINISHED or not rise:
            continue
        reason = series.label("finished_reason")
        known = reason in found or len(found) < REASONS
        reason = reason if known and _REASON.fullmatch(reason) else "other"
        found[reason] = found.get(reason, 0) + round(rise)
    return dict(sorted(found.items()))
