"""One level for all buckets, at which a healthy server seldom fails any. Pure; no I/O."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from mrcr_action.calibration.servers import Evidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.calibration.servers import Numbers

SERVERS = 400
RUNS = 500
"""Of each server; 200,000 in all."""

DOUBTED = 0.02
"""Share of the possible servers that may fail more often than is wanted."""

SEED = 0
"""The same answers have the same thresholds on every machine."""

DECIMALS = 10_000
_SLACK = 1e-9
"""A mean may miss itself by its last bit."""


def thresholds_for(
    rounds: Sequence[Numbers],
    members: Numbers,
    *,
    false_alarm: float,
    repeats: int = 1,
    servers: int = SERVERS,
    runs: int = RUNS,
) -> list[float]:
    """The threshold of every bucket: below it lies what a healthy server has once in a long time.

    Args:
        rounds: of every round that is gated, scores with a row a sample and a column a repetition.
        members: a row a bucket, 1 where a sample belongs to it and 0 elsewhere.
        false_alarm: how likely one run of a healthy server may be below any threshold.
        repeats: how often a run asks each of the rounds.
        servers: how many possible servers are drawn.
        runs: how many runs of each.

    Each bucket's least mean in any round is looked at, in runs of possible servers
    (`mrcr_action.calibration.servers`). All thresholds lie at the same rank among the means of
    their bucket, so that no bucket is more likely to fail than another: the highest at which at
    most half of ``false_alarm`` of all runs are below any, and at most `DOUBTED` of the servers
    are so in more than ``false_alarm`` of theirs. Then they are rounded down to four decimals.
    """
    random = np.random.default_rng(SEED)
    evidence = [Evidence(scores) for scores in rounds]
    shares = (members / members.sum(axis=1, keepdims=True)).T
    means = np.full((servers, runs, len(members)), np.inf)
    for own in means:
        for one in evidence:
            server = one.server(random)
            for _ in range(repeats):
                np.minimum(own, server.runs(runs, random) @ shares, out=own)
    flat = means.reshape(-1, len(members))
    ordered = np.sort(flat, axis=0)
    # A run is below the threshold of some bucket from this rank on.
    first = np.min(
        [
            np.searchsorted(ordered[:, bucket], flat[:, bucket] + _SLACK, side="right")
            for bucket in range(len(members))
        ],
        axis=0,
    )
    rank = min(_rank_of_all(first, false_alarm), _rank_of_each(first, servers, false_alarm))
    return [_down(float(value)) for value in ordered[rank]]


def _rank_of_all(first: np.ndarray, false_alarm: float) -> int:
    """The highest rank at which at most half of the wanted share of all runs fails."""
    return max(0, int(np.sort(first)[math.floor(first.size * false_alarm / 2)]) - 1)


def _rank_of_each(first: np.ndarray, servers: int, false_alarm: float) -> int:
    """The highest rank at which hardly a server fails in more than the wanted share of its runs."""
    by_server = np.sort(first.reshape(servers, -1), axis=1)
    bound = by_server[:, math.floor(by_server.shape[1] * false_alarm)]
    return max(0, int(np.sort(bound)[math.floor(servers * DOUBTED)]) - 1)


def _down(value: float) -> float:
    return max(0, math.floor((value - _SLACK) * DECIMALS)) / DECIMALS
