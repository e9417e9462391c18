"""From buckets to a verdict. Pure; no I/O.

A bucket is inconclusive when more of its requests were lost than ``max_failures`` allows, or its
own bound of the failure rate, or when nothing of it was graded: a lost request is evidence neither
for nor against the model. With a threshold it is inconclusive too when fewer samples were graded
than asked for (``min_samples`` lowers that): a mean over two samples is no verdict about forty. It
fails when its match ratio lies strictly below threshold - tolerance, which is vLLM's rule, or one
of its rates beyond its bound. Under ``decision: confident`` the whole 95 % interval of the ratio
has to lie below; where it lies on both sides, nothing is decided.

One failed bucket fails the run; otherwise one inconclusive bucket makes it inconclusive, whether or
not a threshold speaks of it; and so does a cell that the configuration names and of which no row
fits. A baseline (`mrcr_action.baseline`) counts like a threshold. Cells without a threshold have no
part in the verdict: their samples are those of their needle count.

Each further round of the same samples (`mrcr_action.rounds`) is held to the same thresholds;
whether it differs from the first one is decided elsewhere (`mrcr_action.stability`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mrcr_action.errors import CellMissing, ExitCode
from mrcr_action.intervals import FEWEST, Interval, share_interval
from mrcr_action.result import Bucket, Check, Conclusion, State, Verdict
from mrcr_action.stats import coverage_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mrcr_action.config import RunConfig
    from mrcr_action.config.thresholds import Bound, Metric
    from mrcr_action.coverage import Coverage
    from mrcr_action.plan import Plan

    Bounds = Mapping[Metric, Bound]

EXIT_CODES: dict[Conclusion, ExitCode] = {
    "pass": ExitCode.PASS,
    "fail": ExitCode.FAIL,
    "inconclusive": ExitCode.CANNOT_JUDGE,
}

MOST_NAMED = 6
"""Thresholds that were reached which one sentence lists."""

FARTHEST = 100
"""How many times as many samples are worth mentioning as a way to a decision."""


def judge(
    buckets: Sequence[Bucket],
    config: RunConfig,
    coverage: Sequence[Coverage] = (),
    further: Sequence[Check] = (),
) -> Verdict:
    """Check every bucket against the configuration, and whether every cell that it names was asked.

    Args:
        buckets: what was measured.
        config: thresholds and budgets.
        coverage: the cells of the run.
        further: what was decided elsewhere, such as about the baseline.
    """
    checks = [check for bucket in buckets for check in _checks(bucket, config)]
    checks += [_missing(cell) for cell in coverage if cell.is_missing]
    tested = {check.bucket for check in checks}
    # Whatever kept a bucket from being tested, its threshold must not pass for one that was met.
    checks += [_untested(bound) for bound in config.bounds if bound.bucket not in tested]
    checks += further
    conclusion, summary = _conclusion(checks)
    return Verdict(conclusion=conclusion, summary=summary, checks=tuple(checks))


def _conclusion(checks: Sequence[Check]) -> tuple[Conclusion, str]:
    if failed := _said(checks, "fail"):
        by_threshold = any(c.state == "fail" and c.is_of_threshold for c in checks)
        what = "MRCR thresholds failed" if by_threshold else "MRCR failed"
        return "fail", f"{what}: " + "; ".join(failed)
    if unclear := _said(checks, "inconclusive"):
        return "inconclusive", "MRCR is inconclusive: " + "; ".join(unclear)
    passed = _said([check for check in checks if check.is_of_threshold], "pass")
    held = _said([check for check in checks if not check.is_of_threshold], "pass")
    if not passed and not held:
        return "pass", "MRCR measured; no threshold was set, so nothing was gated"
    if len(passed) > MOST_NAMED:
        passed = [f"all {len(passed)} thresholds were reached"]
    return "pass", "MRCR passed: " + "; ".join([*passed, *held])


def _said(checks: Sequence[Check], state: State) -> list[str]:
    """The messages of one state; why a bucket is inconclusive only once, for all its metrics."""
    found: dict[tuple[str, str], str] = {}
    for check in checks:
        if check.state == state:
            reason = check.message.partition(": ")[2] if state == "inconclusive" else check.metric
            found.setdefault((check.bucket, reason), check.message)
    return list(found.values())


def check_cells(plan: Plan) -> None:
    """See that every cell that the configuration names has a row to ask.

    Raises:
        CellMissing: one has none.
    """
    missing = [cell.why_missing for cell in coverage_of(plan, ()) if cell.is_missing]
    if missing:
        raise CellMissing(
            "; ".join(missing),
            hint="Leave the cell out with exclude, and without a threshold, or name other bins."
            " `mrcr plan` shows what there is.",
        )


def bounds_of(bucket: Bucket, config: RunConfig) -> Bounds:
    """The thresholds of a bucket, by metric; a further round's are those of the first one."""
    name = bucket.name if bucket.round is None else bucket.base
    return {bound.metric: bound for bound in config.bounds if bound.bucket == name}


def threshold_of(bucket: Bucket, config: RunConfig) -> float | None:
    """The expected match ratio of a bucket, if the configuration names one."""
    bound = bounds_of(bucket, config).get("match_ratio")
    return None if bound is None else bound.bound


def _checks(bucket: Bucket, config: RunConfig) -> Iterator[Check]:
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

    def check(state: State, message: str) -> Check:
        return Check(
            bucket=bucket.name,
            state=state,
            message=f"{_label('match_ratio', bucket.name)}: {message}",
            measured=measured,
            threshold=expected,
            tolerance=config.tolerance if expected is not None else None,
            samples=bucket.graded,
            interval=bucket.interval,
        )

    lack = _lack_of_evidence(bucket, config, own, gated=expected is not None)
    if lack:
        return check("inconclusive", lack)
    if measured is None:
        asked = "no samples collected" if bucket.wanted else "no samples were asked for"
        return check("measured" if expected is None else "inconclusive", asked)
    if expected is None:
        return check("measured", f"{measured:.4f}")
    return check(*_decide(bucket, config, measured, expected))


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
    if measured is None:
        lack = lack or "no samples collected"
    return _rate(bucket, bound, measured, bucket.graded, lack)


def _failure_check(bucket: Bucket, config: RunConfig, bound: Bound) -> Check:
    # What a stopped run did not come to is no failure, nor do the first few stand for the others.
    had, lost = bucket.asked - bucket.unasked, bucket.lost - bucket.unasked
    certain = lost / max(bucket.asked, bucket.wanted, 1)
    needed = config.min_samples or bucket.wanted
    lack = ""
    if certain > bound.bound:
        pass
    elif not bucket.asked:
        lack = "no samples collected"
    elif bucket.unasked:
        lack = f"{bucket.unasked} of {bucket.asked} samples were not asked to the end"
    elif bucket.asked < needed:
        lack = f"only {bucket.asked} of {bucket.wanted} samples asked, {needed} are needed"
    return _rate(bucket, bound, lost / had if had else None, had, lack)


def _rate(bucket: Bucket, bound: Bound, measured: float | None, n: int, lack: str) -> Check:
    """Compare a share of samples with its bound, unless there is a lack of evidence."""
    missed = measured is not None and (
        measured > bound.bound if bound.is_most else measured < bound.bound
    )
    sign = {(True, True): ">", (True, False): "<=", (False, True): "<", (False, False): ">="}
    message = lack or f"{measured:.4f} {sign[bound.is_most, missed]} {bound.bound:.4f}"
    return Check(
        bucket=bucket.name,
        metric=bound.metric,
        state="inconclusive" if lack else "fail" if missed else "pass",
        message=f"{_label(bound.metric, bucket.name)}: {message}",
        measured=measured,
        threshold=bound.bound,
        samples=n,
        interval=None if measured is None else share_interval(round(measured * n), n),
    )


def _missing(cell: Coverage) -> Check:
    return Check(
        bucket=cell.name,
        state="inconclusive",
        message=f"{cell.why_missing} (exclude leaves the cell out)",
    )


def _untested(bound: Bound) -> Check:
    return Check(
        bucket=bound.bucket,
        metric=bound.metric,
        state="inconclusive",
        message=f"{_label(bound.metric, bound.bucket)}: nothing of it was asked",
        threshold=bound.bound,
    )


def _label(metric: Metric, bucket: str) -> str:
    return metric if bucket == "all" else f"{metric}_{bucket}"


def _lack_of_evidence(bucket: Bucket, config: RunConfig, own: Bounds, *, gated: bool) -> str:
    """Why nothing can be said about a bucket; empty when something can."""
    if bucket.bin is not None and not own:
        return ""
    allowed = config.max_failures
    budget = f"max_failures is {allowed}"
    if "failure_rate" in own:
        most = own["failure_rate"].bound
        # The largest number that is no larger share; a product may miss it by its last bit.
        allowed = sum(lost / bucket.asked <= most for lost in range(1, bucket.asked + 1))
        budget = f"failure_rate is at most {most:g}"
    elif not own and bucket.n_needles is not None and _bounds_failures_of_all(config):
        allowed = bucket.asked
    if bucket.lost > allowed:
        return (
            f"{bucket.lost} of {bucket.asked} requests were lost"
            f" ({bucket.failed} failed, {bucket.rejected} refused; {budget})"
        )
    if bucket.wanted and not bucket.graded:
        return "no samples collected"
    needed = config.min_samples or max(1, bucket.wanted - allowed)
    if gated and bucket.graded < needed:
        return (
            f"only {bucket.graded} of {bucket.wanted} samples graded, {needed} are needed (lower"
            " num_samples, or set min_samples)"
        )
    return ""


def _bounds_failures_of_all(config: RunConfig) -> bool:
    """Whether there is a budget for all samples, within which the parts need none of their own."""
    return any(b.bucket == "all" and b.metric == "failure_rate" for b in config.bounds)
