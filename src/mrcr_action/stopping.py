"""When enough is known: a verdict that no further answer can change. Pure; no I/O.

What is certain of a bucket is decided by the very checks that judge the run (`mrcr_action.checks`),
after each record, so that a run that stops here ends as it would have ended: failed, or without a
failed bucket. One thing is left to chance: requests that would have been lost, more of them than
the budget, would have made the whole run inconclusive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mrcr_action.bounds import interval_reach
from mrcr_action.checks import allowed_losses, bounds_of, checks_of
from mrcr_action.result import Stopped
from mrcr_action.stats import empty_buckets, filled, ratios_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mrcr_action.config import RunConfig
    from mrcr_action.plan import Plan
    from mrcr_action.result import Bucket, Record, Verdict

LOOKS = 50
"""How often the intervals of a bucket are looked at, at most: of 800 samples they take a second,
and the answers must not have to wait for that."""


class Stopping:
    """Told of every record, it says when no more need be asked."""

    def __init__(self, config: RunConfig, plan: Plan) -> None:
        """Begin with nothing known.

        Args:
            config: thresholds, budgets, and when to stop.
            plan: all that is to be asked.
        """
        import numpy as np  # noqa: F401 - now, rather than between two answers

        self._config = config
        bounded = {bound.bucket for bound in config.bounds}
        buckets = empty_buckets(plan.quotas, cells=plan.cells, plan=plan, bounded=bounded)
        self._buckets = {
            bucket.name: msgspec.structs.replace(bucket, skipped=sum(map(bucket.holds, plan.asks)))
            for bucket in buckets
            if bounds_of(bucket, config)
        }
        self._records: dict[str, list[Record]] = {name: [] for name in self._buckets}
        # What is compared when the run is over can fail it still.
        self._may_pass = (
            config.stop_when == "decided"
            and config.baseline is None
            and config.min_logit_margin is None
            and len(plan.rounds) == 1
        )
        self._open = {name for name, bucket in self._buckets.items() if bucket.skipped}
        self._failed = False

    @property
    def is_over(self) -> bool:
        """Whether the verdict is certain."""
        if self._config.stop_when == "never" or not self._buckets:
            return False
        return self._failed or (self._may_pass and not self._open)

    def add(self, record: Record) -> bool:
        """Take note of a record, and say whether the verdict is certain with it.

        Under ``decision: confident`` it may take a second or two.
        """
        for name, bucket in self._buckets.items():
            if not bucket.holds(record):
                continue
            own = self._records[name]
            own.append(record)
            if not self._is_due(bucket, len(own)):
                continue
            now = filled(bucket, own)
            now = msgspec.structs.replace(now, skipped=bucket.planned - len(own))
            checks = list(checks_of(with_reach(now, own, self._config), self._config))
            self._failed = self._failed or any(check.state == "fail" for check in checks)
            if not any(check.undecided for check in checks):
                self._open.discard(name)
        return self.is_over

    def _is_due(self, bucket: Bucket, count: int) -> bool:
        """Whether a bucket is looked at with so many records."""
        if self._config.decision != "confident" or count == bucket.planned:
            return True
        return count % max(1, bucket.planned // LOOKS) == 0


def with_reach(bucket: Bucket, records: Sequence[Record], config: RunConfig) -> Bucket:
    """A bucket with what its interval can become, where that is what decides.

    Args:
        bucket: filled with the records.
        records: all of them.
        config: how the bucket is decided.
    """
    bound = bounds_of(bucket, config).get("match_ratio")
    if config.decision != "confident" or bound is None or not bucket.skipped:
        return bucket
    as_point = msgspec.structs.replace(config, decision="point")
    if next(checks_of(bucket, as_point)).undecided:
        return bucket  # a mean that can still be on either side has an interval that can, too
    reached = interval_reach(
        ratios_of(records, config.protocol),
        bucket.skipped,
        allowed_losses(bucket, config) - bucket.lost,
    )
    return msgspec.structs.replace(bucket, interval_reach=reached)


def all_with_reach(
    buckets: Iterable[Bucket], records: Sequence[Record], config: RunConfig
) -> tuple[Bucket, ...]:
    """The same of every bucket of a run that has stopped."""
    return tuple(
        with_reach(bucket, [r for r in records if bucket.holds(r)], config) for bucket in buckets
    )


def stopped_early(verdict: Verdict, *, asked: int, planned: int) -> Stopped:
    """What a run that stopped says of that.

    Args:
        verdict: what was certain.
        asked: records that there are.
        planned: asks of the whole run.
    """
    missed = [c.message for c in verdict.checks if c.state == "fail" and c.is_of_threshold]
    why = "no threshold can be missed any more"
    if missed:
        further = f"; and {len(missed) - 1} more" if len(missed) > 1 else ""
        why = f"{missed[0]}{further}"
    elif verdict.conclusion == "inconclusive":
        why = "no further answer can change the verdict"
    return Stopped(why=why, asked=asked, planned=planned, skipped=planned - asked)
