"""What a bucket can still become while some of its samples are not asked yet. Pure; no I/O.

Every metric is a mean, or a share, of values from 0 to 1. With ``n`` values that come to ``s`` and
``k`` samples to come, it ends between ``s / (n + k)``, all of them 0, and ``(s + k) / (n + k)``,
all of them 1. A sample that is lost only narrows that: without it ``k`` is smaller, and as ``s`` is
no larger than ``n``, the first grows with a smaller ``k`` and the second falls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from mrcr_action.intervals import Interval, mean_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.config.thresholds import Metric
    from mrcr_action.result import Bucket

ROUNDING = 1e-9
"""By how much the mean of ratios must clear its limit to be called certain. A sum that is added up
in another order differs in its last bits; they are left to the answers themselves."""

IF_ONE: dict[Metric, str] = {
    "match_ratio": "were exact",
    "nonce_rate": "started with the nonce",
    "exact_rate": "were exact",
    "truncation_rate": "were truncated",
    "failure_rate": "were lost",
}
"""What the samples to come would be, for a metric to become as large as it can."""


class Reach(NamedTuple):
    """Least and most that a metric can become, both included."""

    least: float
    most: float


class Outlook(NamedTuple):
    """What is certain of a bound that samples are still to come of."""

    state: Literal["fail", "pass", "open"]
    message: str


def reach(total: float, n: int, left: int) -> Reach:
    """Least and most of a mean.

    Args:
        total: sum of the values that are known, each from 0 to 1.
        n: their number.
        left: values to come; with ``n``, at least one.
    """
    return Reach(total / (n + left), (total + left) / (n + left))


def reach_of(bucket: Bucket, metric: Metric, protocol: str) -> Reach:
    """Least and most of a metric of the graded samples, once those skipped are graded too."""
    measured, n = bucket.measured(metric, protocol) or 0.0, bucket.graded
    total = measured * n
    if metric != "match_ratio":
        total = round(total)  # a count: the last bit of a product must not be in the way
    return reach(total, n, bucket.skipped)


def interval_reach(values: Sequence[float], left: int, spare: int) -> Interval | None:
    """Least and most that the ends of a mean's interval can become.

    The bootstrap draws places of the sorted sample, the same ones for so many values. A value that
    grows moves no place of the sorted sample down, so that no mean that is drawn falls, and no
    quantile of these means. The ends are therefore least with all that are to come at 0, and most
    with all at 1. Another number of values has other draws, so that each number there can be is
    looked at.

    Args:
        values: the ratios that are known.
        left: ratios to come.
        spare: of these, how many may be lost before nothing is decided anyway.

    Returns:
        The least lower and the most upper end; None if there may be no interval at all.
    """
    lows, highs = [], []
    for lost in range(min(left, max(spare, 0)) + 1):
        worst = mean_interval([*values, *[0.0] * (left - lost)])
        best = mean_interval([*values, *[1.0] * (left - lost)])
        if worst is None or best is None:
            return None
        lows.append(worst.low)
        highs.append(best.high)
    return Interval(min(lows), max(highs))


def least_outlook(bucket: Bucket, metric: Metric, reached: Reach, needed: float) -> Outlook:
    """What is certain of a metric that must not be below what is needed.

    Args:
        bucket: some of its samples were skipped.
        metric: whose outlook it is.
        reached: what it can become.
        needed: threshold, less tolerance.
    """
    slack = ROUNDING if metric == "match_ratio" else 0.0
    if reached.most < needed - slack:
        return Outlook("fail", f"at most {reached.most:.4f} if {_all(bucket, metric)}")
    if reached.least >= needed + slack:
        return Outlook("pass", f"at least {reached.least:.4f} if {_none(bucket, metric)}")
    return Outlook("open", _open(bucket))


def most_outlook(bucket: Bucket, metric: Metric, reached: Reach, allowed: float) -> Outlook:
    """The same of a metric that must not be above what is allowed."""
    if reached.least > allowed:
        told = f"at least {reached.least:.4f} if {_none(bucket, metric)}"
        return Outlook("fail", told)
    if reached.most <= allowed:
        return Outlook("pass", f"at most {reached.most:.4f} if {_all(bucket, metric)}")
    return Outlook("open", _open(bucket))


def confident_outlook(bucket: Bucket, needed: float) -> Outlook:
    """What is certain of the interval of a match ratio that must not lie below what is needed."""
    ends = bucket.interval_reach
    if ends is not None and ends.high < needed - ROUNDING:
        told = f"its 95 % interval ends at {ends.high:.4f} at most"
        return Outlook("fail", f"{told} if {_all(bucket, 'match_ratio')}")
    if ends is not None and ends.low >= needed + ROUNDING:
        told = f"its 95 % interval begins at {ends.low:.4f} at least"
        return Outlook("pass", f"{told} if {_none(bucket, 'match_ratio')}")
    return Outlook("open", _open(bucket))


def _open(bucket: Bucket) -> str:
    """That a run stopped before a bucket was decided."""
    return f"not decided: {bucket.skipped} of {bucket.planned} samples were not asked"


def _all(bucket: Bucket, metric: Metric) -> str:
    return f"{_others(bucket)} {IF_ONE[metric]}"


def _none(bucket: Bucket, metric: Metric) -> str:
    if metric == "match_ratio":
        return f"{_others(bucket)} scored 0"
    if bucket.skipped == 1:
        return f"not even the other one {IF_ONE[metric]}"
    return f"none of the {bucket.skipped} others {IF_ONE[metric]}"


def _others(bucket: Bucket) -> str:
    return "the other one" if bucket.skipped == 1 else f"all {bucket.skipped} others"
