# ruff: noqa: INP001 - a script, not a package
"""How often `max_samples_per_cell` is wrong, and how many samples it takes.

Servers are made up whose mean lies at threshold - tolerance, where every verdict but inconclusive
is wrong, or above it; a cell grows from 10 samples to 100. Beside it the same looks at the plain
95 % interval of `decision: confident`. ``.venv/bin/python benchmarks/looks.py [RUNS]`` exits 1 when
more than 5 % of the servers at the edge get a verdict.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

from mrcr_action.config import RunConfig
from mrcr_action.intervals import LEVEL, bounded_interval, mean_interval
from mrcr_action.looks import schedule_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.intervals import Interval

MOST = 100
SCHEDULE = schedule_of(
    RunConfig(
        protocol="openai", decision="confident", samples_per_cell=10, max_samples_per_cell=MOST
    )
)
SHARED = 1 - (1 - LEVEL) / len(SCHEDULE)
PERFECT, HALF, ANOTHER = 0.7, 0.5, 0.03
"""Of the ratios like a benchmark's, so many are 1; of the others half are anything, half this."""


def draw(random: np.random.Generator, kind: str) -> tuple[list[float], float]:
    """Ratios in the order that they are asked, and their true mean."""
    if kind == "like MRCR":
        other = np.where(random.random(MOST) < HALF, random.random(MOST), ANOTHER)
        ratios = np.where(random.random(MOST) < PERFECT, 1.0, other)
        return ratios.tolist(), PERFECT + (1 - PERFECT) * (HALF * 0.5 + HALF * ANOTHER)
    chance = float(kind.split(maxsplit=1)[0])
    return (random.random(MOST) < chance).astype(float).tolist(), chance


def looked(ratios: Sequence[float], needed: float, *, shared: bool) -> tuple[str, int]:
    """What a run says in the end, and after how many samples."""
    for n in SCHEDULE:
        interval: Interval | None = (
            bounded_interval(ratios[:n], SHARED) if shared else mean_interval(ratios[:n])
        )
        assert interval is not None
        if interval.high < needed:
            return "fail", n
        if interval.low >= needed:
            return "pass", n
    return "inconclusive", MOST


def main() -> int:
    """Print the figures."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    worst = 0.0
    for kind in ("like MRCR", "0.5 right", "0.9 right", "0.97 right"):
        for margin in (0.0, 0.1, 0.2, 0.3):
            line = []
            for shared in (True, False):
                random = np.random.default_rng(0)
                found = []
                for _ in range(runs):
                    ratios, mean = draw(random, kind)
                    found.append(looked(ratios, mean - margin, shared=shared))
                verdicts = [verdict for verdict, _ in found]
                passed, failed = verdicts.count("pass") / runs, verdicts.count("fail") / runs
                samples = sum(n for _, n in found) / runs
                if shared and not margin:
                    worst = max(worst, passed + failed)
                line.append(f"pass {passed:.1%}, fail {failed:.1%}, {samples:.0f} samples")
            where = f"{margin:g} above the edge" if margin else "at the edge"
            print(f"{kind}, {where}: {line[0]}; plain intervals: {line[1]}", flush=True)
    return worst > 1 - LEVEL


if __name__ == "__main__":
    sys.exit(main())
