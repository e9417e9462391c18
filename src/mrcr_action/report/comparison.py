"""What ``mrcr compare`` prints."""

from __future__ import annotations

import sys
from collections import Counter
from typing import IO, TYPE_CHECKING

from mrcr_action.report.console import Printer
from mrcr_action.report.rows import number
from mrcr_action.report.text import one_line

if TYPE_CHECKING:
    from mrcr_action.comparison.document import (
        BucketChange,
        Comparing,
        Comparison,
        Flip,
        RateChange,
        Share,
        Side,
        State,
    )
    from mrcr_action.intervals import Interval

FLIPS_SHOWN = 10

SIDES = ("A", "B")
"""What the columns of the two results are called."""

MARKS: dict[State, str] = {"regression": "✗ WORSE", "unclear": "? unclear", "quiet": "·"}
"""Words and signs, so that no table depends on colour."""

COLOURS: dict[Comparing, str] = {
    "regression": "red",
    "no regression": "green",
    "inconclusive": "yellow",
}


def print_comparison(comparison: Comparison, stream: IO[str] | None = None) -> None:
    """Print the two sides, what changed, and the verdict."""
    say = Printer(stream or sys.stdout)
    say(f"A: {_side(comparison.a)}")
    say(f"B: {_side(comparison.b)}")
    say(
        f"{comparison.compared} samples are graded in both; protocol"
        f" {one_line(comparison.protocol)}, change is B less A"
    )
    say.table(bucket_table(comparison))
    say.table(rate_table(comparison))
    for line in (*exact_lines(comparison), *lost_lines(comparison)):
        say(line)
    if comparison.flips:
        say(flips_title(comparison))
        say.table(flip_table(comparison))
        if (rest := len(comparison.flips) - FLIPS_SHOWN) > 0:
            say(f"and {rest} more, which --json lists")
    for note in comparison.notes:
        say(f"note: {one_line(note, 1_000)}")
    say(one_line(comparison.summary, 2_000), colour=COLOURS[comparison.conclusion])


def bucket_table(comparison: Comparison, sides: tuple[str, str] = SIDES) -> list[tuple[str, ...]]:
    """A header and a row for each bucket; every cell is made here, none is foreign.

    ``changed`` of so many samples graded in both; mean ratios; ``p`` is one-sided, for a fall, and
    corrected for the number of buckets.
    """
    head = ("bucket", "verdict", "changed", *sides, "change", "95 % interval", "p")
    return [head, *map(_bucket, comparison.buckets)]


def _bucket(bucket: BucketChange) -> tuple[str, ...]:
    return (
        _title(bucket),
        MARKS[bucket.state],
        f"{bucket.changed}/{bucket.n}",
        number(bucket.mean_a),
        number(bucket.mean_b),
        signed(bucket.difference),
        _change_interval(bucket.interval),
        chance(bucket.p_corrected),
    )


def _title(bucket: BucketChange) -> str:
    if bucket.n_needles is None:
        return "all samples"
    return bucket.name if "/" in bucket.name else f"{bucket.n_needles} needles"


def rate_table(comparison: Comparison, sides: tuple[str, str] = SIDES) -> list[tuple[str, ...]]:
    """A header and a row for each share; every cell is made here, none is foreign."""
    head = ("share", sides[0], "95 % interval", sides[1], "95 % interval")
    return [head, *map(_rate, comparison.rates)]


def _rate(rate: RateChange) -> tuple[str, ...]:
    return (rate.name, *_share(rate.a), *_share(rate.b))


def _share(share: Share) -> tuple[str, str]:
    interval = share.interval
    ends = "–" if interval is None else f"{interval.low:.3f}…{interval.high:.3f}"
    return f"{share.hits}/{share.n}", ends


def flips_title(comparison: Comparison) -> str:
    """How many samples changed much, and in which direction."""
    worse, better = comparison.flipped_down, comparison.flipped_up
    return f"changed by 0.1 or more: {worse} for the worse, {better} better"


def flip_table(comparison: Comparison, sides: tuple[str, str] = SIDES) -> list[tuple[str, ...]]:
    """A header and the samples that changed most; what is foreign is made harmless."""
    return [("sample", "cell", *sides, "what"), *map(_flip, comparison.flips[:FLIPS_SHOWN])]


def _flip(flip: Flip) -> tuple[str, ...]:
    what = []
    if flip.exact_a != flip.exact_b:
        what.append("exact → inexact" if flip.exact_a else "inexact → exact")
    if flip.nonce_a != flip.nonce_b:
        what.append("nonce lost" if flip.nonce_a else "nonce back")
    if flip.outcome_a != flip.outcome_b:
        what.append(f"{flip.outcome_a} → {flip.outcome_b}")
    return (
        f"{one_line(flip.shard, 60)}#{flip.row}",
        flip.cell or f"n{flip.n_needles}",
        number(flip.ratio_a),
        number(flip.ratio_b),
        ", ".join(what) or "–",
    )


def exact_lines(comparison: Comparison, sides: tuple[str, str] = SIDES) -> list[str]:
    """How many samples are exact on one side alone, if any."""
    if not comparison.exact_lost and not comparison.exact_gained:
        return []
    a, b = sides
    lost, gained = comparison.exact_lost, comparison.exact_gained
    return [f"exact in {a} alone: {lost}, exact in {b} alone: {gained}"]


def lost_lines(comparison: Comparison) -> list[str]:
    """How many samples were lost in one of the two, by what became of them, and why."""
    fates = Counter((sample.outcome_a, sample.outcome_b) for sample in comparison.lost)
    lines = []
    for (a, b), count in fates.most_common():
        reasons = Counter(
            one_line(sample.reason)
            for sample in comparison.lost
            if (sample.outcome_a, sample.outcome_b) == (a, b) and sample.reason
        )
        why = f": {reasons.most_common(1)[0][0]}" if reasons else ""
        lines.append(f"not compared: {count} x {a} → {b}{why}")
    return lines


def signed(value: float) -> str:
    """A difference of ratios with its sign and four decimals; no sign for nothing."""
    return "0.0000" if abs(value) < 0.00005 else f"{value:+.4f}"  # noqa: PLR2004


def chance(p: float | None) -> str:
    """A value of p; below 0.001 only that, and a dash where there is none."""
    if p is None:
        return "–"
    return "<.001" if p < 0.001 else f"{p:.3f}"  # noqa: PLR2004


def _change_interval(interval: Interval | None) -> str:
    if interval is None:
        return "too few"
    return "all alike" if interval.is_point else f"{interval.low:+.3f}…{interval.high:+.3f}"


def _side(side: Side) -> str:
    version = f", server {one_line(side.server_version, 60)}" if side.server_version else ""
    return (
        f"{one_line(side.path, 200)}: {one_line(side.name, 100)}, model"
        f" {one_line(side.model or '?', 200)}{version}, {side.graded} of {side.planned} samples"
        " graded"
    )
