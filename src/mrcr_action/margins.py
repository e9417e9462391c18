"""Thresholds that tell little: that cannot be missed, or that one sample decides. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.checks import threshold_of
from mrcr_action.config.thresholds import AT_MOST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.config import RunConfig
    from mrcr_action.config.thresholds import Bound, Metric
    from mrcr_action.result import Bucket

MOST_NAMED = 6
"""Buckets that one sentence lists."""


def toothless(config: RunConfig) -> list[str]:
    """A sentence for each threshold, and a baseline, that no server can miss."""
    found = []
    for bound in config.bounds:
        where = "" if bound.bucket == "all" else f" ({_in_words(bound)})"
        is_ratio = bound.metric == "match_ratio"
        if can_be_missed(bound.metric, bound.bound, config.tolerance if is_ratio else 0.0):
            continue
        what = f"{bound.bound:g} with a tolerance of {config.tolerance:g}"
        what = what if is_ratio else f"{bound.metric} {bound.bound:g}"
        found.append(f"The threshold {what} can never be missed{where}.")
    if config.max_regression == 1:
        found.append("With a max_regression of 1 no fall against the baseline is too large.")
    return found


def can_be_missed(metric: Metric, threshold: float, tolerance: float) -> bool:
    """Whether there is a value from 0 to 1 that misses a threshold."""
    return threshold < 1 if metric in AT_MOST else threshold > tolerance


def one_sample_decides(buckets: Sequence[Bucket], config: RunConfig) -> list[str]:
    """One sentence about the thresholds that a single sample can move a bucket across, if any.

    Of calibrated thresholds there is none to say: how often a healthy server misses them is known.
    """
    if config.decision != "point" or config.calibration is not None:
        return []
    thin = [
        (bucket.name, bucket.step)
        for bucket in buckets
        if (expected := threshold_of(bucket, config)) is not None
        and bucket.step is not None
        and not bucket.skipped  # else it is decided whatever single samples are
        and config.tolerance < min(bucket.step, expected)
    ]
    if not thin:
        return []
    shown = ", ".join(f"{name} ({step:.4f})" for name, step in thin[:MOST_NAMED])
    if len(thin) > MOST_NAMED:
        shown += f" and {len(thin) - MOST_NAMED} more"
    sentence = (
        "One sample decides: it can move the match ratio by more than the tolerance of"
        f" {config.tolerance:g} in {shown}. Ask for more samples, or set decision: confident."
    )
    return [sentence]


def _in_words(bound: Bound) -> str:
    place = bound.place
    return bound.bucket if place.bin else f"{place.n_needles} needles"
