"""One real vLLM, broken in one way after the other: which requests it takes to see that.

All tests share a server; what is broken in it is switched while it runs (`tests.zoo`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.zoo.faults import FAULTS, HEALTHY
from tests.zoo.server import PLUGIN, Workplace, ZooServer
from tests.zoo.trial import attached

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.zoo.trial import Trial

    Try = Callable[..., Trial]

BROKEN = {fault.name: fault for fault in FAULTS}


@pytest.fixture(scope="module")
def server(vllm: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooServer]:
    """The server; a test switches the fault."""
    with ZooServer(Workplace.make(tmp_path_factory.mktemp("zoo"), vllm), HEALTHY) as running:
        yield running


@pytest.fixture
def ask(server: ZooServer, tmp_path: Path) -> Try:
    """Ask the server, broken as a name of the table says, as arguments of `mrcr run` say."""

    def asked(name: str, *plan: str) -> Trial:
        server.switch(HEALTHY if name == "healthy" else BROKEN[name])
        return attached(server.place, server.url, plan, tmp_path / f"{name}{len(plan)}")

    return asked


def wrong(trial: Trial) -> dict[str, int]:
    """Wrong answers by round, where there are any."""
    return {name: found.wrong for name, found in trial.rounds.items() if found.wrong}


def test_fault_of_cache_hits_is_seen_by_the_warm_pass_alone(ask: Try) -> None:
    cold = ask("hit-tail", "--num-samples=9")
    both = ask("hit-tail", "--num-samples=9", "--passes", "cold", "warm")

    assert (cold.exit_code, cold.struck, wrong(cold)) == (0, 0, {}), cold.summary
    assert both.exit_code == 1, both.summary
    assert both.struck
    assert set(wrong(both)) == {"warm"}


def test_fault_at_the_end_of_a_chunk_is_seen_where_a_prompt_ends_just_past_it(ask: Try) -> None:
    trial = ask("chunk-miss-block", "--num-samples=3", "--boundaries=1", "--max-instability=0")

    assert trial.exit_code == 1, trial.summary
    assert "chunk" in wrong(trial)
    # Neighbours shift the edges of chunks, so that others may end just past one as well.
    assert set(wrong(trial)) <= {"cold", "block", "block warm", "chunk", "straddle"}


def test_fault_past_a_length_is_seen_in_the_longer_samples_alone(ask: Try) -> None:
    trial = ask("alias-over-4k", "--num-samples=9")
    short = ask(
        "alias-over-4k", "--num-samples=6", "--bins=0-512", "--bins=512-1K", "--exclude=1K-2K"
    )

    assert trial.exit_code == 1, trial.summary
    assert trial.struck == trial.rounds["cold"].wrong
    assert (short.exit_code, short.struck) == (0, 0), short.summary


def test_fault_of_batches_is_seen_with_concurrency_alone(ask: Try) -> None:
    alone = ask("rounded-batch", "--num-samples=6", "--concurrency=1")
    batched = ask("rounded-batch", "--num-samples=6", "--concurrency=6")

    assert (alone.exit_code, alone.struck) == (0, 0), alone.summary
    assert batched.exit_code == 1, batched.summary
    assert batched.struck


def test_fault_of_the_sampler_is_seen_in_any_pass(ask: Try) -> None:
    trial = ask("stop-at-48", "--num-samples=9", "--passes", "cold", "warm")

    assert trial.exit_code == 1, trial.summary
    assert wrong(trial)["cold"] == wrong(trial)["warm"]
    assert trial.struck == trial.wrong


def test_healthy_server_is_green_five_times(ask: Try) -> None:
    trials = [
        ask("healthy", "--plan=smoke", "--num-samples=4", "--max-instability=0") for _ in range(5)
    ]

    assert [t.summary for t in trials if t.exit_code] == []
    assert [t.struck for t in trials] == [0] * 5
    assert all({"cold", "warm", "block", "block warm", "chunk"} <= set(t.rounds) for t in trials)


def in_plugin(code: str, given: object) -> subprocess.CompletedProcess[str]:
    """Run code that can import the plugin, as vLLM's processes can."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(PLUGIN), "PYTHONDONTWRITEBYTECODE": "1"},
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )


def test_plugin_is_announced_to_vllm_by_the_path_alone_and_knows_every_fault_of_the_table() -> None:
    code = (
        "import json, sys; from importlib.metadata import entry_points\n"
        "assert [e.load() for e in entry_points(group='vllm.general_plugins')]\n"
        "from engine_faults.catalogue import FAULTS, fault_of\n"
        "used = {type(fault_of(text)).__name__ for text in json.load(sys.stdin)}\n"
        "assert used == set(FAULTS), set(FAULTS) - used"
    )
    done = in_plugin(code, [fault.plugin for fault in FAULTS if fault.plugin])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("text", ["NoSuchFault", "Window width=3", "Window size=wide"])
def test_plugin_refuses_what_is_no_fault_rather_than_serve_healthily(text: str) -> None:
    code = (
        "import json, sys; from engine_faults.catalogue import fault_of\n"
        "fault_of(json.load(sys.stdin))"
    )
    done = in_plugin(code, text)
    assert "ValueError" in done.stderr
