"""Real vLLM in trouble: each ends in the right exit code, soon, with the cause named."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.vllm.running import free_port

if TYPE_CHECKING:
    from collections.abc import Callable

    import psutil
    from tests.vllm.running import Running

PROBE = str(Path(__file__).parent / "vllm-probe.yaml")


def test_unknown_flag_ends_the_run_and_is_named(start: Callable[..., Running]) -> None:
    run = start(PROBE, "--server-args=--no-such-flag 1").finish(seconds=180)
    assert run.exit_code == 3, run.text
    assert "unrecognized arguments: --no-such-flag" in run.result.verdict.summary
    assert run.result.problem is not None
    assert "server.log" in run.result.problem.hint


def test_missing_model_ends_the_run_and_is_named(start: Callable[..., Running]) -> None:
    run = start(PROBE, "--model=./no-such-model").finish(seconds=180)
    assert run.exit_code == 3, run.text
    assert "no-such-model" in run.result.verdict.summary
    assert "exit code 1" in run.result.verdict.summary


def test_taken_port_is_said_at_once(start: Callable[..., Running]) -> None:
    with socket.socket() as taken:
        port = free_port()
        taken.bind(("127.0.0.1", port))
        taken.listen()
        run = start(PROBE, f"--port={port}").finish(seconds=30)
    assert run.exit_code == 2, run.text
    assert f"--port {port}: Address already in use" in run.text


def test_killed_engine_makes_the_run_inconclusive_within_seconds(
    start: Callable[..., Running],
) -> None:
    running = start(PROBE)
    running.wait_for("Asking")
    time.sleep(3)
    engines = [p for p in running.descendants() if "EngineCore" in _title(p)]
    assert len(engines) == 1
    engines[0].kill()
    killed = time.monotonic()
    run = running.finish(seconds=60)
    assert time.monotonic() - killed < 30
    assert run.exit_code == 3, run.text
    failed = [r for r in run.result.records if r.outcome == "failed"]
    assert failed
    assert len(run.result.records) == 12
    assert all(r.grade is None for r in failed)
    graded = [r.grade.match_ratio_openai for r in run.result.records if r.grade]
    assert all(ratio == 1.0 for ratio in graded)
    assert "the server ended by itself" in run.text


def test_killed_command_leaves_no_engine_behind(start: Callable[..., Running]) -> None:
    running = start(PROBE)
    running.wait_for("Asking")
    assert any("EngineCore" in _title(p) for p in running.descendants())
    running.process.kill()
    # Checks that nothing is left; the guard gives a vLLM that is busy its grace first.
    run = running.finish(seconds=30, linger=30)
    assert run.exit_code == -9


def _title(process: psutil.Process) -> str:
    return " ".join([process.name(), *process.cmdline()])
