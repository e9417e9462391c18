"""The field ``telemetry`` of a result; every figure may be unknown."""

from __future__ import annotations

from typing import Literal

import msgspec

Of = Literal["run", "small pool"]
"""Which server of the run: the one that everything is asked of, or the second, with a small KV
cache."""

Gap = Literal["", "no metrics", "restarted", "not to the end"]
"""Why there are no counters. no metrics: /metrics could not be read before or after the asking.
restarted: another process answered afterwards. not to the end: the asking was broken off."""


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """What the server's counters rose by while it was asked, all engines together.

    Whatever others asked of it meanwhile is in them too.
    """

    prompt_tokens: int | None = None
    """Also those that the prefix cache supplied."""
    output_tokens: int | None = None
    prefix_cache_queries: int | None = None
    """Looked up in the prefix cache, in tokens; in blocks by the first versions of vLLM's V1
    engine, which is why reports tell the share of hits."""
    prefix_cache_hits: int | None = None
    preemptions: int | None = None
    """Times that a request was undone to make room in the KV cache."""
    finished: dict[str, int] = {}
    """Requests by the reason why they ended, such as ``stop``; reasons without any are left out."""
    http_errors: int | None = None
    """Responses with a status of 500 or above, of all routes that the server counts."""

    @property
    def hit_share(self) -> float | None:
        """Share of what was looked up in the prefix cache that was there; None unknown."""
        if not self.prefix_cache_queries or self.prefix_cache_hits is None:
            return None
        return self.prefix_cache_hits / self.prefix_cache_queries


class Peaks(msgspec.Struct, frozen=True, kw_only=True):
    """The largest that was seen in samples while asking; what lies between them is not seen."""

    samples: int
    kv_cache_usage: float | None = None
    """Share of the KV cache in use, 0 to 1, of the fullest engine."""
    running: int | None = None
    """Requests being worked on, all engines together."""
    waiting: int | None = None
    """Requests that wait for room, likewise."""


class ServerTelemetry(msgspec.Struct, frozen=True, kw_only=True):
    """How one server fared while it was asked, by its own /metrics."""

    of: Of = "run"
    counted: Counted | None = None
    gap: Gap = ""
    """Why nothing was counted, if so."""
    peaks: Peaks | None = None
    """None where the asking was over before the first sample, or nothing could be read."""


class Quantiles(msgspec.Struct, frozen=True, kw_only=True):
    """How a number of seconds is spread over the answers."""

    p50: float
    p95: float
    max: float


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """How soon answers came, as measured by the client."""

    round: str | None
    """None for all rounds together, where there are several."""
    answers: int
    first_token: Quantiles
    """Seconds from the request to the first token of the answer."""
    inter_token: Quantiles | None = None
    """Of each answer's mean of the seconds from one token to the next; None where no answer has
    two."""
    prefill_tokens_per_second: float | None = None
    """Prompt tokens that were not cached, over the seconds to the first token, of requests that
    were alone in flight and meant to find nothing in the cache. None without any."""


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU of this machine, sampled while asking."""

    index: int
    """Place in the driver's own order."""
    name: str
    driver: str | None = None
    """Version of the driver."""
    samples: int
    memory_total: int | None = None
    """Bytes."""
    memory_used_peak: int | None = None
    """Bytes, of all processes."""
    power_mean: float | None = None
    """Watts."""
    power_max: float | None = None
    """Watts."""


class Telemetry(msgspec.Struct, frozen=True, kw_only=True):
    """What the asking of one run cost, and how its servers fared meanwhile."""

    answers: int
    """Requests that were answered; those that were lost cost too, and are in no sum here."""
    prompt_tokens: int
    """Of these, also what was cached."""
    output_tokens: int
    cached_tokens: int | None = None
    """Of the prompts, what the prefix cache supplied; None where the server does not tell it with
    an answer."""
    latency: tuple[Latency, ...] = ()
    """Of all answers, then by round where there are several rounds."""
    servers: tuple[ServerTelemetry, ...] = ()
    """In the order in which they were asked; one, unless the plan has a small pool."""
    gpus: tuple[Gpu, ...] = ()
    """Those that this process can see, where the server is on this machine."""

    @property
    def preemptions(self) -> int | None:
        """Of all servers; None where one of them does not tell."""
        told = [server.counted.preemptions for server in self.servers if server.counted]
        known = [count for count in told if count is not None]
        return sum(known) if known and len(known) == len(self.servers) else None

    @property
    def hit_share(self) -> float | None:
        """Share of the prompt tokens that came from the prefix cache; None unknown.

        By the answers themselves, or else by the first server's counters.
        """
        if self.cached_tokens is not None and self.prompt_tokens:
            return self.cached_tokens / self.prompt_tokens
        first = self.servers[0].counted if self.servers else None
        return first.hit_share if first else None
