"""How sure a mean or a share is: intervals that hold 95 times in 100, or more. Pure; no I/O."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVEL = 0.95

RESAMPLES = 10_000
"""Efron and Tibshirani call 1,000 enough for an interval, whose ends other draws then move by 2 %
of its width; with ten times as many it is 0.7 %, and they cost some 20 ms for 100 samples."""

MOST_DRAWS = 50_000
"""Weightings of few samples, whose ends lie far out: of 10,000, one end in 280 would be told by 36,
and be off by a sixth. Of many samples, `RESAMPLES` will do."""

FEWEST = 6
"""Samples without which a mean has no interval here. Five samples all lie on one side of the middle
once in 32 times, more often than the 2.5 % that either end may miss; no resampling mends that."""

SEED = 0
"""The same samples have the same interval on every machine."""

_AT_A_TIME = 1_000_000
"""Values drawn at a time, for memory's sake: 16 MB."""

_HALVINGS = 60
"""Of the range 0 to 1, after which the two ends differ by less than 1e-18."""


class Interval(msgspec.Struct, frozen=True):
    """A range, both ends included."""

    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether all of it lies on one side of 0."""
        return self.low > 0 or self.high < 0

    @property
    def is_point(self) -> bool:
        """Whether it has no width: no spread was seen, which does not show that there is none."""
        return self.low == self.high


def mean_interval(values: Sequence[float]) -> Interval | None:
    """The percentile bootstrap's interval of a mean over samples.

    The samples are drawn anew, with replacement, `RESAMPLES` times; the interval leaves 2.5 % of
    the means on either side (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter
    13). It needs no normal distribution, and is too narrow for few samples: in simulations with
    made-up ratios (benchmarks/compare.py) it holds 78 to 85 times in 100 for 6 samples, 88 to 89
    for 10, and 93 to 94 for 50.

    Returns:
        None for fewer than `FEWEST` values. A point if all are equal: nothing was seen to vary.
    """
    import numpy as np

    n = len(values)
    if n < FEWEST:
        return None
    # In order, so that which sample came first decides nothing.
    sample = np.sort(np.asarray(values, dtype=np.float64))
    if sample[0] == sample[-1]:
        return Interval(float(sample[0]), float(sample[0]))
    random = np.random.default_rng(SEED)
    means = np.empty(RESAMPLES)
    step = max(1, _AT_A_TIME // n)
    for start in range(0, RESAMPLES, step):
        count = min(step, RESAMPLES - start)
        means[start : start + count] = sample[random.integers(n, size=(count, n))].mean(axis=1)
    beyond = (1 - LEVEL) / 2
    low, high = np.quantile(means, (beyond, 1 - beyond))
    return Interval(float(low), float(high))


def bounded_interval(values: Sequence[float], level: float = LEVEL) -> Interval | None:
    """An interval of a mean over samples from 0 to 1 that holds for few of them as well.

    Every sample weighs at random, all weightings equally likely, and so does one more that nobody
    has seen: a 0 for the lower end, a 1 for the upper one. The ends leave half of what the level
    leaves (N. Gaffke, Mathematical Methods of Statistics 14, 2005; E. Learned-Miller and P. S.
    Thomas, arXiv:1905.06208, 2019). Of samples that are all 0 or 1 it is the interval of
    `share_interval`. That it holds as often as it says for any distribution is a conjecture without
    a known counterexample. It is wider than `mean_interval`, and no point even if all are equal.

    Args:
        values: from 0 to 1.
        level: how often it holds; to be raised where one looks more than once.

    Returns:
        None without values.
    """
    if not values:
        return None
    # Equal samples weigh as one with the sum of their weights, so that their order decides nothing.
    return _weighted(tuple(sorted(Counter(map(float, values)).items())), level)


@cache
def _weighted(values: tuple[tuple[float, int], ...], level: float) -> Interval:
    """See `bounded_interval`; values with their numbers. Every look asks for most of them again."""
    import numpy as np

    different = np.array([value for value, _ in values])
    alike = [(at, count) for at, (_, count) in enumerate(values) if count > 1]
    random = np.random.default_rng(SEED)
    draws = min(MOST_DRAWS, max(RESAMPLES, _AT_A_TIME // (len(different) + 1)))
    lows, gaps = np.empty(draws), np.empty(draws)
    step = max(1, _AT_A_TIME // (len(different) + 1))
    for start in range(0, draws, step):
        end = min(start + step, draws)
        weights = random.standard_exponential((end - start, len(different) + 1))
        for at, count in alike:
            weights[:, at] = random.standard_gamma(count, size=end - start)
        whole = weights.sum(axis=1)
        lows[start:end] = weights[:, :-1] @ different / whole
        # From above, so that samples that are all 1 reach it exactly.
        gaps[start:end] = weights[:, :-1] @ (1 - different) / whole
    beyond = (1 - level) / 2
    return Interval(float(np.quantile(lows, beyond)), 1 - float(np.quantile(gaps, beyond)))


def share_interval(hits: int, n: int) -> Interval | None:
    """The exact interval of a share of samples, such as those answered exactly.

    It ends where so many hits or more, and so many or fewer, would be seen 2.5 % of the time
    (Clopper and Pearson, Biometrika 26, 1934): it holds at least 95 times in 100, however few the
    samples are, and says of 0 in 20 that up to 17 % are possible.

    Returns:
        None without samples.

    Raises:
        ValueError: there cannot be so many hits.
    """
    if not 0 <= hits <= n:
        raise ValueError(f"{hits} of {n} is no share")
    if n == 0:
        return None
    return Interval(_lower_end(hits, n), 1 - _lower_end(n - hits, n))


def _lower_end(hits: int, n: int) -> float:
    """The share at which so many hits or more come with a chance of 2.5 %."""
    import numpy as np

    if hits == 0:
        return 0.0
    counts = np.arange(hits, n + 1)
    # Logarithms, since n over k leaves the range of a float at n = 1,030.
    ways = np.array(
        [math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in counts.tolist()]
    )
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        log_chances = ways + counts * math.log(middle) + (n - counts) * math.log1p(-middle)
        if float(np.exp(log_chances).sum()) < (1 - LEVEL) / 2:
            low = middle
        else:
            high = middle
    return (low + high) / 2
