"""From buckets to a verdict. Pure; no I/O.

A bucket is inconclusive when more of its requests were lost than ``max_failures`` allows, or
when nothing of it was graded: a lost request is evidence neither for nor against the model. With a
threshold it is inconclusive too when fewer samples were graded than asked for (``min_samples``
lowers that): a mean over two samples is no verdict about forty. It fails when its match ratio lies
strictly below threshold - tolerance, which is vLLM's rule. One failed bucket fails the run;
otherwise one inconclusive bucket makes it inconclusive, whether or not a threshold speaks of it;
and so does a cell that the configuration names and of which no row fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.errors import CellMissing, ExitCode
from mrcr_action.result import Bucket, Check, Conclusion, Verdict
from mrcr_action.stats import coverage_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.config import RunConfig
    from mrcr_action.coverage import Coverage
    from mrcr_action.plan import Plan

EXIT_CODES: dict[Conclusion, ExitCode] = {
    "pass": ExitCode.PASS,
    "fail": ExitCode.FAIL,
    "inconclusive": ExitCode.CANNOT_JUDGE,
}


def judge(
    buckets: Sequence[Bucket], config: RunConfig, coverage: Sequence[Coverage] = ()
) -> Verdict:
    """Check every bucket against the configuration, and whether every cell that it names was asked.

    Args:
        buckets: what was measured.
        config: thresholds and budgets.
        coverage: the cells of the run.
    """
    checks = tuple(_check(bucket, config) for bucket in buckets)
    checks += tuple(_missing(cell) for cell in coverage if cell.is_missing)
    failed = [c.message for c in checks if c.state == "fail"]
    unclear = [c.message for c in checks if c.state == "inconclusive"]
    if failed:
        return Verdict(
            conclusion="fail",
            summary="MRCR thresholds failed: " + "; ".join(failed),
            checks=checks,
        )
    if unclear:
        return Verdict(
            conclusion="inconclusive",
            summary="MRCR is inconclusive: " + "; ".join(unclear),
            checks=checks,
        )
    gated = [c for c in checks if c.state == "pass"]
    if not gated:
        summary = "MRCR measured; no threshold was set, so nothing was gated"
    else:
        summary = "MRCR passed: " + "; ".join(c.message for c in gated)
    return Verdict(conclusion="pass", summary=summary, checks=checks)


def check_cells(plan: Plan) -> None:
    """See that every cell that the configuration names has a row to ask.

    Raises:
        CellMissing: one has none.
    """
    missing = [cell.why_missing for cell in coverage_of(plan, ()) if cell.is_missing]
    if missing:
        raise CellMissing(
            "; ".join(missing),
            hint="Leave the cell out with exclude, or name other bins. `mrcr plan` shows what there"
            " is.",
        )


def threshold_of(bucket: Bucket, config: RunConfig) -> float | None:
    """The expected match ratio of a bucket, if the configuration names one."""
    threshold = config.match_ratio_threshold
    if isinstance(threshold, dict):
        return None if bucket.n_needles is None else threshold.get(bucket.n_needles)
    return threshold if bucket.n_needles is None else None


def toothless(config: RunConfig) -> list[str]:
    """A sentence for each threshold that no server can miss."""
    threshold = config.match_ratio_threshold
    named = threshold if isinstance(threshold, dict) else {None: threshold}
    return [
        f"The threshold {expected:g} with a tolerance of {config.tolerance:g} can never be missed"
        + (f" ({n} needles)." if n else ".")
        for n, expected in named.items()
        if expected is not None and expected <= config.tolerance
    ]


def _check(bucket: Bucket, config: RunConfig) -> Check:
    name = "match_ratio" if bucket.n_needles is None else f"match_ratio_{bucket.name}"
    expected = threshold_of(bucket, config)
    measured = bucket.match_ratio(config.protocol)
    tolerance = config.tolerance if expected is not None else None

    def check(state: str, message: str) -> Check:
        return Check(
            bucket=bucket.name,
            state=state,  # type: ignore[arg-type]
            message=f"{name}: {message}",
            measured=measured,
            threshold=expected,
            tolerance=tolerance,
        )

    lack = _lack_of_evidence(bucket, config, gated=expected is not None)
    if lack:
        return check("inconclusive", lack)
    if measured is None:
        return check("measured", "no samples were asked for")
    if expected is None:
        return check("measured", f"{measured:.4f}")
    if measured < expected - config.tolerance:
        return check("fail", f"{measured:.4f} < {expected:.4f} - {config.tolerance:.4f}")
    return check("pass", f"{measured:.4f} >= {expected:.4f} - {config.tolerance:.4f}")


def _missing(cell: Coverage) -> Check:
    return Check(
        bucket=cell.name,
        state="inconclusive",
        message=f"{cell.why_missing} (exclude leaves the cell out)",
    )


def _lack_of_evidence(bucket: Bucket, config: RunConfig, *, gated: bool) -> str:
    """Why nothing can be said about a bucket; empty when something can."""
    if bucket.lost > config.max_failures:
        return (
            f"{bucket.lost} of {bucket.asked} requests were lost"
            f" ({bucket.failed} failed, {bucket.rejected} refused; max_failures is"
            f" {config.max_failures})"
        )
    if bucket.wanted and not bucket.graded:
        return "no samples collected"
    needed = config.min_samples or max(1, bucket.wanted - config.max_failures)
    if gated and bucket.graded < needed:
        return (
            f"only {bucket.graded} of {bucket.wanted} samples graded, {needed} are needed (lower"
            " num_samples, or set min_samples)"
        )
    return ""
