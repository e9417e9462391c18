"""The process between `mrcr` and a server: whatever happens to `mrcr`, the server goes too.

Run as a script with nothing but the standard library and psutil:

    python -I guard.py MARK GRACE COMMAND…

It starts COMMAND in a session of its own and waits for one of two things. If the command ends,
the guard ends with its exit code (128 + N for signal N). If the guard's standard input closes,
which the kernel does even when `mrcr` is killed with SIGKILL, or if it gets SIGTERM, the
command's group gets SIGTERM, then after GRACE seconds SIGKILL. In both cases every process that
carries MARK in its environment is looked for and killed at the end: vLLM's engine and workers
are known to outlive their parent and to hold GPU memory.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time

import psutil

MARK_VARIABLE = "MRCR_SERVER_MARK"
POLL_SECONDS = 0.05


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
    survivors = marked(mark)
    for process in survivors:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(survivors, timeout=seconds)
    return len(survivors)


def _stop(child: subprocess.Popen[bytes], grace: float) -> None:
    for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(seconds)
            return


def main(arguments: list[str]) -> int:
    """Guard one command; see the head of this file."""
    mark, grace, *command = arguments
    told: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: told.append(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    environment = {**os.environ, MARK_VARIABLE: mark}
    try:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, env=environment, start_new_session=True
        )
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        return 127
    stopped = False
    while child.poll() is None:
        readable, _, _ = select.select([sys.stdin], [], [], POLL_SECONDS)
        if told or (readable and not os.read(sys.stdin.fileno(), 4096)):
            stopped = True
            _stop(child, float(grace))
            break
    if not stopped:
        # What the command leaves behind gets a moment to go by itself.
        deadline = time.monotonic() + 1.0
        while marked(mark) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
    kill_marked(mark)
    if stopped:
        return 0
    code = child.returncode
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
