"""Needle count by length as a Markdown table that needs no colour: GitHub takes all styles away.

Every text in it is made here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.checks import threshold_of
from mrcr_action.report.html.groups import by_cell, by_length, first_round
from mrcr_action.report.html.heat import STEPS, step_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mrcr_action.bins import Bin
    from mrcr_action.report.html.groups import Group
    from mrcr_action.result import Bucket, Result

SHADES = "▁▂▃▅▆█"
"""By `step_of`: the fuller, the better."""

SIGNS = {"fail": "**✗**", "inconclusive": "**?**", "pass": "✓", "measured": ""}

GLUE = "\u00a0"
"""A space at which no line breaks: in a narrow cell a mark would stand below its figure."""

FEWEST_BINS = 2
"""With one there is nothing that the table of buckets does not have."""

FEWEST_BARS = 3
"""A chart of fewer bars shows nothing that figures do not."""


def heat_markdown(result: Result) -> str:
    """A row for each needle count and for all, a column for each length; empty for one length.

    Of the first pass; what others found stands in the table of buckets.
    """
    protocol = result.config.protocol
    records = first_round(result.records)
    groups = by_cell(records, protocol)
    lengths = sorted({length for _, length in groups})
    if len(lengths) < FEWEST_BINS:
        return ""
    counts = sorted({needles for needles, _ in groups})
    buckets = {bucket.name: bucket for bucket in result.buckets if bucket.round is None}
    every = by_length(records, protocol)
    rows = [
        ["needles", *(f"{length}" for length in lengths), "all lengths"],
        *(_row(result, buckets, groups, lengths, needles) for needles in counts),
    ]
    if len(counts) > 1:
        whole = [_shown(every[length].mean, every[length].n) for length in lengths]
        rows.append(["all", *whole, _bucket(result, buckets["all"])])
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    rule = "| ---: |" + " --- |" * (len(lengths) + 1)
    edges = ", ".join(f"{SHADES[at]} {edge:g}" for at, edge in reversed([*enumerate(STEPS, 1)]))
    legend = (
        f"Mean match ratio ({protocol}) by needles and length in o200k tokens. From {edges},"
        f" {SHADES[0]} below; ✓ ✗ ? is what a threshold decided."
    )
    return "\n".join([head, rule, *body, "", legend])


def chart_markdown(result: Result) -> str:
    """The same over all needle counts as bars, which GitHub draws; empty where all are as good.

    In the syntax of Mermaid 10.3 and later; of foreign text there is none.
    """
    bars = by_length(first_round(result.records), result.config.protocol)
    known = {str(length): of.mean for length, of in bars.items() if of.mean is not None}
    if len(known) < FEWEST_BARS or len({step_of(mean) for mean in known.values()}) == 1:
        return ""
    lengths = ", ".join(f'"{length}"' for length in known)
    means = ", ".join(f"{mean:.3f}" for mean in known.values())
    return "\n".join(
        [
            "```mermaid",
            '%%{init: {"xyChart": {"width": 700, "height": 260}}}%%',
            "xychart-beta",
            '    title "Mean match ratio by length, all needle counts"',
            f"    x-axis [{lengths}]",
            "    y-axis 0 --> 1",
            f"    bar [{means}]",
            "```",
        ]
    )


def _row(
    result: Result,
    buckets: Mapping[str, Bucket],
    groups: Mapping[tuple[int, Bin], Group],
    lengths: list[Bin],
    needles: int,
) -> list[str]:
    row = [str(needles)]
    for length in lengths:
        bucket, found = buckets.get(f"n{needles}/{length}"), groups.get((needles, length))
        if bucket is not None:
            row.append(_bucket(result, bucket))
        else:
            row.append("" if found is None else _shown(found.mean, found.n))
    total = buckets.get(f"n{needles}")
    return [*row, "" if total is None else _bucket(result, total)]


def _bucket(result: Result, bucket: Bucket) -> str:
    """A bucket's own figures, with what is needed of it and what was decided."""
    bound, config = threshold_of(bucket, result.config), result.config
    sign = SIGNS[result.verdict.state_of(bucket.name)]
    text = _shown(bucket.match_ratio(config.protocol), bucket.graded, sign)
    return text if bound is None else f"{text}<br>needs{GLUE}{bound - config.tolerance:.3f}"


def _shown(mean: float | None, n: int, sign: str = "") -> str:
    value = ["–"] if mean is None else [SHADES[int(step_of(mean))], f"{mean:.3f}"]
    return f"{GLUE.join(filter(None, [*value, sign]))}<br>n{GLUE}{n:,}"
