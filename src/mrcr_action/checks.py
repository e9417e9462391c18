"""One bucket against its thresholds. Pure; no I/O.

A bucket is inconclusive when more of its requests were lost than ``max_failures`` allows, or its
own bound of the failure rate, or when nothing of it was graded: a lost request is evidence neither
for nor against the model. With a threshold it is inconclusive too when fewer samples were graded
than asked for (``min_samples`` lowers that): a mean over two samples is no verdict about forty. It
fails when its match ratio lies strictly below threshold - tolerance, which is vLLM's rule, or one
of its rates beyond its bound. Under ``decision: confident`` the whole 95 % interval of the ratio
has to lie below; where it lies on both sides, nothing is decided.

Of a run that stopped early (`mrcr_action.stopping`), a bucket with skipped samples fails or passes
where that is certain whatever these would have been (`mrcr_action.bounds`); otherwise nothing is
decided about it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mrcr_action.bounds import (
    Outlook,
    Reach,
    confident_outlook,
    least_outlook,
    most_outlook,
    reach,
    reach_of,
)
from mrcr_action.intervals import FEWEST, Interval, share_interval
from mrcr_action.result import Bucket, Check, State

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mrcr_action.config import RunConfig
    from mrcr_action.config.thresholds import Bound, Metric

    Bounds = Mapping[Metric, Bound]

FARTHEST = 100
"""How many times as many samples are worth mentioning as a way to a decision."""


def bounds_of(bucket: Bucket, config: RunConfig) -> Bounds:
    """The thresholds of a bucket, by metric; a further round's are those of the first one."""
    name = bucket.name if bucket.round is None else bucket.base
    return {bound.metric: bound for bound in config.bounds if bound.bucket == name}


def threshold_of(bucket: Bucket, config: RunConfig) -> float | None:
    """The expected match ratio of a bucket, if the configuration names one."""
    bound = bounds_of(bucket, config).get("match_ratio")
    return None if bound is None else bound.bound


def undecided(bucket: Bucket, config: RunConfig) -> bool:
    """Whether the interval of a bucket holds what is needed, so that more samples may decide."""
    own, interval = bounds_of(bucket, config), bucket.interval
    if "match_ratio" not in own or interval is None or config.decision == "point":
        return False
    if _lack_of_evidence(bucket, config, own, gated=True):
        return False
    return interval.low < own["match_ratio"].bound - config.tolerance <= interval.high


def checks_of(bucket: Bucket, config: RunConfig) -> Iterator[Check]:
    """What is decided about each metric of a bucket, its match ratio first."""
    own = bounds_of(bucket, config)
    yield _ratio_check(bucket, config, own)
    for metric in own:
        if metric == "failure_rate":
            yield _failure_check(bucket, config, own[metric])
        elif metric != "match_ratio":
            yield _rate_check(bucket, config, own, own[metric])


def _ratio_check(bucket: Bucket, config: RunConfig, own: Bounds) -> Check:
    expected = own["match_ratio"].bound if "match_ratio" in own else None
    measured = bucket.match_ratio(config.protocol)

    def check(state: State, message: str, *, undecided: bool = False) -> Check:
        return Check(
            bucket=bucket.name,
            state=state,
            undecided=undecided,
            message=f"{label('match_ratio', bucket.name)}: {message}",
            measured=measured,
            threshold=expected,
            tolerance=config.tolerance if expected is not None else None,
            samples=bucket.graded,
            interval=bucket.interval,
        )

    lack = _lack_of_evidence(bucket, config, own, gated=expected is not None)
    if lack:
        return check("inconclusive", lack)
    if bucket.skipped:
        if expected is not None:
            outlook = _ratio_outlook(bucket, config, expected)
            return check(*_state_of(outlook), undecided=outlook.state == "open")
        so_far = "none" if measured is None else f"{measured:.4f}"
        return check("measured", f"{so_far} of {bucket.graded} of {bucket.planned} samples")
    if measured is None:
        asked = "no samples collected" if bucket.wanted else "no samples were asked for"
        return check("measured" if expected is None else "inconclusive", asked)
    if expected is None:
        return check("measured", f"{measured:.4f}")
    return check(*_decide(bucket, config, measured, expected))


def _ratio_outlook(bucket: Bucket, config: RunConfig, expected: float) -> Outlook:
    """What is certain of a match ratio whose bucket has skipped samples."""
    needed = expected - config.tolerance
    reached = reach_of(bucket, "match_ratio", config.protocol)
    found = least_outlook(bucket, "match_ratio", reached, needed)
    if config.decision == "confident":
        found = confident_outlook(bucket, needed)
    sign = {"fail": "<", "pass": ">="}.get(found.state)
    rule = f": {sign} {expected:.4f} - {config.tolerance:.4f}" if sign else ""
    return Outlook(found.state, found.message + rule)


def _state_of(outlook: Outlook) -> tuple[State, str]:
    return "inconclusive" if outlook.state == "open" else outlook.state, outlook.message


def _decide(
    bucket: Bucket, config: RunConfig, measured: float, expected: float
) -> tuple[State, str]:
    """Compare a match ratio, or its interval, with threshold - tolerance."""
    needed = expected - config.tolerance
    rule = f"{expected:.4f} - {config.tolerance:.4f}"
    interval = bucket.interval
    if config.decision == "point" or (interval is not None and interval.is_point):
        if measured < needed:
            return "fail", f"{measured:.4f} < {rule}"
        return "pass", f"{measured:.4f} >= {rule}"
    if interval is None:
        few = f"{bucket.graded} graded samples are too few for an interval, {FEWEST} are needed"
        return "inconclusive", f"{measured:.4f}, and {few}"
    shown = f"{measured:.4f} (95 %: {interval.low:.4f} to {interval.high:.4f})"
    if interval.high < needed:
        return "fail", f"{shown} < {rule}"
    if interval.low >= needed:
        return "pass", f"{shown} >= {rule}"
    more = _more_samples(bucket.graded, measured, needed, interval)
    return "inconclusive", f"{shown} is on both sides of {rule}; {more}"


def _more_samples(n: int, measured: float, needed: float, interval: Interval) -> str:
    """How many samples might do: an interval's width falls with the square root of their number."""
    distance = abs(measured - needed)
    arm = measured - interval.low if measured >= needed else interval.high - measured
    if arm >= distance * math.sqrt(FARTHEST):
        return "it is too close for more samples to tell"
    # Rounded first, so that the last bit of a float is no further sample.
    more = max(1, math.ceil(round(n * (arm / distance) ** 2, 3)) - n)
    return f"about {more:,} more samples might tell"


def _rate_check(bucket: Bucket, config: RunConfig, own: Bounds, bound: Bound) -> Check:
    measured = bucket.measured(bound.metric, config.protocol)
    lack = _lack_of_evidence(bucket, config, own, gated=True)
    if bucket.skipped and not lack:
        reached = reach_of(bucket, bound.metric, config.protocol)
        return _rate(bucket, bound, measured, bucket.graded, _rate_outlook(bucket, bound, reached))
    if measured is None:
        lack = lack or "no samples collected"
    return _rate(bucket, bound, measured, bucket.graded, lack)


def _rate_outlook(bucket: Bucket, bound: Bound, reached: Reach) -> Outlook:
    decide = most_outlook if bound.is_most else least_outlook
    found = decide(bucket, bound.metric, reached, bound.bound)
    sign = {(True, "fail"): ">", (True, "pass"): "<=", (False, "fail"): "<", (False, "pass"): ">="}
    ended = sign.get((bound.is_most, found.state))
    return Outlook(found.state, found.message + (f": {ended} {bound.bound:.4f}" if ended else ""))


def _failure_check(bucket: Bucket, config: RunConfig, bound: Bound) -> Check:
    # What a stopped run did not come to is no failure, nor do the first few stand for the others.
    had, lost = bucket.asked - bucket.unasked, bucket.lost - bucket.unasked
    whole = max(bucket.planned, bucket.wanted, 1)
    certain = lost / whole
    needed = config.min_samples or bucket.wanted
    lack: str | Outlook = ""
    if certain > bound.bound:
        if bucket.skipped:
            lack = _rate_outlook(bucket, bound, Reach(certain, 1.0))
    elif not bucket.planned:
        lack = "no samples collected"
    elif bucket.unasked:
        lack = f"{bucket.unasked} of {bucket.asked} samples were not asked to the end"
    elif bucket.planned < needed:
        lack = f"only {bucket.planned} of {bucket.wanted} samples asked, {needed} are needed"
        if (lost + bucket.skipped) / whole > bound.bound:
            lack = Outlook("open", lack)  # for want of samples it cannot pass, but it can fail
    elif bucket.skipped:
        lack = _rate_outlook(bucket, bound, reach(lost, had, bucket.skipped))
    return _rate(bucket, bound, lost / had if had else None, had, lack)


def _rate(
    bucket: Bucket, bound: Bound, measured: float | None, n: int, told: str | Outlook
) -> Check:
    """Compare a share of samples with its bound.

    Args:
        bucket: whose share it is.
        bound: what it is compared with.
        measured: the share; None of nothing.
        n: of how many.
        told: why there is a lack of evidence, or what is certain of a run that stopped early.
    """
    missed = measured is not None and (
        measured > bound.bound if bound.is_most else measured < bound.bound
    )
    sign = {(True, True): ">", (True, False): "<=", (False, True): "<", (False, False): ">="}
    state: State = "fail" if missed else "pass"
    message = f"{measured or 0:.4f} {sign[bound.is_most, missed]} {bound.bound:.4f}"
    if isinstance(told, Outlook):
        state, message = _state_of(told)
    elif told:
        state, message = "inconclusive", told
    return Check(
        bucket=bucket.name,
        metric=bound.metric,
        state=state,
        undecided=isinstance(told, Outlook) and told.state == "open",
        message=f"{label(bound.metric, bucket.name)}: {message}",
        measured=measured,
        threshold=bound.bound,
        samples=n,
        interval=None if measured is None else share_interval(round(measured * n), n),
    )


def label(metric: Metric, bucket: str) -> str:
    return metric if bucket == "all" else f"{metric}_{bucket}"


def allowed_losses(bucket: Bucket, config: RunConfig) -> int:
    """Requests of a bucket that may be lost before nothing can be said about it."""
    own = bounds_of(bucket, config)
    if "failure_rate" in own:
        most, n = own["failure_rate"].bound, bucket.planned
        # The largest number that is no larger share; a product may miss it by its last bit.
        return sum(lost / n <= most for lost in range(1, n + 1))
    if not own and bucket.n_needles is not None and _bounds_failures_of_all(config):
        return bucket.planned
    return config.max_failures


def _lack_of_evidence(bucket: Bucket, config: RunConfig, own: Bounds, *, gated: bool) -> str:
    """Why nothing can be said about a bucket; empty when something can."""
    if bucket.bin is not None and not own:
        return ""
    allowed = allowed_losses(bucket, config)
    budget = f"max_failures is {config.max_failures}"
    if "failure_rate" in own:
        budget = f"failure_rate is at most {own['failure_rate'].bound:g}"
    if bucket.lost > allowed:
        return (
            f"{bucket.lost} of {bucket.asked} requests were lost"
            f" ({bucket.failed} failed, {bucket.rejected} refused; {budget})"
        )
    if bucket.wanted and not bucket.graded and not bucket.skipped:
        return "no samples collected"
    needed = config.min_samples or max(1, bucket.wanted - allowed)
    graded = bucket.graded + bucket.skipped
    if gated and graded < needed:
        return (
            f"only {graded} of {bucket.wanted} samples graded, {needed} are needed (lower"
            " num_samples, or set min_samples)"
        )
    return ""


def _bounds_failures_of_all(config: RunConfig) -> bool:
    """Whether there is a budget for all samples, within which the parts need none of their own."""
    return any(b.bucket == "all" and b.metric == "failure_rate" for b in config.bounds)
