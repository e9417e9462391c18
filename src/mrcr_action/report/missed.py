"""What a run missed, in the summary's first lines: which thresholds, by how much, and is it real.

The names of buckets and every figure are made here; whatever else is foreign is literal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.config.thresholds import AT_MOST
from mrcr_action.report.html.verdict import MOST_MISSED, failed_in, in_words, missed_in, needed
from mrcr_action.report.rows import bucket_title, number
from mrcr_action.report.text import markdown

if TYPE_CHECKING:
    from mrcr_action.result import Bucket, Check, Result

MOST_OTHERS = 6
"""Lines on what is no missed threshold."""

LONGEST = 1_000

COLUMNS = "| missed | by | by chance? 95 % | measured | needed | samples |"
RULE = "| --- | ---: | --- | ---: | ---: | ---: |"
"""What matters most comes first: a telephone shows three of these."""


def missed_markdown(result: Result) -> str:
    """The verdict in a sentence or two, and what it rests on; the worst first."""
    missed = missed_in(result)
    sentence = markdown(in_words(result, missed), limit=2_000)
    failed = failed_in(missed)
    if result.verdict.conclusion != "fail" or not failed:
        return sentence
    buckets = {bucket.name: bucket for bucket in result.buckets}
    rows = [_row(check, buckets.get(check.bucket)) for check in failed[:MOST_MISSED]]
    parts = [sentence, "\n".join([COLUMNS, RULE, *rows])]
    if len(failed) > MOST_MISSED:
        parts.append(f"and {len(failed) - MOST_MISSED} more, below.")
    others = [check for check in missed if check not in failed]
    lines = [f"- {markdown(check.message, limit=LONGEST)}" for check in others[:MOST_OTHERS]]
    if len(others) > MOST_OTHERS:
        lines.append(f"- and {len(others) - MOST_OTHERS} more, below")
    return "\n\n".join(filter(None, [*parts, "\n".join(lines)]))


def _row(check: Check, bucket: Bucket | None) -> str:
    bound, measured = needed(check), check.measured
    title = check.bucket if bucket is None else bucket_title(bucket)
    metric = "" if check.metric == "match_ratio" else f", {check.metric.replace('_', ' ')}"
    rule = "at most " if check.metric in AT_MOST else ""
    gap = None if bound is None or measured is None else abs(measured - bound)
    cells = (
        markdown(title + metric),
        f"**{number(gap)}**",
        _chance(check, bound),
        number(measured),
        f"{rule}{number(bound)}",
        f"{check.samples:,}",
    )
    return f"| {' | '.join(cells)} |"


def _chance(check: Check, bound: float | None) -> str:
    """Whether other samples of the same kind might well have kept the bound."""
    interval, is_most = check.interval, check.metric in AT_MOST
    if bound == (0 if is_most else 1):
        return "no, one is enough"
    if interval is None or bound is None:
        return "too few to tell"
    if interval.is_point:
        return "no, all alike"
    beyond = interval.low > bound if is_most else interval.high < bound
    return f"{'no' if beyond else 'maybe'}, {interval.low:.2f}–{interval.high:.2f}"
