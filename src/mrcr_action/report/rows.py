"""The table of buckets that the console and the summary both show."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mrcr_action.bins import in_short
from mrcr_action.checks import bounds_of, threshold_of
from mrcr_action.report.text import one_line
from mrcr_action.result import Bucket

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mrcr_action.comparison.document import RoundChange
    from mrcr_action.config.keys import Protocol
    from mrcr_action.coverage import Coverage
    from mrcr_action.intervals import Interval
    from mrcr_action.result import Record, Result

COLUMNS = ("bucket", "verdict", "ratio", "95 %", "needed", "nonce", "exact", "graded", "lost")
"""``ratio`` is the gated protocol's mean, ``95 %`` its interval, ``needed`` threshold less
tolerance, ``nonce`` and ``exact`` the shares of answers that start with the nonce and that equal
the wanted one. These fit a terminal of 80 columns."""

FURTHER = ("step",)
"""What one sample moves the ratio by at most; behind it stands the other protocol's ratio, under
its name, since every answer has both."""

MARKS = {"pass": "✓ pass", "fail": "✗ FAIL", "inconclusive": "? unclear"}
MARKS |= {"measured": "· measured"}
"""Words and signs, so that no table depends on colour."""


def bucket_title(bucket: Bucket) -> str:
    """How a person calls a bucket."""
    if bucket.bin is not None:
        return bucket.name
    title = "all samples" if bucket.n_needles is None else f"{bucket.n_needles} needles"
    return title if bucket.round is None else f"{title}, {bucket.round}"


def table_of(result: Result, *, wide: bool = True) -> list[tuple[str, ...]]:
    """A header, then one row a bucket; every cell is made here, none is foreign.

    Args:
        result: its buckets; a cell only if a threshold speaks of it, or if the server lost some
            of it.
        wide: with the columns that a terminal has no room for.
    """
    config = result.config
    other: Protocol = "vllm" if config.protocol == "openai" else "openai"
    table: list[tuple[str, ...]] = [(*COLUMNS, *((*FURTHER, other) if wide else ()))]
    for bucket in result.buckets:
        lost_itself = bucket.lost > bucket.unasked
        if bucket.bin is not None and not lost_itself and not bounds_of(bucket, config):
            continue
        threshold = threshold_of(bucket, config)
        row = (
            bucket_title(bucket),
            MARKS[result.verdict.state_of(bucket.name)],
            number(bucket.match_ratio(config.protocol)),
            span(bucket.interval),
            number(None if threshold is None else threshold - config.tolerance),
            share(bucket.prefix_hit_rate),
            share(bucket.exact_rate),
            f"{bucket.graded}/{bucket.wanted}",
            lost(bucket),
        )
        further = (number(bucket.step), number(bucket.match_ratio(other)))
        table.append((*row, *(further if wide else ())))
    return table


def span(interval: Interval | None) -> str:
    """An interval with two decimals; a dash without one, words where no sample differs."""
    if interval is None:
        return "–"
    return "no spread" if interval.is_point else f"{interval.low:.2f}–{interval.high:.2f}"


def share(value: float | None) -> str:
    """A share of samples with three decimals, or a dash."""
    return "–" if value is None else f"{value:.3f}"


def number(value: float | None) -> str:
    """A ratio with four decimals, or a dash."""
    return "–" if value is None else f"{value:.4f}"


def lost(bucket: Bucket | Coverage) -> str:
    """What of a bucket or a cell gave no evidence, and what was cut, in words."""
    skipped = bucket.skipped if isinstance(bucket, Bucket) else 0
    parts = [
        f"{count} {word}"
        for count, word in (
            (skipped, "not asked"),
            (bucket.failed, "failed"),
            (bucket.rejected, "refused"),
            (bucket.truncated, "truncated"),
        )
        if count
    ]
    return ", ".join(parts) or "0"


def tested(result: Result) -> str:
    """One line about what was asked: lengths, protocol, model, data."""
    parts = [f"protocol {result.config.protocol}"]
    if result.plan is not None and result.plan.asks:
        lengths = [ask.prompt_tokens for ask in result.plan.asks]
        parts.append(f"prompts of {min(lengths):,} to {max(lengths):,} tokens")
        parts.append(f"limit {result.plan.max_prompt_tokens:,}")
    if result.server.max_model_len:
        parts.append(f"window {result.server.max_model_len:,}")
    return ", ".join(parts)


def rounds_table(changes: Sequence[RoundChange]) -> list[tuple[str, ...]]:
    """A header, then what differs between the first round and each other one."""
    table: list[tuple[str, ...]] = [
        ("round", "asked", "answers that differ", "change of the ratio", "p", "from the cache")
    ]
    for found in changes:
        change = found.change
        cached = "–"
        if found.cacheable and found.cached is not None:
            cached = f"{found.cached}/{found.cacheable}"
        elif found.cacheable and found.cached_share is not None:
            cached = f"{found.cached_share:.0%} of the tokens"
        table.append(
            (
                found.name,
                str(found.asked),
                f"{found.differing}/{found.comparable}",
                "–" if change is None else f"{change.difference:+.4f}",
                "–" if found.p_corrected is None else f"{found.p_corrected:.2g}",
                cached,
            )
        )
    return table


def areas(result: Result) -> str:
    """The areas under the curve in one line; empty without any."""
    shown = [
        f"n{area.n_needles} @{in_short(area.up_to)} {area.auc:.1%} ({area.n} samples)"
        for area in result.auc
    ]
    return f"AUC as Context Arena counts it: {', '.join(shown)}" if shown else ""


def reasons(records: Iterable[Record]) -> list[str]:
    """Why requests were lost: each reason on a line, the most frequent first, at most ten."""
    counts = Counter(record.reason for record in records if record.reason)
    return [f"{count} x {one_line(reason)}" for reason, count in counts.most_common(10)]
