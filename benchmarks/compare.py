# ruff: noqa: INP001 - a script, not a package
"""How often `mrcr compare` cries wolf, what it finds, and how often its interval holds.

Two results of 99 samples (3 needle counts, 3 bins, 11 each) are made up, a thousand times for each
kind of noise: *wording* moves every ratio by about 0.05 in both; in *turns*, each sample comes out
as a perfect answer or as another needle by its own chance, anew in both, as with a temperature
above 0. Then the same with B's mean 0.05 lower. ``.venv/bin/python benchmarks/compare.py [RUNS]``
exits 1 when more than 5 % of the pairs without a difference are called a regression.
"""

from __future__ import annotations

import sys

import numpy as np

from mrcr_action.comparison.paired import change_of, holm
from mrcr_action.comparison.verdict import FEWEST_CHANGED, SIGNIFICANT
from mrcr_action.intervals import mean_interval

CELLS, PER_CELL = 9, 11
PLANTED = 0.05
ALLOWED = 0.02
EXACT, HALF, ANOTHER = 0.7, 0.5, 0.03
"""Of the ratios for the intervals: so many are 1; of the others half are anything from 0 to 1, half
those of another needle."""


def pairs(random: np.random.Generator, noise: str, fall: float) -> np.ndarray:
    """Ratios of A and B, a row a sample; the mean of B's lies lower by ``fall``."""
    n = CELLS * PER_CELL
    if noise == "wording":
        level = random.uniform(0.3, 0.7, n)
        return level + random.normal(0, 0.05, (2, n)) - [[0], [fall]]
    right = random.beta(2, 1, n) * 0.9 + 0.1
    chances = np.stack([right, right - fall / 0.95])
    return np.where(random.random((2, n)) < chances, 1.0, 0.05)


def alarms(values: np.ndarray) -> tuple[bool, bool]:
    """Whether the test of chance calls a regression, and whether ``--max-regression`` does."""
    cells = [range(i * PER_CELL, (i + 1) * PER_CELL) for i in range(CELLS)]
    needles = [range(i * 33, (i + 1) * 33) for i in range(3)]
    changes = [
        change_of([(float(values[0, i]), float(values[1, i])) for i in members])
        for members in ([range(CELLS * PER_CELL)], needles, cells)
        for members in members
    ]
    tested = [change for change in changes if change.changed >= FEWEST_CHANGED]
    p = dict(zip(map(id, tested), holm([change.p_lower for change in tested]), strict=True))
    chance = any(p[id(change)] < SIGNIFICANT and change.difference < 0 for change in tested)
    limit = any(
        change.difference < -ALLOWED
        and change.interval is not None
        and change.interval.excludes_zero
        and p.get(id(change), 0 if change is changes[0] else 1) < SIGNIFICANT
        for change in changes
    )
    return chance, limit


def held(random: np.random.Generator, n: int, runs: int) -> tuple[float, float]:
    """How often the interval holds the true mean: of ratios, and of differences."""
    ratios = differences = 0
    true = EXACT + (1 - EXACT) * (HALF * 0.5 + HALF * ANOTHER)

    def draw() -> np.ndarray:
        other = np.where(random.random(n) < HALF, random.random(n), ANOTHER)
        return np.where(random.random(n) < EXACT, 1.0, other)

    for _ in range(runs):
        one = mean_interval(draw().tolist())
        two = mean_interval((draw() - draw()).tolist())
        assert one is not None
        assert two is not None
        ratios += one.low <= true <= one.high
        differences += two.low <= 0 <= two.high
    return ratios / runs, differences / runs


def main() -> int:
    """Print the figures."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    random = np.random.default_rng(0)
    worst = 0.0
    for noise in ("wording", "turns"):
        for fall in (0.0, PLANTED):
            found = np.array([alarms(pairs(random, noise, fall)) for _ in range(runs)])
            chance, limit = found.mean(axis=0)
            if not fall:
                worst = max(worst, float(chance))
            print(
                f"{noise}, B lower by {fall:g}: called a regression {chance:.1%} of {runs} times,"
                f" with --max-regression {ALLOWED:g} {limit:.1%}"
            )
    for n in (6, 10, 20, 50, 100):
        ratios, differences = held(random, n, runs)
        print(f"{n} samples: the interval holds {ratios:.1%} (ratios), {differences:.1%} (changes)")
    return worst > SIGNIFICANT


if __name__ == "__main__":
    sys.exit(main())
