"""What the answers that are not exact look like, for every report: lines, and Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.diagnosis.breakdown import breakdowns
from mrcr_action.diagnosis.clues import clues_of
from mrcr_action.diagnosis.lines import tally, told
from mrcr_action.report.text import code, markdown, one_line
from mrcr_action.rounds import FIRST

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mrcr_action.result import Record, Result

MOST_WORST = 3
"""Samples that a failure's text names."""

MOST_GROUPS = 40
"""Rows of the table of where it breaks, for each way of dividing."""

LONGEST_EXCERPT = 200
"""Characters of either side."""


def suspicions(result: Result) -> list[str]:
    """What it looks like: at most three lines made here; none where every answer is exact."""
    return [clue.told for clue in clues_of(result.records, result.plan, is_probe=result.is_probe)]


def counts(records: Sequence[Record]) -> str:
    """How many answers are what, in one line; empty where all are exact or nothing is known."""
    told_of = tally(records)
    return told_of if ";" in told_of else ""


def worst_of(records: Iterable[Record], protocol: str) -> list[Record]:
    """The records that are lost or not exact, the worst first."""

    def place(record: Record) -> tuple[float, int]:
        return (record.grade.match_ratio(protocol) if record.grade else -1.0, record.ask)

    return sorted((r for r in records if r.grade is None or not r.grade.exact), key=place)


def worst_lines(records: Iterable[Record], protocol: str) -> list[str]:
    """The worst samples of some with what happened to each, a line each, for plain text."""
    found = [record for record in worst_of(records, protocol) if record.diagnosis is not None]
    return [
        f"{one_line(record.shard)}#{record.row}{_round(record)}: {one_line(told(record))}"
        for record in found[:MOST_WORST]
    ]


def looks_markdown(result: Result) -> str:
    """The section on what it looks like; empty without anything to say."""
    said = counts(result.records)
    if not said:
        return ""
    listed = [f"- {markdown(line, limit=600)}" for line in suspicions(result)]
    return "\n\n".join(filter(None, ["### What this looks like", f"{said}.", "\n".join(listed)]))


def where_markdown(result: Result) -> str:
    """The folded table of where it breaks; empty without anything to say."""
    if not counts(result.records):
        return ""
    rows = ["| by | | asked | exact | not exact |", "| --- | --- | ---: | ---: | --- |"]
    found = breakdowns(result.records, result.plan)
    for breakdown in found:
        by = breakdown.by
        for group in breakdown.groups[:MOST_GROUPS]:
            others = ", ".join(f"{count} {form}" for form, count in group.forms) or "–"
            label = markdown(group.label)
            rows.append(f"| {by} | {label} | {group.asked} | {group.exact} | {others} |")
            by = ""
    if not found:
        return ""
    table = "\n".join(rows)
    return f"<details><summary>Where it breaks</summary>\n\n{table}\n\n</details>"


def beside_markdown(records: Sequence[Record]) -> str:
    """Of some records, the wanted and the returned text around the first wrong character, folded.

    Both are foreign. Lines are joined by a sign that shows where one ended.
    """
    parts = []
    for record in records:
        found = record.diagnosis
        if found is None or found.excerpt is None or found.first_wrong is None:
            continue
        excerpt = found.excerpt
        title = f"{code(f'{record.shard}#{record.row}')}{markdown(_round(record))}"
        parts.append(
            f"{title}, from character {excerpt.offset:,} on; they part at"
            f" {found.first_wrong.offset:,}:\n"
            f"- wanted: {_shown(excerpt.wanted)}\n"
            f"- returned: {_shown(excerpt.returned)}"
        )
    if not parts:
        return ""
    body = "\n\n".join(parts)
    return f"<details><summary>Wanted and returned</summary>\n\n{body}\n\n</details>"


def _shown(text: str) -> str:
    return code(text.replace("\n", "⏎"), limit=LONGEST_EXCERPT) if text.strip() else "nothing"


def _round(record: Record) -> str:
    return "" if record.pass_name == FIRST else f", {one_line(record.pass_name)}"
