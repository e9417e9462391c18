"""What the run took and how its servers fared: the telemetry of a result, as tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mrcr_action.report.cost import GAPS, GIB, seconds
from mrcr_action.report.html.markup import element, foreign, section, table
from mrcr_action.telemetry.document import Counted, Peaks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mrcr_action.report.html.markup import Element
    from mrcr_action.result import Result
    from mrcr_action.telemetry.document import Gpu, Latency, Quantiles, ServerTelemetry

UNKNOWN = "–"

PLUMBING = frozenset(
    {"--host", "--port", "--served-model-name", "--disable-uvicorn-access-log", "--uds"}
)
"""Arguments of a server that say how it is reached, and nothing of how it answers."""

MOST_ARGUMENTS = 60
MOST_GPUS = 64

_FLAG = re.compile(r"--?[A-Za-z]")


def cost(result: Result) -> Element:
    """The section; without telemetry, what is known all the same."""
    found = result.telemetry
    return section(
        "cost",
        "Cost",
        _facts(_sums(result)),
        _latency(found.latency) if found and found.latency else None,
        _servers(found.servers) if found and found.servers else None,
        _gpus(found.gpus[:MOST_GPUS]) if found and found.gpus else None,
        element("h3", "The server"),
        _facts(_server(result)),
    )


def arguments_in(command: Sequence[str]) -> list[tuple[str, str]]:
    """The flags of a command with their values, but for those that say how it is reached."""
    found: list[tuple[str, str]] = []
    for word in command:
        if _FLAG.match(word):
            name, _, value = word.partition("=")
            found.append((name, value))
        elif found:
            name, value = found[-1]
            found[-1] = (name, f"{value} {word}".strip())
    return [(name, value) for name, value in found if name.replace("_", "-") not in PLUMBING]


def _facts(facts: Sequence[tuple[str, str]]) -> Element:
    return element(
        "dl",
        (
            (element("dt", foreign(name, 80)), element("dd", element("bdi", foreign(value, 600))))
            for name, value in facts
        ),
        class_="facts-of-cost",
    )


def _sums(result: Result) -> list[tuple[str, str]]:
    """Times and tokens of the whole run."""
    time, found = result.timeline, result.telemetry
    facts = [
        ("wall clock", seconds(time.total)),
        ("server start", seconds(time.start_up)),
        ("choosing samples", seconds(time.plan)),
        ("asking", seconds(time.ask)),
    ]
    if found is not None:
        facts += [("answers", f"{found.answers:,}"), ("prompt tokens", f"{found.prompt_tokens:,}")]
    facts += [
        ("output tokens", f"{result.total_output_tokens:,}"),
        ("output tokens/s", f"{result.tokens_per_second:,.1f}"),
    ]
    if found is not None and found.hit_share is not None:
        facts.append(("from the prefix cache", f"{found.hit_share:.0%} of the prompt tokens"))
    if found is not None and found.preemptions is not None:
        facts.append(("preemptions", f"{found.preemptions:,}"))
    return facts


def _latency(latencies: Sequence[Latency]) -> Element:
    names = ("pass", "answers")
    first = ("first token p50", "p95", "max")
    between = ("token to token p50", "p95", "max", "prompt tokens/s")
    rows = [
        (
            latency.round or "all",
            f"{latency.answers:,}",
            *_spread(latency.first_token),
            *_spread(latency.inter_token),
            _told(latency.prefill_tokens_per_second, ",.0f"),
        )
        for latency in latencies
    ]
    return table(
        [(*names, *first, *between), *rows],
        caption="Time to the first token, and each answer's mean from one token to the next, as the"
        " client saw them; prompt tokens/s of requests alone in flight that were read whole",
    )


def _spread(found: Quantiles | None) -> tuple[str, str, str]:
    if found is None:
        return UNKNOWN, UNKNOWN, UNKNOWN
    return seconds(found.p50), seconds(found.p95), seconds(found.max)


def _told(value: float | None, form: str = ",") -> str:
    return UNKNOWN if value is None else format(value, form)


def _servers(servers: Sequence[ServerTelemetry]) -> Element:
    names = ("server", "prompt tokens", "output tokens", "cache hits", "preemptions")
    more = ("most running", "most waiting", "fullest KV cache", "HTTP errors", "requests ended by")
    rows = []
    for server in servers:
        # What is not known is a dash, a figure at a time.
        counted, peaks = server.counted or Counted(), server.peaks or Peaks(samples=0)
        ended = ", ".join(f"{n:,} {why}" for why, n in counted.finished.items())
        rows.append(
            (
                server.of,
                _told(counted.prompt_tokens),
                _told(counted.output_tokens),
                _told(counted.hit_share, ".0%"),
                _told(counted.preemptions),
                _told(peaks.running),
                _told(peaks.waiting),
                _told(peaks.kv_cache_usage, ".0%"),
                _told(counted.http_errors),
                ended or GAPS.get(server.gap) or UNKNOWN,
            )
        )
    return table(
        [(*names, *more), *rows],
        caption="What the server counted in /metrics while it was asked, and the most that was seen"
        " in looks every few seconds",
        last_is_word=True,
    )


def _gpus(gpus: Sequence[Gpu]) -> Element:
    rows = [
        (
            f"{gpu.index}: {gpu.name}",
            gpu.driver or UNKNOWN,
            UNKNOWN if gpu.memory_used_peak is None else f"{gpu.memory_used_peak / GIB:.1f} GiB",
            UNKNOWN if gpu.memory_total is None else f"{gpu.memory_total / GIB:.1f} GiB",
            UNKNOWN if gpu.power_mean is None else f"{gpu.power_mean:.0f} W",
            UNKNOWN if gpu.power_max is None else f"{gpu.power_max:.0f} W",
        )
        for gpu in gpus
    ]
    return table(
        [("GPU", "driver", "most memory in use", "memory", "mean power", "most power"), *rows],
        caption="GPUs that this process could see while it asked",
        words=2,
    )


def _server(result: Result) -> list[tuple[str, str]]:
    """What answered, and with which arguments."""
    return list(_identity(result)) + list(_kv_cache(result)) + list(_arguments(result))


def _identity(result: Result) -> Iterator[tuple[str, str]]:
    server = result.server
    yield "version", server.version or "unknown"
    yield "reached as", server.route
    if server.image:
        yield "image", server.image
    if server.max_model_len:
        yield "window", f"{server.max_model_len:,} tokens"


def _kv_cache(result: Result) -> Iterator[tuple[str, str]]:
    cache = result.cache
    if cache is None:
        return
    if cache.capacity is not None:
        yield "KV cache", f"{cache.capacity:,} tokens"
    if cache.block_size is not None:
        yield "block", f"{cache.block_size:,} tokens"
    if cache.prefill_chunk is not None:
        yield "prefill chunk", f"{cache.prefill_chunk:,} tokens"
    if cache.prefix_caching is not None:
        yield "prefix caching", "on" if cache.prefix_caching else "off"


def _arguments(result: Result) -> Iterator[tuple[str, str]]:
    found = arguments_in(result.server.command)
    for name, value in found[:MOST_ARGUMENTS]:
        yield name, value or "given"
    if len(found) > MOST_ARGUMENTS:
        yield "further arguments", f"{len(found) - MOST_ARGUMENTS:,}"
