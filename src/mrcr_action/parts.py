"""A plan in parts, for several machines: which samples each asks, what it says of them. Pure.

The whole plan is made first, as without parts, then dealt out cell by cell. The parts are disjoint,
all of them together are the plan, and each holds the same number of every cell, give or take one.
Which part a sample belongs to depends on nothing but which samples there are: estimates of lengths,
which an earlier run may have refined on one machine alone, have no say in it.

(``shard`` is the word of the command line; in this program's modules, a shard is one of the files
of the dataset.)
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from mrcr_action.bins import bin_of
from mrcr_action.checks import checks_of
from mrcr_action.errors import UsageError
from mrcr_action.result import Part, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.config import RunConfig
    from mrcr_action.plan import Ask, Cell, Plan
    from mrcr_action.result import Bucket, Check

Key = tuple[str, str, int, str, int, int]
"""What makes an ask the one that it is, wherever in a plan it stands."""


def key_of(ask: Ask) -> Key:
    """Which ask it is: its round, its row, and how its prompt differs from the row's."""
    turn = -1 if ask.turn is None else ask.turn
    return ask.pass_name, ask.shard, ask.row, ask.sha256, turn, ask.padding


def identity_of(plan: Plan) -> str:
    """SHA-256 of what a plan asks, in hexadecimal; the order of the asks has no part in it."""
    text = json.dumps([plan.max_prompt_tokens, sorted(map(key_of, plan.asks))])
    return hashlib.sha256(text.encode()).hexdigest()


def split(plan: Plan, number: int, count: int) -> tuple[Part, Plan]:
    """One part of a plan: what it is, and a plan of its asks, which keep their places.

    A sample is asked in all its rounds by the same part: they are compared with each other.

    Args:
        plan: the whole of it.
        number: which part, from 1.
        count: of how many.

    Raises:
        UsageError: there are more parts than samples.
    """
    samples = sorted(plan.samples, key=_place)
    if count > len(samples):
        raise UsageError(
            f"shard: {number}/{count}: the plan has {len(samples)} samples only",
            hint="Choose fewer parts, or ask for more samples.",
        )
    own = {(ask.shard, ask.row) for ask in samples[number - 1 :: count]}
    asks = tuple(ask for ask in plan.asks if (ask.shard, ask.row) in own)
    first = [ask for ask in plan.samples if (ask.shard, ask.row) in own]
    quotas = Counter(ask.n_needles for ask in first)
    part = Part(number=number, count=count, plan_sha256=identity_of(plan), whole=plan)
    return part, msgspec.structs.replace(
        plan,
        asks=asks,
        quotas={n: quotas[n] for n in plan.quotas},
        cells=tuple(_cell(cell, first) for cell in plan.cells),
        rounds=tuple(r for r in plan.rounds if any(ask.pass_name == r.name for ask in asks)),
    )


def _place(ask: Ask) -> tuple[int, int, str, int]:
    """Where a sample stands when the samples are dealt out: beside those of its cell."""
    bin_ = bin_of(ask.o200k_tokens)
    return ask.n_needles, bin_.low if bin_ else -1, ask.shard, ask.row


def _cell(cell: Cell, samples: Sequence[Ask]) -> Cell:
    planned = sum(
        ask.n_needles == cell.n_needles and bin_of(ask.o200k_tokens) == cell.bin for ask in samples
    )
    # A cell of fewer samples than there are parts is not missing: another part has them.
    return msgspec.structs.replace(
        cell, planned=planned, requested=cell.requested and bool(planned or not cell.planned)
    )


def unjudged(part: Part, buckets: Sequence[Bucket], config: RunConfig) -> Verdict:
    """The verdict on a part that was asked to its end: none, as thresholds are of the whole plan.

    It is inconclusive where it is certain already that the whole run will be: too many of its
    requests were lost, or nothing came back at all.

    Args:
        part: which one.
        buckets: what was measured.
        config: thresholds and budgets, of the whole plan.
    """
    by_share = any(bound.metric == "failure_rate" for bound in config.bounds)
    free = msgspec.structs.replace(
        config,
        match_ratio_threshold=None,
        thresholds=None,
        min_samples=None,
        max_failures=sys.maxsize if by_share else config.max_failures,
    )
    checks = [_measured(check, bucket) for bucket in buckets for check in checks_of(bucket, free)]
    lacking = [check.message for check in checks if check.state == "inconclusive"]
    if lacking:
        return Verdict(
            conclusion="inconclusive",
            summary=f"MRCR is inconclusive: {part}: {'; '.join(dict.fromkeys(lacking))}",
            checks=tuple(checks),
        )
    return Verdict(
        conclusion="measured",
        summary=f"{str(part).capitalize()}: measured, judged by mrcr merge",
        checks=tuple(checks),
    )


def _measured(check: Check, bucket: Bucket) -> Check:
    """A check that nothing hangs on, unless it is of all samples: a part may lack some cell."""
    if check.state == "inconclusive" and bucket.n_needles is None and bucket.bin is None:
        return check
    return msgspec.structs.replace(check, state="measured")
