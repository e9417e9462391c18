"""Two results of one plan, sample by sample: what changed, and whether it is a regression. Pure.

Only samples that were graded in both are compared. Those that A graded and B lost are counted and
named; more of them than B's own budget (``max_failures``) keep the verdict from being green, since
a server that cannot answer is not as good as before. Nor is it green when nothing of a cell that A
graded is graded in B, when A graded next to nothing of what B did, or when the mean of all samples
fell by more than is allowed and that may be chance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from mrcr_action.bins import known_bin
from mrcr_action.comparison.comparable import NAMES, check_comparable, notes_on
from mrcr_action.comparison.document import (
    BucketChange,
    Change,
    Comparison,
    Flip,
    RateChange,
    Share,
    Side,
)
from mrcr_action.comparison.paired import change_of, holm
from mrcr_action.comparison.pairs import graded_in, shared_samples
from mrcr_action.errors import ExitCode, UsageError
from mrcr_action.intervals import FEWEST, share_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mrcr_action.comparison.comparable import Names
    from mrcr_action.comparison.document import Comparing, State
    from mrcr_action.comparison.pairs import Pair, Samples, SharedSamples
    from mrcr_action.config import RunConfig
    from mrcr_action.grade import Grade
    from mrcr_action.result import Record, Result

SIGNIFICANT = 0.05
"""A corrected p below this is not taken for chance."""

FEWEST_CHANGED = 5
"""Changed samples without which p cannot be below 0.05: of 4, all for the worse, it is 1 / 16."""

FLIP = 0.1
"""Least change of a ratio that makes a sample one of the flipped. A busy server adds up in another
order, which can rewrite a word or two of an answer and costs less: five words are 0.1 by openai's
ratio. Another needle costs 0.7 and more by either protocol."""

BUCKETS_TOLD = 5
"""In the verdict's line; the table has them all."""

ROUNDING = 1e-9
"""So that 0.9 to 0.8 is a change of 0.1."""

EXIT_CODES: dict[Comparing, ExitCode] = {
    "regression": ExitCode.FAIL,
    "no regression": ExitCode.PASS,
    "inconclusive": ExitCode.CANNOT_JUDGE,
}


def compare(
    a: Result,
    b: Result,
    *,
    paths: tuple[str, str],
    max_regression: float | None = None,
    names: Names = NAMES,
) -> Comparison:
    """Compare two results.

    Args:
        a: before.
        b: after.
        paths: where they were read, for people.
        max_regression: by how much a bucket's mean may fall (a ratio, 0 to 1); None leaves the
            decision to the test of chance.
        names: what sentences call the two.

    Raises:
        UsageError: the two cannot be compared, by their settings or since no sample is in both; or
            the number is no ratio.
        CannotJudge: no sample was graded in both.
        DataError: a result holds a sample twice, or a ratio that is none.
    """
    if max_regression is not None and not 0 <= max_regression <= 1:
        raise UsageError(
            f"--max-regression {max_regression:g}: not a ratio", hint="Give a number from 0 to 1."
        )
    check_comparable(a, b, names)
    shared = shared_samples(a, b, names)
    allowed = b.config.tolerance if max_regression is None else max_regression
    by_chance = max_regression is None
    buckets, tests = _buckets(shared.graded, allowed, by_chance=by_chance)
    conclusion, summary = _conclude(
        buckets,
        "" if by_chance else f" of more than {allowed:g}",
        missed=shared.missed,
        budget=b.config.max_failures,
        blind=_blind(shared, b, names),
        names=names,
        lost="lost" if b.stopped is None else "not asked, or lost,",
    )
    flips = _flips(shared.graded)
    return Comparison(
        a=side_of(a, paths[0], shared.a),
        b=side_of(b, paths[1], shared.b),
        protocol=a.config.protocol,
        max_regression=max_regression,
        allowed=allowed,
        conclusion=conclusion,
        summary=summary,
        compared=len(shared.graded),
        only_in_a=len(shared.a.keys() - shared.b.keys()),
        only_in_b=len(shared.b.keys() - shared.a.keys()),
        buckets=buckets,
        tests=tests,
        rates=_rates(shared),
        exact_lost=sum(p.grade_a.exact and not p.grade_b.exact for p in shared.graded),
        exact_gained=sum(p.grade_b.exact and not p.grade_a.exact for p in shared.graded),
        flips=flips,
        flipped_down=sum(flip.change < 0 for flip in flips),
        flipped_up=sum(flip.change > 0 for flip in flips),
        lost=shared.lost,
        notes=(
            *notes_on(a, b, names),
            *shared.notes(names),
            *_limits(buckets, allowed, by_chance=by_chance),
        ),
    )


def side_of(result: Result, path: str, samples: Samples) -> Side:
    """What is said of one of the two."""
    return Side(
        path=path,
        name=result.name,
        model=result.model,
        server_version=result.server.version,
        tool_version=result.tool_version,
        started=result.started,
        planned=len(samples),
        graded=graded_in(samples),
    )


def _buckets(
    pairs: Sequence[Pair], allowed: float, *, by_chance: bool
) -> tuple[tuple[BucketChange, ...], int]:
    """What became of all samples, every needle count and every cell.

    Returns:
        The buckets, and how many tests of chance they come to. A bucket with the very samples of
        another is no other test. Nor is one where p cannot be below 0.05 whatever the signs: as
        signs decide nothing about which these are, leaving them out lets no more pass by chance
        (Tarone, Biometrics 46, 1990).
    """
    members: dict[str, list[int]] = {"all": [*range(len(pairs))]}
    needles = {n: f"n{n}" for n in sorted({pair.a.n_needles for pair in pairs})}
    for n, name in needles.items():
        members[name] = [i for i, pair in enumerate(pairs) if pair.a.n_needles == n]
    by_length = sorted(range(len(pairs)), key=lambda i: pairs[i].a.o200k_tokens)
    for n in needles:
        for i in by_length:
            cell = pairs[i].cell
            if pairs[i].a.n_needles == n and cell is not None:
                members.setdefault(cell, []).append(i)
    # The cells of a needle count, or it and all samples, may be the same: one question, one test.
    changes: dict[frozenset[int], Change] = {}
    for own in members.values():
        if (same := frozenset(own)) not in changes:
            changes[same] = change_of([pairs[i].ratios for i in own])
    tested = [same for same, change in changes.items() if change.changed >= FEWEST_CHANGED]
    corrected = dict(zip(tested, holm([changes[same].p_lower for same in tested]), strict=True))
    found = []
    for name, own in members.items():
        change, p = changes[frozenset(own)], corrected.get(frozenset(own))
        found.append(
            BucketChange(
                **msgspec.structs.asdict(change),
                name=name,
                n_needles=None if name == "all" else pairs[own[0]].a.n_needles,
                p_corrected=p,
                state=_state(
                    change, p, allowed, by_chance=by_chance, overall=len(own) == len(pairs)
                ),
            )
        )
    return tuple(found), len(tested)


def _state(
    change: Change, p: float | None, allowed: float, *, by_chance: bool, overall: bool
) -> State:
    fell = change.difference < -allowed - ROUNDING
    if by_chance:
        regression = p is not None and p < SIGNIFICANT and change.difference < 0
    else:
        # Of many intervals one misses 0 sooner or later, which p knows. All samples are one.
        likely = not overall if p is None else p >= SIGNIFICANT
        sure = change.interval is not None and change.interval.excludes_zero and not likely
        regression = fell and sure
    if regression:
        return "regression"
    return "unclear" if fell else "quiet"


def _conclude(
    buckets: Sequence[BucketChange],
    limit: str,
    *,
    missed: int,
    budget: int,
    blind: str,
    names: Names,
    lost: str,
) -> tuple[Comparing, str]:
    """The verdict, and a line about it.

    ``limit`` is how much was allowed, and ``lost`` what became of samples that B did not grade, in
    words.
    """
    overall = buckets[0]
    worse = [bucket for bucket in buckets if bucket.state == "regression"]
    if worse:
        told = "; ".join(map(_told, worse[:BUCKETS_TOLD]))
        more = f"; and {len(worse) - BUCKETS_TOLD} more" if len(worse) > BUCKETS_TOLD else ""
        return "regression", f"Regression{limit}: {told}{more}"
    if missed > budget:
        summary = (
            f"No verdict: {missed} of {missed + overall.n} samples graded in {names[0]} were {lost}"
            f" in {names[1]} (its max_failures is {budget}); no regression{limit} among the others"
        )
        return "inconclusive", summary
    if blind:
        return "inconclusive", f"No verdict: {blind}; no regression{limit} among the others"
    if overall.state == "unclear":
        summary = (
            f"No verdict: {_told(overall)}, which may be chance: {overall.changed} of"
            f" {overall.n} samples changed"
        )
        return "inconclusive", summary
    if not overall.changed:
        return "no regression", f"No regression: no sample changed ({overall.n} compared)"
    summary = (
        f"No regression{limit}: {overall.mean_a:.4f} to {overall.mean_b:.4f} over {overall.n}"
        f" samples, of which {overall.changed} changed"
    )
    return "no regression", summary


def _blind(shared: SharedSamples, b: Result, names: Names) -> str:
    """What the comparison cannot see, where that is too much for a verdict; else nothing.

    A server with a shorter window than before, for one, is asked nothing of what it lost.
    """
    gaps = [cell for cell in shared.gaps if not _is_left_out(cell, b.config)]
    if gaps:
        more = f" and {len(gaps) - BUCKETS_TOLD} more" if len(gaps) > BUCKETS_TOLD else ""
        told = f"{', '.join(gaps[:BUCKETS_TOLD])}{more}"
        return f"nothing of {told}, graded in {names[0]}, is graded in {names[1]}"
    graded = graded_in(shared.b)
    if 2 * len(shared.graded) < graded and 2 * len(shared.graded) < len(shared.asked):
        known = f"{len(shared.graded)} of {graded} samples graded in {names[1]}"
        return f"only {known} are graded in {names[0]}"
    return ""


def _is_left_out(cell: str, config: RunConfig) -> bool:
    """Whether a configuration leaves a cell out on purpose."""
    n, _, own = cell.partition("/")
    if config.bins is not None and own not in map(str, map(known_bin, config.bins)):
        return True
    for left_out in config.exclude:
        needles, slash, name = left_out.rpartition("/")
        if str(known_bin(name)) == own and (not slash or needles == n):
            return True
    return False


def _told(bucket: BucketChange) -> str:
    name = "all samples" if bucket.n_needles is None else bucket.name
    p = "" if bucket.p_corrected is None else f", p {bucket.p_corrected:.2g}"
    return (
        f"{name} fell by {-bucket.difference:.4f} ({bucket.mean_a:.4f} to {bucket.mean_b:.4f}{p})"
    )


def _rates(shared: SharedSamples) -> tuple[RateChange, ...]:
    pairs = shared.graded

    def of_pairs(
        name: Literal["exact", "nonce", "truncated"], hit: Callable[[Record, Grade], bool]
    ) -> RateChange:
        a = sum(hit(pair.a, pair.grade_a) for pair in pairs)
        b = sum(hit(pair.b, pair.grade_b) for pair in pairs)
        return RateChange(name=name, a=_share(a, len(pairs)), b=_share(b, len(pairs)))

    asked = len(shared.asked)
    lost_a, lost_b = (
        sum(record is None or record.grade is None for record in side)
        for side in zip(*shared.asked, strict=True)
    )
    return (
        of_pairs("exact", lambda _, grade: grade.exact),
        of_pairs("nonce", lambda _, grade: grade.nonce_hit),
        of_pairs("truncated", lambda record, _: record.outcome == "truncated"),
        RateChange(name="lost", a=_share(lost_a, asked), b=_share(lost_b, asked)),
    )


def _share(hits: int, n: int) -> Share:
    return Share(hits=hits, n=n, interval=share_interval(hits, n))


def _flips(pairs: Sequence[Pair]) -> tuple[Flip, ...]:
    flips = [
        Flip(
            shard=pair.a.shard,
            row=pair.a.row,
            sha256=pair.a.sha256,
            pass_name=pair.a.pass_name,
            n_needles=pair.a.n_needles,
            o200k_tokens=pair.a.o200k_tokens,
            cell=pair.cell,
            ratio_a=pair.ratios[0],
            ratio_b=pair.ratios[1],
            exact_a=pair.grade_a.exact,
            exact_b=pair.grade_b.exact,
            nonce_a=pair.grade_a.nonce_hit,
            nonce_b=pair.grade_b.nonce_hit,
            outcome_a=pair.a.outcome,
            outcome_b=pair.b.outcome,
        )
        for pair in pairs
        if abs(pair.ratios[1] - pair.ratios[0]) >= FLIP - ROUNDING
    ]
    return tuple(sorted(flips, key=lambda flip: (flip.change, flip.shard, flip.row)))


def _limits(buckets: Sequence[BucketChange], allowed: float, *, by_chance: bool) -> list[str]:
    """What the numbers of samples leave unseen, each a sentence."""
    notes = []
    if unclear := [bucket.name for bucket in buckets if bucket.state == "unclear"]:
        notes.append(f"Fell by more than {allowed:g}, which may be chance: {', '.join(unclear)}.")
    few = sum(0 < bucket.changed < FEWEST_CHANGED for bucket in buckets)
    if by_chance and few:
        told = (
            f"{few} of {len(buckets)} buckets have fewer than {FEWEST_CHANGED} changed samples,"
            " which cannot be told from chance, and count only as part of larger ones."
        )
        notes.append(told)
    if not by_chance and any(bucket.n < FEWEST for bucket in buckets):
        notes.append(f"Buckets of fewer than {FEWEST} samples have no interval.")
    return notes
