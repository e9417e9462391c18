"""From buckets to a verdict. Pure; no I/O.

Every bucket is checked against its thresholds (`mrcr_action.checks`). One failed bucket fails the
run; otherwise one inconclusive bucket makes it inconclusive, whether or not a threshold speaks of
it; and so does a cell that the configuration names and of which no row fits. A baseline
(`mrcr_action.baseline`) counts like a threshold. Cells without a threshold have no part in the
verdict: their samples are those of their needle count.

Each further round of the same samples (`mrcr_action.rounds`) is held to the same thresholds;
whether it differs from the first one is decided elsewhere (`mrcr_action.rounds.stability`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.checks import checks_of, label
from mrcr_action.errors import CellMissing, ExitCode
from mrcr_action.result import Check, Verdict
from mrcr_action.stats import coverage_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.config import RunConfig
    from mrcr_action.config.thresholds import Bound
    from mrcr_action.coverage import Coverage
    from mrcr_action.plan import Plan
    from mrcr_action.result import Bucket, Conclusion, State

EXIT_CODES: dict[Conclusion, ExitCode] = {
    "pass": ExitCode.PASS,
    "fail": ExitCode.FAIL,
    "inconclusive": ExitCode.CANNOT_JUDGE,
    "measured": ExitCode.PASS,
}

MOST_NAMED = 6
"""Thresholds that were reached which one sentence lists."""


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
    checks = [check for bucket in buckets for check in checks_of(bucket, config)]
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
        message=f"{label(bound.metric, bound.bucket)}: nothing of it was asked",
        threshold=bound.bound,
    )
