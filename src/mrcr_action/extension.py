"""Whether a run asks for further samples, and a plan with them. Pure; no I/O.

More is asked as long as a match ratio is undecided, its interval holding threshold - tolerance,
until no cell of it has more rows, or ``max_samples_per_cell`` is reached. Nothing more is asked
once any check has failed, since then the run has, nor where something else, such as lost requests,
stands in the way of a verdict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mrcr_action.checks import threshold_of, undecided
from mrcr_action.config.thresholds import place_of
from mrcr_action.gate import judge
from mrcr_action.looks import cells_in, level_of
from mrcr_action.plan import Look
from mrcr_action.rounds import in_rounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.config import RunConfig
    from mrcr_action.plan import Ask, Cell, Plan
    from mrcr_action.result import Bucket

MOST_STEPS = 2
"""Steps of the schedule that a look may take at once: what an interval of few samples promises is
not worth more."""


class More(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted next."""

    buckets: tuple[str, ...]
    """Those that are undecided and can have more."""
    levels: dict[str, int]
    """Of every cell that is asked, by its name."""


def more_wanted(plan: Plan, buckets: Sequence[Bucket], config: RunConfig) -> More | None:
    """What to ask next; None where the run is over.

    Args:
        plan: what was asked.
        buckets: what came of it, without the rounds that are yet to come.
        config: the thresholds.
    """
    if not plan.schedule:
        return None
    unclear = [bucket for bucket in buckets if undecided(bucket, config)]
    names = {bucket.name for bucket in unclear}
    for check in judge(buckets, config).checks:
        is_open = check.metric == "match_ratio" and check.bucket in names
        if check.state == "fail" or (check.state == "inconclusive" and not is_open):
            return None
    levels = {cell.name: cell.level for cell in plan.cells if cell.planned}
    wanting = []
    for bucket in unclear:
        place = place_of(bucket.base or bucket.name)
        cells = cells_in(plan, place)
        level = level_of(plan, place)
        if level == plan.schedule[-1] or all(map(_is_exhausted, cells)):
            continue
        wanting.append(bucket.name)
        target = _next(plan.schedule, level, _needed(bucket, config) * level)
        for cell in cells:
            levels[cell.name] = max(levels[cell.name], target)
    return More(buckets=tuple(wanting), levels=levels) if wanting else None


def extended(
    plan: Plan, chosen: Plan, more: More, config: RunConfig
) -> tuple[Plan, tuple[Ask, ...]]:
    """A plan with further samples in all its rounds of whole samples, and what is new in it.

    Args:
        plan: what was asked.
        chosen: the same choice with more rows, each once.
        more: why.
        config: tells the rounds.
    """
    known = {(ask.shard, ask.row) for ask in plan.samples}
    fresh = [ask for ask in chosen.asks if (ask.shard, ask.row) not in known]
    asks = tuple(in_rounds(fresh, config, index=len(plan.asks)))
    looks = plan.looks
    if fresh:
        level = max(more.levels.values())
        looks = (*looks, Look(buckets=more.buckets, level=level, samples=len(fresh)))
    plan = msgspec.structs.replace(
        plan,
        asks=(*plan.asks, *asks),
        cells=chosen.cells,
        quotas=chosen.quotas,
        tokenized=chosen.tokenized,
        looks=looks,
    )
    return plan, asks


def _needed(bucket: Bucket, config: RunConfig) -> float:
    """How many times as many samples might do: a width falls with the root of their number."""
    expected, ratio, interval = (
        threshold_of(bucket, config),
        bucket.match_ratio(config.protocol),
        bucket.interval,
    )
    assert expected is not None
    assert ratio is not None
    assert interval is not None
    needed = expected - config.tolerance
    distance = abs(ratio - needed)
    arm = ratio - interval.low if ratio >= needed else interval.high - ratio
    return (arm / distance) ** 2 if distance else float("inf")


def _next(schedule: Sequence[int], level: int, wanted: float) -> int:
    """The first step that might do, but no more than a few at once."""
    steps = [step for step in schedule if step > level][:MOST_STEPS]
    return next((step for step in steps if step >= wanted), steps[-1])


def _is_exhausted(cell: Cell) -> bool:
    """Whether a cell has no further row that fits."""
    return cell.level >= cell.rows or cell.planned >= cell.fitting
