"""The stand-in as a process of its own, for every integration test that needs a server."""

from __future__ import annotations

import contextlib
import itertools
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

READY_SECONDS = 20
"""Far more than a start takes: a machine under load must not fail a test."""


@dataclass(frozen=True, slots=True)
class StandIn:
    """A stand-in that is ready."""

    url: str
    """Where its routes start, without a slash at the end."""
    process: subprocess.Popen[bytes]
    log_path: Path

    @property
    def log(self) -> str:
        """What it has printed so far, stdout and stderr together."""
        return self.log_path.read_text()


StartStandIn = Callable[..., StandIn]
"""Called with the arguments of ``python -m mrcr_action.standin``."""


@contextlib.contextmanager
def standin(*arguments: str, log_path: Path) -> Iterator[StandIn]:
    """Run a stand-in for as long as the block lasts."""
    command = [sys.executable, "-m", "mrcr_action.standin", *arguments]
    with log_path.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + READY_SECONDS
        while "Application startup complete" not in (text := log_path.read_text()):
            assert process.poll() is None, f"exit code {process.returncode}:\n{text}"
            assert time.monotonic() < deadline, f"not ready in time:\n{text}"
            time.sleep(0.005)
        found = re.search(r"stand-in listening on (\S+)", text)
        assert found, text
        yield StandIn(found[1], process, log_path)
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture
def start_standin(tmp_path: Path) -> Iterator[StartStandIn]:
    """Starts stand-ins, as many as the test likes, and stops them when it ends."""
    numbers = itertools.count(1)
    with contextlib.ExitStack() as stack:

        def start(*arguments: str) -> StandIn:
            log_path = tmp_path / f"standin-{next(numbers)}.log"
            return stack.enter_context(standin(*arguments, log_path=log_path))

        yield start
