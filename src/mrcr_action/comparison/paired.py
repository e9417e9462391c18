"""Two values of every sample: how far their means differ, and whether chance would do that. Pure.

Samples differ in difficulty far more than two runs differ on one sample, so that what two runs say
of the same samples shows what no comparison of two means could.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.comparison.document import Change
from mrcr_action.intervals import mean_interval
from mrcr_action.stats import mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

MOST_ENUMERATED = 16
"""Samples that differ of which every pattern of signs is looked at: 65,536 at most."""

DRAWS = 19_999
"""Patterns drawn where there are more. The least p is then 1 in 20,000, which stays below 0.05 when
it is corrected for hundreds of buckets; and p near 0.002, as decides among some thirty, is within
0.0006 of what more draws would give."""

SEED = 0
"""The same samples have the same p on every machine."""

_AT_A_TIME = 1_000_000
"""Signs drawn at a time, for memory's sake: 9 MB."""


def change_of(pairs: Sequence[tuple[float, float]]) -> Change:
    """Compare the two values of each sample.

    Args:
        pairs: A's and B's value of a sample, at least one pair.
    """
    differences = [b - a for a, b in pairs]
    p_lower, p_two_sided = sign_flip_test(differences)
    mean_a, mean_b = mean([a for a, _ in pairs]), mean([b for _, b in pairs])
    difference = mean(differences)
    assert mean_a is not None
    assert mean_b is not None
    assert difference is not None
    return Change(
        n=len(pairs),
        changed=sum(difference != 0 for difference in differences),
        mean_a=mean_a,
        mean_b=mean_b,
        difference=difference,
        interval=mean_interval(differences),
        p_lower=p_lower,
        p_two_sided=p_two_sided,
    )


def sign_flip_test(differences: Sequence[float]) -> tuple[float, float]:
    """Fisher's randomisation test of paired samples: one-sided for a fall, and two-sided.

    If the change did nothing, each sample's two values could as well have come the other way
    round. Of all ways to give the differences their signs, p is the share with a sum as low as the
    one seen, or lower (one-sided), or as far from 0 (two-sided). No distribution is assumed
    (Fisher, The Design of Experiments, 1935, section 21). Samples that do not differ have no sign
    and change nothing.

    All ways are looked at up to `MOST_ENUMERATED` samples that differ; of more, `DRAWS` random
    ones, and p is (hits + 1) / (draws + 1), since what was seen is one of the ways, and p is never
    0 (Phipson and Smyth, Statistical Applications in Genetics and Molecular Biology 9, 2010).
    """
    import numpy as np

    # In order, so that which sample came first decides nothing.
    changed = np.sort(np.array([difference for difference in differences if difference]))
    if not changed.size:
        return 1.0, 1.0
    sizes, seen = np.abs(changed), float(changed.sum())
    # Sums that are equal may differ in their last bits.
    slack = 1e-9 * float(sizes.sum())

    def hits(sums: np.ndarray) -> tuple[int, int]:
        lower = np.count_nonzero(sums <= seen + slack)
        return int(lower), int(np.count_nonzero(np.abs(sums) >= abs(seen) - slack))

    if changed.size <= MOST_ENUMERATED:
        sums = np.zeros(1)
        for size in sizes:
            sums = np.concatenate((sums - size, sums + size))
        lower, either = hits(sums)
        return lower / sums.size, either / sums.size
    random = np.random.default_rng(SEED)
    lower = either = 0
    step = max(1, _AT_A_TIME // changed.size)
    for start in range(0, DRAWS, step):
        count = min(step, DRAWS - start)
        positive = random.integers(2, size=(count, changed.size), dtype=np.int8)
        found = hits(2 * (positive @ sizes) - sizes.sum())
        lower, either = lower + found[0], either + found[1]
    return (lower + 1) / (DRAWS + 1), (either + 1) / (DRAWS + 1)


def holm(chances: Sequence[float]) -> tuple[float, ...]:
    """Values of p corrected for their number, in the order given.

    Of m, the least is multiplied by m, the next by m - 1 and so on, and none is less than the one
    before. To call those below 0.05 real is wrong about any at all at most 5 times in 100, whatever
    they have to do with each other (Holm, Scandinavian Journal of Statistics 6, 1979).
    """
    corrected = [1.0] * len(chances)
    least = 0.0
    for rank, index in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        least = max(least, min(1.0, (len(chances) - rank) * chances[index]))
        corrected[index] = least
    return tuple(corrected)
