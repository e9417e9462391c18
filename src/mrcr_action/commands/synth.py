"""``mrcr synth``: synthetic samples in the dataset's layout."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mrcr_action.bins import parse_bin
from mrcr_action.data.layout import write_synthetic
from mrcr_action.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def synth_command(
    out: Path, *, needles: Sequence[int], bins: Sequence[str], per_cell: int, seed: int
) -> int:
    """Write the parquet files and say where they are."""
    try:
        ranges = [parse_bin(text) for text in bins]
    except ValueError as error:
        raise UsageError(f"--bins: {error}") from error
    if per_cell < 1:
        raise UsageError(f"--per-cell {per_cell}: expected a whole number from 1")

    def progress(done: int, wanted: int) -> None:
        if sys.stderr.isatty():
            end = "\n" if done == wanted else ""
            print(f"\r{done}/{wanted} rows", end=end, file=sys.stderr, flush=True)

    paths = write_synthetic(
        out, needles=needles, bins=ranges, per_cell=per_cell, seed=seed, progress=progress
    )
    print(f"{len(needles) * len(ranges) * per_cell} rows in {len(paths)} files under {out}")
    print(f"Use them with: mrcr run --dataset {out} …")
    return ExitCode.PASS
