"""What a run cost, and how its servers fared: for the summary, the console and JUnit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.report.text import markdown, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mrcr_action.result import Result
    from mrcr_action.telemetry.document import (
        Counted,
        Gap,
        Gpu,
        Latency,
        Peaks,
        Quantiles,
        ServerTelemetry,
    )

GIB = 2**30

ROUNDS_SHOWN = 4
GPUS_SHOWN = 8

GAPS: dict[Gap, str] = {
    "no metrics": "its /metrics could not be read",
    "restarted": "it was started anew meanwhile, so that its counters say nothing",
    "not to the end": "its counters were not read, since the asking was broken off",
}


def cost_markdown(result: Result) -> str:
    """The section of the summary: a few lines, complete Markdown; every foreign text is literal."""
    parts = [_time(result), _tokens(result)]
    telemetry = result.telemetry
    if telemetry is not None:
        parts += [_first_token(telemetry.latency), _inter_token(telemetry.latency)]
        parts += [_server(server) for server in telemetry.servers]
        parts += [_gpu(gpu) for gpu in telemetry.gpus[:GPUS_SHOWN]]
        more = len(telemetry.gpus) - GPUS_SHOWN
        parts.append(f"{more} more GPUs" if more > 0 else "")
    return "**Cost**\n\n" + "\n".join(f"- {markdown(part, 1_000)}" for part in parts if part)


def cost_line(result: Result) -> str:
    """The line of the console."""
    time, telemetry = result.timeline, result.telemetry
    parts = [f"{time.total:.1f} s (server start {time.start_up:.1f})", _tokens(result)]
    if telemetry is not None and telemetry.preemptions is not None:
        parts.append(_many(telemetry.preemptions, "preemption"))
    return one_line(f"Cost: {', '.join(parts)}", 1_000)


def cost_properties(result: Result) -> dict[str, str]:
    """The properties of JUnit's suite: whole tokens, and seconds with three decimals."""
    time, telemetry = result.timeline, result.telemetry
    found = {"seconds": f"{time.total:.3f}", "start_up_seconds": f"{time.start_up:.3f}"}
    if telemetry is None:
        return found
    counted = telemetry.servers[0].counted if telemetry.servers else None
    further = {
        "prompt_tokens": telemetry.prompt_tokens,
        "output_tokens": telemetry.output_tokens,
        "cached_tokens": telemetry.cached_tokens,
        "prefix_cache_queries": counted.prefix_cache_queries if counted else None,
        "prefix_cache_hits": counted.prefix_cache_hits if counted else None,
        "preemptions": telemetry.preemptions,
    }
    return found | {name: str(value) for name, value in further.items() if value is not None}


def _time(result: Result) -> str:
    time = result.timeline
    return (
        f"{time.total:.1f} s in all: server start {time.start_up:.1f}, choosing {time.plan:.1f},"
        f" asking {time.ask:.1f}"
    )


def _tokens(result: Result) -> str:
    telemetry = result.telemetry
    prompts = f"{telemetry.prompt_tokens:,} prompt and " if telemetry else ""
    share = telemetry.hit_share if telemetry else None
    return (
        f"{prompts}{result.total_output_tokens:,} output tokens,"
        f" {result.tokens_per_second:,.1f} output tokens/s"
        + ("" if share is None else f", {share:.0%} of the prompt tokens from the prefix cache")
    )


def _first_token(latencies: Sequence[Latency]) -> str:
    if not latencies:
        return ""
    every, *rounds = latencies
    told = f"First token after {_spread(every.first_token)}"
    if rounds:
        medians = [f"{r.round} {seconds(r.first_token.p50)}" for r in rounds[:ROUNDS_SHOWN]]
        more = ", …" if len(rounds) > ROUNDS_SHOWN else ""
        told += f"; median by round: {', '.join(medians)}{more}"
    rate = every.prefill_tokens_per_second
    return told + (f"; {rate:,.0f} prompt tokens/s when alone in flight" if rate else "")


def _inter_token(latencies: Sequence[Latency]) -> str:
    spread = latencies[0].inter_token if latencies else None
    return f"From one token to the next, by answer, {_spread(spread)}" if spread else ""


def _server(server: ServerTelemetry) -> str:
    title = "Server" if server.of == "run" else f"Server of the {server.of}"
    parts = list(_counted(server.counted)) if server.counted else [GAPS.get(server.gap, "")]
    parts += _peaks(server.peaks) if server.peaks else ()
    return f"{title}: {', '.join(filter(None, parts))}"


def _counted(counted: Counted) -> Iterator[str]:
    """What the server itself counted."""
    if counted.prompt_tokens is not None and counted.output_tokens is not None:
        yield f"{counted.prompt_tokens:,} prompt and {counted.output_tokens:,} output tokens"
    if counted.hit_share is not None:
        yield f"{counted.hit_share:.0%} of the lookups in the prefix cache hit"
    if counted.preemptions is not None:
        yield _many(counted.preemptions, "preemption")
    if counted.finished:
        ended = ", ".join(f"{count:,} {reason}" for reason, count in counted.finished.items())
        yield f"requests ended by {ended}"
    if counted.http_errors:
        yield _many(counted.http_errors, "HTTP error")


def _peaks(peaks: Peaks) -> Iterator[str]:
    if peaks.running is not None:
        waiting = "" if peaks.waiting is None else f" and {peaks.waiting:,} waiting"
        yield f"at most {peaks.running:,} running{waiting}"
    if peaks.kv_cache_usage is not None:
        yield f"KV cache at most {peaks.kv_cache_usage:.0%} full"


def _gpu(gpu: Gpu) -> str:
    parts = [f"GPU {gpu.index}: {gpu.name}"]
    if gpu.driver:
        parts.append(f"driver {gpu.driver}")
    if gpu.memory_used_peak is not None and gpu.memory_total is not None:
        used, total = gpu.memory_used_peak / GIB, gpu.memory_total / GIB
        parts.append(f"at most {used:.1f} of {total:.1f} GiB in use")
    if gpu.power_mean is not None and gpu.power_max is not None:
        parts.append(f"{gpu.power_mean:.0f} W on average, {gpu.power_max:.0f} W at most")
    return ", ".join(parts)


def _spread(found: Quantiles) -> str:
    return f"{seconds(found.p50)} (p95 {seconds(found.p95)}, max {seconds(found.max)})"


def seconds(value: float) -> str:
    """With about three digits, below a second in milliseconds."""
    if value >= 10:  # noqa: PLR2004 - from here on, hundredths are noise
        return f"{value:.1f} s"
    return f"{value:.2f} s" if value >= 1 else f"{value * 1_000:.3g} ms"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
