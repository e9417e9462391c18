"""The scores of a healthy server, by round, sample and repetition; what will not do. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from mrcr_action.bins import bin_of
from mrcr_action.errors import CannotJudge

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from mrcr_action.calibration.servers import Numbers
    from mrcr_action.result import Record, Result
    from mrcr_action.rounds import Round

Kind = Literal["all", "needles", "cells"]
"""Buckets of which kind have a threshold."""

KINDS: tuple[Kind, ...] = get_args(Kind)

FEWEST_IN_ALL = 10
"""Samples without which nothing is calibrated."""

FEWEST = 5
"""Samples of a bucket with a threshold; with fewer, one answer moves its mean by more than 0.2."""


@dataclass(frozen=True, kw_only=True)
class Scores:
    """What a healthy server scored."""

    rounds: dict[str, Numbers]
    """By name of the first repetition, such as ``cold``: a row a sample, a column a repetition."""
    members: dict[str, Numbers]
    """By bucket: 1 for a sample that belongs to it, 0 for the others."""
    thin: dict[str, int]
    """Samples of the buckets that have too few for a threshold."""

    @property
    def repeats(self) -> int:
        """Repetitions of each round."""
        return int(next(iter(self.rounds.values())).shape[1])

    def means(self, bucket: str) -> Numbers:
        """The bucket's mean in every repetition of every round."""
        chosen = self.members[bucket] > 0
        return np.concatenate([seen[chosen].mean(axis=0) for seen in self.rounds.values()])


def scores_of(result: Result, kinds: Collection[Kind]) -> Scores:
    """The scores in the result of a run with repetitions.

    Args:
        result: of a healthy server.
        kinds: of which buckets thresholds are wanted.

    Raises:
        CannotJudge: the run was not healthy, or tells too little; says what and what to do.
    """
    check_healthy(result)
    assert result.plan is not None
    gated = [round_ for round_ in result.plan.rounds if round_.has_same_samples]
    by_round: dict[str, dict[tuple[str, int], Record]] = {round_.name: {} for round_ in gated}
    for record in result.records:
        if record.pass_name in by_round:
            by_round[record.pass_name][record.shard, record.row] = record
    first = by_round[gated[0].name]
    rounds = {
        name: np.array(
            [[_ratio(by_round[r.name][key], result) for r in repetitions] for key in first]
        )
        for name, repetitions in _by_name(gated).items()
    }
    if not any(seen.any() for seen in rounds.values()):
        raise CannotJudge(
            "calibrate: every answer scored 0, so that there is nothing to fall below",
            hint="Look at the responses in samples.jsonl: does the model answer at all?",
        )
    members, thin = _members([*first.values()], result, kinds)
    return Scores(rounds=rounds, members=members, thin=thin)


def check_healthy(result: Result) -> None:
    """See that a run is one to measure others by.

    Raises:
        CannotJudge: it is not.
    """
    if result.problem is not None:
        raise CannotJudge(
            f"calibrate: the run did not come to its end: {result.problem.message}",
            hint=result.problem.hint,
            details=result.problem.details,
        )
    lost = [r for r in result.records if r.grade is None]
    if lost or result.plan is None:
        why = f", the first one since {lost[0].reason}" if lost and lost[0].reason else ""
        raise CannotJudge(
            f"calibrate: {len(lost)} of {len(result.records)} requests were lost{why}",
            hint="Thresholds are made from a server that answers everything: mend it, or leave"
            " the samples out.",
        )
    if result.verdict.conclusion != "pass":
        raise CannotJudge(
            f"calibrate: the server is not healthy: {result.verdict.summary}",
            hint="Calibrate on a server that does what the rest of the configuration wants.",
        )
    samples = sum(record.pass_name == result.plan.rounds[0].name for record in result.records)
    if samples < FEWEST_IN_ALL:
        raise CannotJudge(
            f"calibrate: {samples} samples are too few, {FEWEST_IN_ALL} are needed",
            hint="Ask for more with num_samples or samples_per_cell.",
        )


def _by_name(rounds: Sequence[Round]) -> dict[str, list[Round]]:
    """The repetitions of each round, by the name of the first."""
    found: dict[tuple[str, int], list[Round]] = {}
    for round_ in rounds:
        found.setdefault((round_.kind, round_.concurrency), []).append(round_)
    return {repetitions[0].name: repetitions for repetitions in found.values()}


def _ratio(record: Record, result: Result) -> float:
    assert record.grade is not None
    return record.grade.match_ratio(result.config.protocol)


def _members(
    samples: Sequence[Record], result: Result, kinds: Collection[Kind]
) -> tuple[dict[str, Numbers], dict[str, int]]:
    found: dict[str, list[bool]] = {}
    for bucket in result.buckets:
        kind: Kind = "cells" if bucket.bin else "all" if bucket.n_needles is None else "needles"
        if bucket.round is None and kind in kinds:
            found[bucket.name] = [
                bucket.n_needles in {None, sample.n_needles}
                and bucket.bin in {None, bin_of(sample.o200k_tokens)}
                for sample in samples
            ]
    counts = {name: sum(belongs) for name, belongs in found.items()}
    members = {
        name: np.array(belongs, dtype=np.float64)
        for name, belongs in found.items()
        if counts[name] >= FEWEST
    }
    if not members:
        raise CannotJudge(
            f"calibrate: no bucket of {', '.join(kinds)} has the {FEWEST} samples that are needed",
            hint="Ask for more samples, or calibrate larger buckets with --buckets all.",
        )
    thin = {name: n for name, n in counts.items() if 0 < n < FEWEST}
    return members, thin
