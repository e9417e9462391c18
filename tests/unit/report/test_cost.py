from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mrcr_action.report.cost import cost_line, cost_markdown, cost_properties
from mrcr_action.report.summary import fit_summary, render_summary
from mrcr_action.telemetry.document import (
    Counted,
    Gap,
    Gpu,
    Latency,
    Peaks,
    Quantiles,
    ServerTelemetry,
    Telemetry,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from mrcr_action.result import Result

    MakeResult = Callable[..., Result]

FIRST = Quantiles(p50=1.5, p95=3.25, max=12.34)
NEXT = Quantiles(p50=0.0201, p95=0.03, max=0.25)
COUNTED = Counted(
    prompt_tokens=25_000,
    output_tokens=1_300,
    prefix_cache_queries=20_000,
    prefix_cache_hits=5_000,
    preemptions=1,
    finished={"abort": 1, "stop": 6},
    http_errors=2,
)
PEAKS = Peaks(samples=3, kv_cache_usage=0.914, running=8, waiting=2)
H200 = Gpu(
    index=0,
    name="NVIDIA H200",
    driver="580.95.05",
    samples=3,
    memory_total=150 * 2**30,
    memory_used_peak=120 * 2**30,
    power_mean=412.4,
    power_max=690.0,
)
TELEMETRY = Telemetry(
    answers=6,
    prompt_tokens=24_003,
    output_tokens=1_200,
    cached_tokens=12_000,
    latency=(
        Latency(
            round=None,
            answers=6,
            first_token=FIRST,
            inter_token=NEXT,
            prefill_tokens_per_second=5_123.4,
        ),
        Latency(round="cold", answers=3, first_token=FIRST),
        Latency(round="warm", answers=3, first_token=Quantiles(p50=0.08, p95=0.09, max=0.1)),
    ),
    servers=(ServerTelemetry(counted=COUNTED, peaks=PEAKS),),
    gpus=(H200,),
)


def test_the_section_says_what_it_cost_in_a_few_lines(make_result: MakeResult) -> None:
    assert cost_markdown(make_result(telemetry=TELEMETRY)) == (
        "**Cost**\n"
        "\n"
        "- 60.0 s in all: server start 50.0, choosing 5.0, asking 4.0\n"
        "- 24,003 prompt and 1,200 output tokens, 300.0 output tokens/s, 50% of the prompt tokens"
        " from the prefix cache\n"
        "- First token after 1.50 s (p95 3.25 s, max 12.3 s); median by round: cold 1.50 s, warm"
        " 80 ms; 5,123 prompt tokens/s when alone in flight\n"
        "- From one token to the next, by answer, 20.1 ms (p95 30 ms, max 250 ms)\n"
        "- Server: 25,000 prompt and 1,300 output tokens, 25% of the lookups in the prefix cache"
        " hit, 1 preemption, requests ended by 1 abort, 6 stop, 2 HTTP errors, at most 8 running"
        " and 2 waiting, KV cache at most 91% full\n"
        "- GPU 0: NVIDIA H200, driver 580.95.05, at most 120.0 of 150.0 GiB in use, 412 W on"
        " average, 690 W at most"
    )


def test_the_console_says_it_in_one_line(make_result: MakeResult) -> None:
    assert cost_line(make_result(telemetry=TELEMETRY)) == (
        "Cost: 60.0 s (server start 50.0), 24,003 prompt and 1,200 output tokens, 300.0 output"
        " tokens/s, 50% of the prompt tokens from the prefix cache, 1 preemption"
    )


def test_junit_has_tokens_seconds_and_hits(make_result: MakeResult) -> None:
    assert cost_properties(make_result(telemetry=TELEMETRY)) == {
        "seconds": "60.000",
        "start_up_seconds": "50.000",
        "prompt_tokens": "24003",
        "output_tokens": "1200",
        "cached_tokens": "12000",
        "prefix_cache_queries": "20000",
        "prefix_cache_hits": "5000",
        "preemptions": "1",
    }


def test_of_a_second_server_it_is_said_which_one_it_is(make_result: MakeResult) -> None:
    servers = (*TELEMETRY.servers, ServerTelemetry(of="small pool", counted=COUNTED))
    found = Telemetry(answers=1, prompt_tokens=5, output_tokens=1, servers=servers)
    text = cost_markdown(make_result(telemetry=found))
    assert "\n- Server: 25,000" in text
    assert "\n- Server of the small pool: 25,000" in text
    assert ", 2 preemptions" in cost_line(make_result(telemetry=found))


@pytest.mark.parametrize(
    ("gap", "said"),
    [
        ("no metrics", "could not be read"),
        ("restarted", "started anew"),
        ("not to the end", "broken off"),
    ],
)
def test_why_there_are_no_counters_is_said(make_result: MakeResult, gap: Gap, said: str) -> None:
    servers = (ServerTelemetry(gap=gap),)
    found = Telemetry(answers=1, prompt_tokens=5, output_tokens=1, servers=servers)
    assert said in cost_markdown(make_result(telemetry=found))
    assert "preemption" not in cost_line(make_result(telemetry=found))


def test_more_gpus_and_rounds_than_anybody_reads_are_counted(make_result: MakeResult) -> None:
    rounds = tuple(
        Latency(round=f"cold #{number}", answers=1, first_token=FIRST) for number in range(9)
    )
    found = Telemetry(
        answers=9,
        prompt_tokens=5,
        output_tokens=1,
        latency=(TELEMETRY.latency[0], *rounds),
        gpus=(H200,) * 11,
    )
    text = cost_markdown(make_result(telemetry=found))
    assert text.count("NVIDIA H200") == 8
    assert "- 3 more GPUs" in text
    assert "…" in text
    assert len(text) < 3_000


def test_foreign_text_stays_text(make_result: MakeResult, hostile: str) -> None:
    gpu = Gpu(index=0, name=hostile, driver=hostile, samples=1)
    rounds = (TELEMETRY.latency[0], Latency(round=hostile, answers=1, first_token=FIRST))
    found = Telemetry(answers=1, prompt_tokens=5, output_tokens=1, latency=rounds, gpus=(gpu,))
    lines = cost_markdown(make_result(telemetry=found)).splitlines()
    assert len(lines) == 7
    for line in lines[2:]:
        assert line.startswith("- ")
        assert "<" not in line
        assert "##[" not in line
        assert not line.removeprefix("- ").startswith("::")


def test_the_section_is_in_the_summary_and_leaves_it_with_the_others(
    make_result: MakeResult,
) -> None:
    result = make_result(telemetry=TELEMETRY)
    assert cost_markdown(result) in render_summary([result])
    assert "**Cost**" not in fit_summary([result], 700)
