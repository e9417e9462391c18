"""A step of a job: its streams as they come, how the runner cancels it, and what it leaves behind.

After actions/runner 2.336: ProcessInvoker.cs and FileCommandManager.cs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.container.runner_files import FileCommandError, read_pairs, read_summary
from tests.container.runner_log import split_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import IO

    from tests.container.runner import Job
    from tests.container.runner_log import Annotation, Command, StepLog

CANCELS = ((signal.SIGINT, 7.5), (signal.SIGTERM, 2.5), (signal.SIGKILL, 60.0))
"""What the client gets when a job is cancelled, each with the seconds until the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a step left behind when it ended."""

    exit_code: int
    """Of the container, as the client gives it."""
    failed: bool
    """Whether the step failed, for its exit code or for what it told the runner."""
    lines: list[str]
    """The log, as the runner shows it."""
    raw: list[tuple[str, str]]
    """What was printed: which stream, and the line."""
    commands: list[Command]
    annotations: list[Annotation]
    dropped: dict[str, int]
    outputs: dict[str, str]
    state: dict[str, str]
    env: dict[str, str]
    """What it asks the runner to set for the steps behind it."""
    summary: str
    summary_path: Path
    seconds: float
    """From the start of the client to its end."""
    after_cancel: float | None
    """From the first signal to its end."""
    signals: list[signal.Signals]
    """What the client was sent before it ended."""
    container: str
    """The container's name."""
    commands_stopped: bool
    """Whether it ended without letting the runner read commands again."""

    @property
    def log(self) -> str:
        return "\n".join(self.lines)

    @property
    def printed(self) -> str:
        """All that was printed, before the runner read it."""
        return "\n".join(line for _, line in self.raw)

    def errors(self) -> list[Annotation]:
        return [one for one in self.annotations if one.level == "error"]


class RunningStep:
    """A step that runs."""

    def __init__(
        self,
        job: Job,
        process: subprocess.Popen[bytes],
        log: StepLog,
        paths: Mapping[str, Path],
        container: str,
    ) -> None:
        self.job = job
        self.process = process
        self.log = log
        self.container = container
        self._begin = time.monotonic()
        self._paths = paths
        self._raw: list[tuple[str, str]] = []
        self._cancelled: float | None = None
        self._signals: list[signal.Signals] = []
        self._readers = [
            threading.Thread(target=self._read, args=(name, stream), daemon=True)
            for name, stream in (("stdout", process.stdout), ("stderr", process.stderr))
        ]
        for reader in self._readers:
            reader.start()

    def wait_for(self, text: str, seconds: float = 60) -> None:
        """Wait until it has printed something."""
        self.wait_until(lambda: any(text in line for _, line in tuple(self._raw)), seconds)

    def wait_until(self, condition: Callable[[], bool], seconds: float = 60) -> None:
        """Wait for something to come true while it runs."""
        deadline = time.monotonic() + seconds
        while not condition():
            said = "\n".join(line for _, line in tuple(self._raw))
            assert self.process.poll() is None, f"exit code {self.process.poll()}:\n{said}"
            assert time.monotonic() < deadline, said
            time.sleep(0.01)

    def cancel(self) -> Step:
        """Cancel it as the runner does, and wait for its end."""
        self._cancelled = time.monotonic()
        for number, seconds in CANCELS:
            self.process.send_signal(number)
            self._signals.append(number)
            try:
                self.process.wait(seconds)
                break
            except subprocess.TimeoutExpired:
                continue
        return self.wait()

    def kill(self) -> Step:
        """Kill the client alone, which leaves the container running."""
        self.process.kill()
        self._signals.append(signal.SIGKILL)
        return self.wait()

    def wait(self, seconds: float = 300) -> Step:
        """Wait for its end, and process what it left."""
        try:
            exit_code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            said = "\n".join(line for _, line in self._raw)
            raise AssertionError(f"the step did not end within {seconds} s:\n{said}") from None
        end = time.monotonic()
        for reader in self._readers:
            reader.join(10)
        stopped = self.log.stopped
        pairs: dict[str, dict[str, str]] = {}
        summary = ""
        for name, path in self._paths.items():
            pairs[name] = {}
            try:
                if name == "step_summary":
                    summary = read_summary(path)
                elif name != "path":
                    pairs[name] = read_pairs(path)
            except FileCommandError as error:
                self.log.fail(f"Unable to process file command '{name}' successfully.")
                self.log.fail(str(error))
        state = {**self.log.legacy["save-state"], **pairs["state"]}
        self.job.remember(state)
        self.job.environment.update(pairs["env"])
        return Step(
            exit_code=exit_code,
            failed=exit_code != 0 or self.log.failed,
            lines=self.log.lines,
            raw=self._raw,
            commands=self.log.commands,
            annotations=self.log.annotations,
            dropped=self.log.dropped,
            outputs={**self.log.legacy["set-output"], **pairs["output"]},
            state=state,
            env=pairs["env"],
            summary="\n".join(self.log.masked(line) for line in summary.split("\n")),
            summary_path=self._paths["step_summary"],
            seconds=end - self._begin,
            after_cancel=None if self._cancelled is None else end - self._cancelled,
            signals=self._signals,
            container=self.container,
            commands_stopped=stopped,
        )

    def _read(self, name: str, stream: IO[bytes]) -> None:
        """Read a stream line by line; the two are read at the same time and each for itself."""
        with stream:
            held = b""
            while chunk := os.read(stream.fileno(), 65536):
                held += chunk
                # A CR at the end may be the first half of a line's end.
                end = max(held.rfind(b"\n"), held[:-1].rfind(b"\r")) + 1
                whole, held = held[:end], held[end:]
                self._receive(name, whole)
            self._receive(name, held)

    def _receive(self, name: str, text: bytes) -> None:
        for line in split_lines(text.decode("utf-8", "replace")):
            self._raw.append((name, line))
            self.log.receive(line)
