"""What /metrics tells, under vLLM's names, for the requests of one stand-in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mrcr_action.standin.prefix_cache import PrefixCache

FINISHED_REASONS = ("stop", "length", "abort", "error")


@dataclass(slots=True)
class Metrics:
    """The counts of one process, changed as requests come and go."""

    running: int = 0
    waiting: int = 0
    """Held back by the fault ``stall``, or until others leave the pool of blocks."""
    prompt_tokens: int = 0
    generation_tokens: int = 0
    prefix_cache_queries: int = 0
    """Tokens that were looked for in the cache."""
    prefix_cache_hits: int = 0
    """Tokens that were found there."""
    finished: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FINISHED_REASONS, 0))
    """How many requests ended for each reason; a client that goes away makes it ``abort``."""

    def render(self, model: str, cache: PrefixCache) -> str:
        """The Prometheus text format, version 0.0.4."""
        labels = f'engine="0",model_name="{_escaped(model)}"'
        lines: list[str] = []
        for name, kind, value, help_text in (
            ("num_requests_running", "gauge", self.running, "Requests being answered."),
            ("num_requests_waiting", "gauge", self.waiting, "Requests accepted, not yet begun."),
            ("prompt_tokens_total", "counter", self.prompt_tokens, "Prompt tokens read."),
            ("generation_tokens_total", "counter", self.generation_tokens, "Tokens generated."),
            ("kv_cache_usage_perc", "gauge", cache.usage, "Share of the blocks in use, up to 1."),
            ("prefix_cache_queries_total", "counter", self.prefix_cache_queries, "Tokens sought."),
            ("prefix_cache_hits_total", "counter", self.prefix_cache_hits, "Tokens found."),
            # A request begins only once there is room for all of it, so none has to be undone.
            ("num_preemptions_total", "counter", 0, "Requests that were undone to make room."),
        ):
            lines += [
                f"# HELP vllm:{name} {help_text}",
                f"# TYPE vllm:{name} {kind}",
                f"vllm:{name}{{{labels}}} {float(value)}",
            ]
        lines += [
            "# HELP vllm:request_success_total Requests that were answered.",
            "# TYPE vllm:request_success_total counter",
        ]
        lines += [
            f'vllm:request_success_total{{{labels},finished_reason="{reason}"}} {float(count)}'
            for reason, count in self.finished.items()
        ]
        lines += [
            "# HELP vllm:cache_config_info What the cache is like.",
            "# TYPE vllm:cache_config_info gauge",
            f"vllm:cache_config_info{{{_cache_labels(cache)}}} 1.0",
        ]
        return "\n".join(lines) + "\n"


def _cache_labels(cache: PrefixCache) -> str:
    told = {
        "block_size": cache.block_size,
        "cache_dtype": "auto",
        "enable_prefix_caching": cache.enabled,
        "engine": 0,
        "kv_cache_size_tokens": cache.capacity * cache.block_size,
        "num_gpu_blocks": cache.blocks,
    }
    return ",".join(f'{name}="{value}"' for name, value in told.items())


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
