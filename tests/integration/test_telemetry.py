"""What a run says of its cost and its server, against the stand-in's own counters."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from mrcr_action.client import Client
from mrcr_action.telemetry.document import ServerTelemetry
from mrcr_action.telemetry.sampler import observed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.conftest import Ended, Mrcr, Recorder, StartStandIn

    from mrcr_action.telemetry.document import Telemetry

    FakeVllm = Callable[..., dict[str, str]]

DETAILS = "--enable-prompt-tokens-details"


def telemetry_of(ended: Ended) -> Telemetry:
    found = ended.result.telemetry
    assert found is not None
    return found


@pytest.fixture(scope="module")
def warm(shared_mrcr: Mrcr, start_shared_standin: StartStandIn, dataset: Path) -> Ended:
    """A cold and a warm pass over twelve samples."""
    url = start_shared_standin(DETAILS).url
    ended = shared_mrcr(
        *("run", "--base-url", url, "--dataset", dataset, "--protocol", "openai"),
        *("--num-samples", "12", "--passes", "cold", "warm", "--concurrency", "1"),
    )
    assert ended.code == 0, ended.said
    return ended


def test_the_counters_agree_with_what_was_asked(warm: Ended) -> None:
    found, records = telemetry_of(warm), warm.result.records
    (server,) = found.servers
    assert server.gap == ""
    counted = server.counted
    assert counted is not None
    assert found.answers == len(records) == 24
    assert found.prompt_tokens == sum(r.prompt_tokens or 0 for r in records)
    assert counted.prompt_tokens == counted.prefix_cache_queries == found.prompt_tokens
    assert counted.output_tokens == found.output_tokens == warm.result.total_output_tokens
    assert counted.finished == {"stop": 24}
    assert counted.preemptions == 0


def test_a_warm_pass_comes_from_the_cache(warm: Ended) -> None:
    found = telemetry_of(warm)
    counted = found.servers[0].counted
    assert counted is not None
    cached = [r.cached_tokens or 0 for r in warm.result.records if r.pass_name == "warm"]
    assert counted.prefix_cache_hits == found.cached_tokens == sum(cached)
    assert found.hit_share == counted.hit_share
    # All of a prompt but its last block at most, in half of the requests.
    assert counted.hit_share is not None
    assert 0.4 < counted.hit_share < 0.5


def test_latencies_are_told_by_round(warm: Ended) -> None:
    every, cold, again = telemetry_of(warm).latency
    assert (every.round, cold.round, again.round) == (None, "cold", "warm")
    assert (every.answers, cold.answers, again.answers) == (24, 12, 12)
    for latency in (every, cold, again):
        assert 0 < latency.first_token.p50 <= latency.first_token.p95 <= latency.first_token.max
        assert latency.inter_token is not None
    assert cold.prefill_tokens_per_second == every.prefill_tokens_per_second
    assert cold.prefill_tokens_per_second is not None
    assert again.prefill_tokens_per_second is None
    for record in warm.result.records:
        assert record.inter_token_seconds is not None
        assert record.inter_token_seconds < record.seconds


def test_every_report_says_what_it_cost(warm: Ended) -> None:
    tokens = telemetry_of(warm).prompt_tokens
    (line,) = [line for line in warm.stdout.splitlines() if line.startswith("Cost: ")]
    assert f"{tokens:,} prompt and" in line
    assert line.endswith("0 preemptions")
    summary = (warm.folder / "summary.md").read_text()
    assert "**Cost**" in summary
    assert "- Server: " in summary
    suite = ET.parse(warm.folder / "junit.xml").getroot()  # noqa: S314 - written by the run
    told = {p.get("name"): p.get("value") for p in suite.iter("property")}
    assert told["prompt_tokens"] == str(tokens)
    assert told["preemptions"] == "0"


def test_a_server_with_other_things_in_metrics_is_judged_all_the_same(
    mrcr: Mrcr, recorder: Recorder, dataset: Path
) -> None:
    ended = mrcr(
        *("run", "--base-url", recorder.url, "--dataset", dataset, "--num-samples", "3"),
    )
    assert ended.code == 0, ended.said
    found = telemetry_of(ended)
    assert found.servers == (ServerTelemetry(gap="no metrics"),)
    assert "could not be read" in (ended.folder / "summary.md").read_text()


def test_requests_that_run_and_wait_are_seen_while_asking(
    mrcr: Mrcr, start_standin: StartStandIn, dataset: Path
) -> None:
    url = start_standin("--fault", "stall=6.5@2", "--fault", "stall-mid=6.5@3").url
    ended = mrcr(
        *("run", "--base-url", url, "--dataset", dataset, "--protocol", "openai"),
        *("--num-samples", "3", "--concurrency", "3"),
    )
    assert ended.code == 0, ended.said
    peaks = telemetry_of(ended).servers[0].peaks
    assert peaks is not None
    assert (peaks.samples, peaks.running, peaks.waiting) == (1, 1, 1)
    assert peaks.kv_cache_usage is not None
    assert 0 < peaks.kv_cache_usage < 1


def test_a_server_that_dies_leaves_no_counters_and_says_why(
    mrcr: Mrcr, fake_vllm: FakeVllm, dataset: Path
) -> None:
    ended = mrcr(
        *("run", "--model", "m", "--dataset", dataset, "--num-samples", "9"),
        *("--concurrency", "1", "--server-args", "--fault die=1@3"),
        env=fake_vllm(),
    )
    assert ended.code == 3, ended.said
    found = telemetry_of(ended)
    assert found.servers == (ServerTelemetry(gap="not to the end"),)
    assert found.answers == 2


def test_both_servers_of_a_run_with_a_small_pool_are_told(
    mrcr: Mrcr, fake_vllm: FakeVllm, dataset: Path
) -> None:
    config = mrcr.config(
        "pool",
        model_name="m",
        protocol="openai",
        dataset=str(dataset),
        num_samples=9,
        max_tokens=256,
        small_pool=True,
    )
    ended = mrcr("run", config, env=fake_vllm())
    assert ended.code == 0, ended.said
    first, pool = telemetry_of(ended).servers
    assert (first.of, pool.of) == ("run", "small pool")
    assert first.counted is not None
    assert pool.counted is not None
    assert first.counted.finished == {"stop": 9}
    assert pool.counted.finished == {"stop": 12}
    records = [r for r in ended.result.records if r.pass_name.startswith("pool")]
    assert pool.counted.prompt_tokens == sum(r.prompt_tokens or 0 for r in records)


def test_another_server_behind_the_same_address_is_recognised(
    start_standin: StartStandIn,
) -> None:
    first, second = start_standin(), start_standin()

    async def ask(client: Client) -> None:
        body = {"model": "stand-in", "messages": [{"role": "user", "content": "Hello."}]}
        await client.chat(body)

    async def body() -> list[ServerTelemetry]:
        told: list[ServerTelemetry] = []
        async with Client(first.url) as client:
            await ask(client)
            async with observed(client, told):
                # What a restart, or a balancer between replicas, does to a client.
                client._http.base_url = second.url
        return told

    assert asyncio.run(body()) == [ServerTelemetry(gap="restarted")]
