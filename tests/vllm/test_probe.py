"""``mrcr probe`` on real vLLM: healthy servers of every kind are read exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.vllm.running import Run, Running

EAGER = "--server-args=--enforce-eager"

LEAD = 50
"""Nats by which every token leads on a healthy server: 56, less what its kernels round."""


def finished(start: Callable[..., Running], *flags: str) -> Run:
    # A CPU without instructions for bfloat16 takes minutes for the standard plan.
    return start(*flags, command="probe").finish(seconds=1_800)


def assert_exact(run: Run, asked: int, *, lead: float = LEAD) -> None:
    assert run.exit_code == 0, run.text
    records = run.result.records
    assert len(records) == asked
    assert {record.diagnosis.form for record in records if record.diagnosis} == {"exact"}
    assert min(record.logit_margin or 0 for record in records) >= lead


@pytest.mark.nightly
def test_a_healthy_server_is_read_exactly_in_every_round_of_the_standard_plan(
    start: Callable[..., Running],
) -> None:
    run = finished(start, EAGER)

    assert_exact(run, 60)
    rounds = {record.pass_name for record in run.result.records}
    assert rounds == {
        *("cold", "warm", "block", "block warm", "chunk", "straddle", "sweep"),
        *("pool", "pool warm"),
    }
    warm = [record for record in run.result.records if record.pass_name == "warm"]
    assert all((record.cached_tokens or 0) > 0 for record in warm)


@pytest.mark.parametrize(
    "flags",
    [
        # As vLLM is started by default; elsewhere the tests take what this CPU is fast in.
        ("--server-args=--enforce-eager --dtype auto",),
        (EAGER, "--architecture=qwen3", "--sensitivity=high"),
        (EAGER, "--head-size=64"),
    ],
    ids=["bfloat16", "qwen3 high", "heads of 64"],
)
def test_healthy_servers_of_other_kinds_are_read_exactly(
    start: Callable[..., Running], flags: tuple[str, ...]
) -> None:
    assert_exact(finished(start, "--plan=smoke", *flags), 20)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "flags",
    [
        ("--server-args=--enforce-eager --dtype float16",),
        ("--server-args=--enforce-eager --dtype float32",),
        ("--server-args=--enforce-eager --max-num-batched-tokens 512",),
        ("--server-args=--enforce-eager --block-size 32",),
        ("--server-args=--enforce-eager --no-enable-prefix-caching", "--passes=cold"),
        # Compiled, as vLLM serves by default.
        ("--server-args=",),
        (EAGER, "--sensitivity=high"),
        (EAGER, "--sensitivity=high", "--head-size=64"),
    ],
    ids=[
        "float16",
        "float32",
        "chunks",
        "blocks",
        "no cache",
        "compiled",
        "high",
        "high, heads of 64",
    ],
)
def test_more_kinds_of_healthy_servers_are_read_exactly(
    start: Callable[..., Running], flags: tuple[str, ...]
) -> None:
    run = finished(start, "--plan=smoke", *flags)
    assert run.exit_code == 0, run.text
    assert_exact(run, len(run.result.records))


@pytest.mark.nightly
def test_prompts_of_32k_tokens_are_read_exactly(start: Callable[..., Running]) -> None:
    run = finished(start, "--plan=smoke", "--longest=32K", EAGER)

    assert_exact(run, len(run.result.records))
    assert max(record.prompt_tokens or 0 for record in run.result.records) > 28_000
