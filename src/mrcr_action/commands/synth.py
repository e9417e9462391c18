"""``mrcr synth``: synthetic samples in the dataset's layout."""

from __future__ import annotations

import shlex
import sys
import time
from typing import IO, TYPE_CHECKING

from mrcr_action.bins import Bin, parse_bin
from mrcr_action.data.writer import write_synthetic
from mrcr_action.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

PLAIN_SECONDS = 10.0
"""Least time between two lines of progress where there is no terminal to rewrite one on."""


def synth_command(
    out: Path,
    *,
    needles: Sequence[int],
    bins: Sequence[str],
    per_cell: int,
    seed: int,
    non_latin: int = 0,
) -> int:
    """Write the parquet files and say where they are and how to use them.

    A needle count or bin that is named twice is made once.

    Raises:
        UsageError: an option is out of range, or a needle count does not fit one of the bins.
        OutputError: the folder cannot be made or written.
    """
    if per_cell < 1:
        raise UsageError(f"--per-cell {per_cell}: expected a whole number from 1")
    counts = list(dict.fromkeys(needles))
    ranges = list(dict.fromkeys(map(_range, bins)))
    wanted = len(counts) * len(ranges) * per_cell
    progress = RowProgress(sys.stderr)
    progress.begin(wanted)
    try:
        paths = write_synthetic(
            out,
            needles=counts,
            bins=ranges,
            per_cell=per_cell,
            seed=seed,
            non_latin=non_latin,
            progress=progress.made,
        )
    finally:
        progress.close()
    print(f"{wanted} rows in {len(paths)} files under {out}")
    flags = f"--dataset {shlex.quote(str(out))} --needles {' '.join(map(str, counts))}"
    print(f"Use them with: mrcr run {flags} --protocol openai --samples-per-cell {per_cell} …")
    return ExitCode.PASS


class RowProgress:
    """Says how many rows are made: on one line of a terminal, now and then elsewhere."""

    def __init__(self, stream: IO[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._start = self._said = clock()
        self._rewrites = stream.isatty()

    def begin(self, wanted: int) -> None:
        if self._rewrites:
            self._say(0, wanted)

    def made(self, done: int, wanted: int) -> None:
        """Another row is made: ``done`` of ``wanted``."""
        if self._rewrites or self._clock() - self._said >= PLAIN_SECONDS:
            self._say(done, wanted)

    def close(self) -> None:
        """End the line, so that what comes next has one of its own."""
        if self._rewrites:
            print(file=self._stream, flush=True)

    def _say(self, done: int, wanted: int) -> None:
        self._said = self._clock()
        text = f"{done}/{wanted} rows made, {self._said - self._start:.0f} s"
        line = f"\r{text}" if self._rewrites else f"{text}\n"
        print(line, end="", file=self._stream, flush=True)


def _range(text: str) -> Bin:
    try:
        return parse_bin(text)
    except ValueError as error:
        raise UsageError(f"--bins: {error}", hint="write --bins 4K-8K 64K-128K") from error
