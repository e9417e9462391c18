"""The process between `mrcr` and a server: whatever happens to `mrcr`, the server goes too.

Run as a script with nothing but the standard library and psutil:

    python -P guard.py MARK GRACE COMMAND…

It starts COMMAND in a session of its own and waits for one of two things. If the command ends,
the guard ends with its exit code (128 + N for signal N). If the guard reads the word "stop", or
its standard input closes, which the kernel does even when `mrcr` is killed with SIGKILL, or if it
gets SIGTERM, the command's group gets SIGTERM, and after GRACE seconds SIGKILL; a number on
standard input is a new GRACE, at any time. Either way, whatever else the command has started is
then looked for and killed: vLLM's engine and workers are known to outlive their parent and to hold
GPU memory.

They are found as descendants: the guard is their reaper, so that the kernel hands it those whose
parent is gone, whichever session or group they moved to. Where there is no such thing, and where
the guard itself is killed, MARK in their environment tells; SPT_NOENV keeps the library that
vLLM names its processes with from writing over it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time

import psutil

MARK_VARIABLE = "MRCR_SERVER_MARK"
POLL_SECONDS = 0.05

LINGER_SECONDS = 1.0
"""Left to a command's children to go by themselves once it has ended …"""

LINGER_SHARE = 0.2
"""… but no more than this part of the grace, which is short where somebody waits."""

PR_SET_CHILD_SUBREAPER = 36
"""Of Linux's prctl(2): orphans among the descendants become children of this process."""


def marked(mark: str) -> list[psutil.Process]:
    """Processes, other than this one, that carry the mark in their environment."""
    found = []
    for process in psutil.process_iter():
        if process.pid == os.getpid():
            continue
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(MARK_VARIABLE) == mark and process.status() != "zombie":
                found.append(process)
    return found


def kill_marked(mark: str, *, seconds: float = 5.0) -> int:
    """Kill every marked process; returns how many there were. Bounded in time."""
    return _kill(marked(mark), seconds)


def _kill(processes: list[psutil.Process], seconds: float) -> int:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(processes, timeout=seconds)
    return len(processes)


def _survivors(mark: str) -> list[psutil.Process]:
    """Live processes that the command has left behind."""
    found = {process.pid: process for process in marked(mark)}
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if process.status() != "zombie":
                found[process.pid] = process
    return list(found.values())


def _sweep(mark: str, orders: _Orders) -> None:
    """See that nothing is left: first by itself, then by force, again while more turn up."""
    begin = time.monotonic()
    while _survivors(mark):
        if time.monotonic() - begin > min(LINGER_SECONDS, LINGER_SHARE * orders.grace):
            break
        orders.read(POLL_SECONDS)
    for _ in range(10):
        if not _kill(_survivors(mark), 1.0):
            return


class _Orders:
    """What is said on standard input."""

    def __init__(self, grace: float) -> None:
        self.grace = grace
        self.stop = False
        self._open = True

    def read(self, seconds: float) -> None:
        """Take in what comes within so many seconds."""
        if not self._open:
            time.sleep(seconds)
            return
        readable, _, _ = select.select([sys.stdin], [], [], seconds)
        if not readable:
            return
        said = os.read(sys.stdin.fileno(), 4096)
        self._open = bool(said)
        for word in said.split() or [b"stop"]:
            if word == b"stop":
                self.stop = True
            else:
                with contextlib.suppress(ValueError):
                    self.grace = float(word)


def _stop(child: subprocess.Popen[bytes], orders: _Orders) -> None:
    begin = time.monotonic()
    _signal(child, signal.SIGTERM)
    while child.poll() is None and time.monotonic() - begin < orders.grace:
        orders.read(POLL_SECONDS)
    _signal(child, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(5.0)


def _signal(child: subprocess.Popen[bytes], number: int) -> None:
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)


def main(arguments: list[str]) -> int:
    """Guard one command; see the head of this file."""
    mark, grace_text, *command = arguments
    orders = _Orders(float(grace_text))
    signal.signal(signal.SIGTERM, lambda _number, _frame: setattr(orders, "stop", True))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    environment = {**os.environ, MARK_VARIABLE: mark, "SPT_NOENV": "1"}
    try:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, env=environment, start_new_session=True
        )
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        return 127
    while child.poll() is None and not orders.stop:
        orders.read(POLL_SECONDS)
    stopped = child.returncode is None
    if stopped:
        _stop(child, orders)
    _sweep(mark, orders)
    if stopped:
        return 0
    code = child.returncode
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
