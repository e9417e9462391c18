# ruff: noqa: INP001 - a script, not a package
"""How much CPU time ``mrcr --help`` takes: the median of 7 runs, against a target of 150 ms.

Run with the interpreter that mrcr is installed for: ``.venv/bin/python benchmarks/start.py``.
Exits 1 above the target.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

RUNS = 7
TARGET_MS = 150.0


def cpu_ms(command: list[str]) -> float:
    """CPU time of one run of a command, its own and the system's, in milliseconds."""
    before = os.times()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    user = after.children_user - before.children_user
    return 1000 * (user + after.children_system - before.children_system)


def main() -> int:
    """Measure, print, and compare with the target."""
    command = [str(Path(sys.executable).with_name("mrcr")), "--help"]
    cpu_ms(command)  # byte code and file cache
    times = [cpu_ms(command) for _ in range(RUNS)]
    median = statistics.median(times)
    print(f"mrcr --help: median {median:.0f} ms CPU of {RUNS} runs (target {TARGET_MS:.0f} ms)")
    return int(median > TARGET_MS)


if __name__ == "__main__":
    sys.exit(main())
