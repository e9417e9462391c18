"""The command under test as a process, and what it leaves behind."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx
import psutil

from mrcr_action.result import Record, Result, decode_result

if TYPE_CHECKING:
    from pathlib import Path

START_SECONDS = 240
RUN_SECONDS = 480
"""Bounds against a hang; a busy machine with two cores must stay below them."""


@dataclass(frozen=True)
class Run:
    """A finished ``mrcr run``."""

    exit_code: int
    stdout: str
    stderr: str
    output: Path

    @property
    def result(self) -> Result:
        """The document that it wrote."""
        return decode_result((self.output / "result.json").read_bytes())

    @property
    def text(self) -> str:
        """All that it printed."""
        return self.stdout + self.stderr

    def records(self, *, short: bool) -> list[Record]:
        """Records of the rows within 512 tokens, or of the longer ones."""
        return [r for r in self.result.records if ((r.prompt_tokens or 0) <= 512) is short]


class Running:
    """A command in the background, stopped at the end of the test if need be."""

    def __init__(
        self,
        arguments: tuple[str, ...],
        folder: Path,
        environment: dict[str, str],
        *,
        command: str = "run",
    ) -> None:
        self.output = folder / "mrcr-results"
        self._stdout, self._stderr = folder / "stdout", folder / "stderr"
        words = [sys.executable, "-m", "mrcr_action", command, *arguments]
        with self._stdout.open("w") as stdout, self._stderr.open("w") as stderr:
            self.process = subprocess.Popen(
                words, cwd=folder, env=environment, stdout=stdout, stderr=stderr
            )
        self._tree: dict[int, psutil.Process] = {}

    def wait_for(self, text: str) -> None:
        """Wait until standard error holds a text."""
        deadline = time.monotonic() + START_SECONDS
        while text not in self._text(self._stderr):
            assert self.process.poll() is None, self._text(self._stderr)
            assert time.monotonic() < deadline, self._text(self._stderr)
            time.sleep(0.1)

    def descendants(self) -> list[psutil.Process]:
        """All processes that it started, directly or not, and that live."""
        found = psutil.Process(self.process.pid).children(recursive=True)
        self._tree.update((process.pid, process) for process in found)
        return found

    def finish(self, seconds: float = RUN_SECONDS, linger: float = 5) -> Run:
        """Wait for its end; nothing that it started may be left, at once or soon."""
        try:
            code = self.process.wait(seconds)
        finally:
            self.stop()
        _, left = psutil.wait_procs(list(self._tree.values()), timeout=linger)
        assert not left, f"left behind: {left}"
        return Run(code, self._text(self._stdout), self._text(self._stderr), self.output)

    def stop(self) -> None:
        """End it in good order, then by force."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    @staticmethod
    def _text(path: Path) -> str:
        return path.read_text(errors="replace")


def healthy(url: str, seconds: float = 5) -> bool:
    """Whether /health answers 200 within a time."""
    try:
        return (
            httpx.get(f"{url}/health", timeout=seconds, trust_env=False).status_code
            == httpx.codes.OK
        )
    except httpx.HTTPError:
        return False


def free_port() -> int:
    """A port that nothing listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
