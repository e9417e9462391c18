"""What the reports of a run say of its baseline; every foreign text in it is literal."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from mrcr_action.report.comparison import (
    bucket_table,
    exact_lines,
    flip_table,
    flips_title,
    lost_lines,
    rate_table,
)
from mrcr_action.report.console import Printer
from mrcr_action.report.text import code, markdown, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.comparison.document import Against, Comparison

SIDES = ("base", "run")
"""What the columns of the tables are called; longer words would not fit 80 columns."""

LONGEST_NOTE = 1_000
LONGEST_PROBLEM = 2_000


def show_baseline(say: Printer, against: Against) -> None:
    """Print what changed since the baseline; the verdict's own line says what it comes to."""
    say(f"against the baseline {_baseline(against)}")
    comparison = against.comparison
    if comparison is None:
        say(f"not compared: {one_line(against.problem, LONGEST_PROBLEM)}")
        return
    if comparison.changed or comparison.lost:
        say.table(bucket_table(comparison, SIDES))
        for line in _asides(comparison):
            say(line)
    if comparison.flips:
        say(flips_title(comparison))
        say.table(flip_table(comparison, SIDES))
    if left := _left_out(comparison):
        say(left)
    for note in comparison.notes:
        say(f"note: {one_line(note, LONGEST_NOTE)}")
    say(f"baseline: {one_line(comparison.summary, LONGEST_PROBLEM)}")


def baseline_text(against: Against) -> str:
    """The same as plain lines."""
    stream = io.StringIO()
    show_baseline(Printer(stream), against)
    return stream.getvalue()


def baseline_markdown(against: Against) -> str:
    """A section for the job summary."""
    baseline, comparison = against.baseline, against.comparison
    version = f", server {markdown(baseline.server_version, 60)}" if baseline.server_version else ""
    facts = (
        f"{code(baseline.path)}: model {code(baseline.model or '?')}{version}, run"
        f" {markdown(baseline.started, 40)}, {baseline.graded} of {baseline.planned} samples graded"
    )
    parts = ["### Against the baseline", facts]
    if comparison is None:
        parts.append(f"**Not compared:** {markdown(against.problem, LONGEST_PROBLEM)}")
        return "\n\n".join(parts)
    parts.append(markdown(comparison.summary, LONGEST_PROBLEM))
    parts.append(_table(bucket_table(comparison, SIDES), words=2))
    parts.extend(f"> [!NOTE]\n> {markdown(note, LONGEST_NOTE)}" for note in comparison.notes)
    folded = [_table(rate_table(comparison, SIDES), words=1)]
    folded += [markdown(line, LONGEST_NOTE) for line in _asides(comparison)]
    if comparison.flips:
        folded.insert(0, _table(flip_table(comparison, SIDES), words=2, last_is_word=True))
    if left := _left_out(comparison):
        folded.insert(1, left)
    title = markdown(flips_title(comparison).capitalize())
    body = "\n\n".join(folded)
    parts.append(f"<details><summary>{title}</summary>\n\n{body}\n\n</details>")
    return "\n\n".join(parts)


def _asides(comparison: Comparison) -> list[str]:
    return [*exact_lines(comparison, SIDES), *lost_lines(comparison)]


def _left_out(comparison: Comparison) -> str:
    left = comparison.flipped_down + comparison.flipped_up - len(comparison.flips)
    return f"and {left} more, which `mrcr compare` lists" if left else ""


def _baseline(against: Against) -> str:
    baseline = against.baseline
    version = f", server {one_line(baseline.server_version, 60)}" if baseline.server_version else ""
    return (
        f"{one_line(baseline.path, 200)}: model {one_line(baseline.model or '?', 200)}{version},"
        f" run {one_line(baseline.started, 40)}, {baseline.graded} of {baseline.planned} samples"
        " graded"
    )


def _table(rows: Sequence[Sequence[str]], *, words: int, last_is_word: bool = False) -> str:
    """A table whose first columns are words and the others figures; no cell holds markup."""
    head, *body = ("| " + " | ".join(map(markdown, row)) + " |" for row in rows)
    rule = "|" + " --- |" * words + " ---: |" * (len(rows[0]) - words)
    if last_is_word:
        rule = rule.removesuffix(" ---: |") + " --- |"
    return "\n".join([head, rule, *body])
