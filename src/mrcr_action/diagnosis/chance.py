"""How likely chance alone puts the wrong responses where they are. Exact, without drawing."""

from __future__ import annotations

import math

FEW = 3
"""Samples on either side of a comparison, at least."""

CHANCE = 0.02
"""Largest probability that what is told came about by chance."""


def fisher(hits: int, of: int, other_hits: int, other_of: int) -> float:
    """Fisher's exact test, one-sided: chance of so many hits in the first group or more.

    Given how many there are in both together (R. A. Fisher, *Statistical Methods for Research
    Workers*, 5th edition, 1934, section 21.02).
    """
    total, everything = hits + other_hits, of + other_of
    spare = everything - total - of
    # Summed away from the mean, so that the first term is the largest and none underflows before.
    if hits * everything > total * of:
        term = chance = _term(hits, total, of, everything)
        for k in range(hits, min(total, of)):
            term *= (total - k) * (of - k) / ((k + 1) * (spare + k + 1))
            chance += term
        return min(1.0, chance)
    least = max(0, -spare)
    if hits <= least:
        return 1.0
    term = chance = _term(hits - 1, total, of, everything)
    for k in range(hits - 1, least, -1):
        term *= k * (spare + k) / ((total - k + 1) * (of - k + 1))
        chance += term
    return max(0.0, 1.0 - chance)


def _term(hits: int, total: int, of: int, everything: int) -> float:
    return math.exp(
        _log_choose(total, hits)
        + _log_choose(everything - total, of - hits)
        - _log_choose(everything, of)
    )


def leading(before: int, exact: int, wrong: int) -> float:
    """Chance that so many exact ones or more come before the first wrong one, in a random order.

    Args:
        before: exact ones before the first wrong one.
        exact: all exact ones.
        wrong: all wrong ones.

    This is exact although the place of the first wrong one was looked up: it is itself what is
    tested.
    """
    n = exact + wrong
    return math.exp(_log_choose(n - before, wrong) - _log_choose(n, wrong))


def _log_choose(n: int, k: int) -> float:
    if not 0 <= k <= n:
        return -math.inf
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
