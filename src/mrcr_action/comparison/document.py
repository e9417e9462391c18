"""The document about two results: what ``mrcr compare --json`` prints, and the reports render."""

from __future__ import annotations

from typing import Literal

import msgspec

from mrcr_action.grade import Outcome
from mrcr_action.intervals import Interval

COMPARISON_VERSION = 1
"""A field may be added within a version, never renamed or removed."""

State = Literal["regression", "unclear", "quiet"]
Comparing = Literal["regression", "no regression", "inconclusive"]
Fate = Outcome | Literal["not asked"]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What became of some samples from A to B."""

    n: int
    changed: int
    """Samples whose two values differ."""
    mean_a: float
    mean_b: float
    difference: float
    """Mean of B less A over the samples: below 0, B is worse."""
    interval: Interval | None
    """Of the difference; None for too few samples (`mrcr_action.intervals.FEWEST`)."""
    p_lower: float
    """One-sided: chance of a difference as low as this or lower, were neither run the better."""
    p_two_sided: float
    """The same for one as far from 0, in either direction."""


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two results."""

    path: str
    name: str
    model: str | None
    server_version: str | None
    tool_version: str
    started: str
    """UTC, ISO 8601."""
    planned: int
    graded: int


class BucketChange(Change, frozen=True, kw_only=True):
    """What became of the samples of one bucket."""

    name: str
    """``all``, a needle count such as ``n2``, or a cell such as ``n2/8K-16K``."""
    n_needles: int | None
    p_corrected: float | None
    """``p_lower``, by Holm over the buckets that have one; None where so few samples changed that
    it could not be below 0.05."""
    state: State
    """``unclear``: fell by more than ``allowed``, and it may be chance."""


class RoundChange(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between the first round of a run and another one."""

    name: str
    """Such as ``warm``."""
    kind: str
    asked: int
    """Requests of the round that were sent."""
    change: Change | None
    """Of the gated match ratio, over the samples graded in both; None without any."""
    differing: int
    """Of these, answers that differ in any character."""
    comparable: int
    """Of these, answers of which both texts are known."""
    p_corrected: float | None
    """``change.p_lower``, by Holm over the rounds; None without a change."""
    cached: int | None = None
    """Answers of which a quarter of the prompt, or more, came from the prefix cache; None if not
    known."""
    cacheable: int = 0
    """Answers whose prompt is long enough for that, and of which that can be known."""
    cached_share: float | None = None
    """Of the tokens of all prompts that are meant to come from the cache, those that did, by the
    server's counters, where it does not tell of each answer."""


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """So many of so many."""

    hits: int
    n: int
    interval: Interval | None
    """Clopper and Pearson's; None of nothing."""


class RateChange(msgspec.Struct, frozen=True, kw_only=True):
    """A share of samples in A and in B."""

    name: Literal["exact", "nonce", "truncated", "lost"]
    """``lost`` (refused, failed or not asked) is of the samples of both plans, the others of those
    graded in both."""
    a: Share
    b: Share


class Flip(msgspec.Struct, frozen=True, kw_only=True):
    """A sample whose ratio changed much."""

    shard: str
    row: int
    sha256: str
    pass_name: str
    n_needles: int
    o200k_tokens: int
    cell: str | None
    """None beyond the longest bin."""
    ratio_a: float
    ratio_b: float
    exact_a: bool
    exact_b: bool
    nonce_a: bool
    nonce_b: bool
    outcome_a: Outcome
    outcome_b: Outcome

    @property
    def change(self) -> float:
        """Below 0, B is worse."""
        return self.ratio_b - self.ratio_a


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """A sample of both plans that is not graded in both."""

    shard: str
    row: int
    sha256: str
    pass_name: str
    outcome_a: Fate
    outcome_b: Fate
    reason: str
    """Why it was lost in B, or if it was not, in A, in the server's or the network's words."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that two results say of each other."""

    schema_version: int = COMPARISON_VERSION
    a: Side
    b: Side
    protocol: str
    """Whose ratios are compared."""
    max_regression: float | None
    """By how much a mean may fall, as it was given."""
    allowed: float
    """The same, or without it, B's own ``tolerance``: a larger fall that may be chance is unclear,
    and of all samples, no verdict."""
    conclusion: Comparing
    summary: str
    """One line for a person."""
    compared: int
    """Samples graded in both."""
    only_in_a: int
    """Samples that B did not plan."""
    only_in_b: int
    buckets: tuple[BucketChange, ...]
    tests: int
    """Buckets, each with other samples, that p is corrected for."""
    rates: tuple[RateChange, ...]
    exact_lost: int
    """Samples answered exactly in A and not in B, however little the ratio changed."""
    exact_gained: int
    flips: tuple[Flip, ...]
    """Those that fell most first, then those that rose."""
    flipped_down: int = 0
    """How many samples flipped for the worse, also where ``flips`` does not list them all."""
    flipped_up: int = 0
    lost: tuple[Lost, ...]
    notes: tuple[str, ...]

    @property
    def changed(self) -> int:
        """Samples with another ratio in B than in A."""
        return self.buckets[0].changed


class Against(msgspec.Struct, frozen=True, kw_only=True):
    """The baseline of a run, and what changed since."""

    baseline: Side
    comparison: Comparison | None = None
    """``a`` is the baseline and ``b`` the run; the first of its flips. None where the two could
    not be compared."""
    problem: str = ""
    """Why not, in a sentence or two."""
