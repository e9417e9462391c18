"""SIGINT and SIGTERM: the run ends soon, in good order, with what it has found."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.conftest import Ended, Mrcr, Recorder, Running

PATIENCE = 7.5
"""Seconds that a runner waits between the first signal of a cancelled job and the next one."""


def end(running: Running, number: signal.Signals, times: int) -> Ended:
    """Send a signal, perhaps several times shortly after one another, and wait for the end."""
    begin = time.monotonic()
    running.process.send_signal(number)
    for _ in range(times - 1):
        time.sleep(0.05)
        running.process.send_signal(number)
    ended = running.wait()
    assert time.monotonic() - begin < PATIENCE
    return ended


def assert_cancelled(ended: Ended, running: Running) -> None:
    assert ended.code == 130, ended.said
    assert "MRCR is inconclusive: the run was cancelled" in ended.stdout
    assert "Traceback" not in ended.said
    assert ended.result.verdict.conclusion == "inconclusive"
    errors = ET.parse(ended.folder / "junit.xml").getroot().get("errors")  # noqa: S314
    assert int(errors or 0) >= 1
    assert "the run was cancelled" in (ended.folder / "summary.md").read_text()
    assert running.gone(0.5)


TWICE_EACH = pytest.mark.parametrize(
    ("number", "times"), [(signal.SIGINT, 1), (signal.SIGTERM, 3)], ids=["SIGINT", "3xSIGTERM"]
)


@TWICE_EACH
def test_a_run_is_cancelled_while_its_server_starts(
    mrcr: Mrcr,
    fake_vllm: Callable[..., dict[str, str]],
    dataset: Path,
    number: signal.Signals,
    times: int,
) -> None:
    running = mrcr.start(
        *("run", "--model", "m", "--dataset", dataset, "--server-args", "--startup-delay 60"),
        env=fake_vllm(),
    )
    running.wait_for("Starting the server")

    assert_cancelled(end(running, number, times), running)


@pytest.mark.parametrize(
    ("number", "times"), [(signal.SIGTERM, 1), (signal.SIGINT, 3)], ids=["SIGTERM", "3xSIGINT"]
)
def test_a_run_is_cancelled_while_samples_are_chosen(
    mrcr: Mrcr, recorder: Recorder, dataset: Path, number: signal.Signals, times: int
) -> None:
    recorder.stalled.add("/tokenize")
    running = mrcr.start("run", "--base-url", recorder.url, "--dataset", dataset)
    running.wait_for("Choosing samples")

    assert_cancelled(end(running, number, times), running)


@TWICE_EACH
def test_a_run_that_is_cancelled_while_it_asks_shows_what_it_has(
    mrcr: Mrcr,
    fake_vllm: Callable[..., dict[str, str]],
    dataset: Path,
    number: signal.Signals,
    times: int,
) -> None:
    running = mrcr.start(
        *("run", "--model", "m", "--dataset", dataset, "--concurrency", "1"),
        *("--server-args", "--fault slow=1@3-", "--num-samples", "9", "--threshold", "0.9"),
        env=fake_vllm(),
    )
    running.wait_for("Asking")
    journal = mrcr.cwd / "mrcr-results" / "samples.jsonl"
    deadline = time.monotonic() + 20
    while journal.read_bytes().count(b"\n") < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)

    ended = end(running, number, times)

    assert_cancelled(ended, running)
    assert [record.outcome for record in ended.result.records] == ["scored"] * 2
    assert len(ended.records()) == 2


def test_a_cancelled_run_starts_none_of_the_configurations_behind_it(
    mrcr: Mrcr, fake_vllm: Callable[..., dict[str, str]], dataset: Path
) -> None:
    common = {"model_name": "m", "dataset": str(dataset), "server_args": "--startup-delay 60"}
    running = mrcr.start(
        "run", mrcr.config("one", **common), mrcr.config("two", **common), env=fake_vllm()
    )
    running.wait_for("Starting the server")

    ended = end(running, signal.SIGTERM, 1)

    assert ended.code == 130
    assert (ended.folder / "one" / "result.json").is_file()
    assert not (ended.folder / "two").exists()
    assert running.gone(0.5)
