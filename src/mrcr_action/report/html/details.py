"""The tables further down: buckets, baseline, passes, coverage, and what was run."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from mrcr_action.report.cells import beyond, coverage_table
from mrcr_action.report.comparison import (
    bucket_table,
    exact_lines,
    flip_table,
    flips_title,
    lost_lines,
    rate_table,
)
from mrcr_action.report.html.markup import element, foreign, section, table
from mrcr_action.report.html.sides import sides
from mrcr_action.report.rows import rounds_table, table_of, tested

if TYPE_CHECKING:
    from mrcr_action.report.html.markup import Element
    from mrcr_action.result import Result

SIDES = ("baseline", "this run")


def buckets(result: Result) -> Element | None:
    """Every bucket with its figures, both protocols'; None where nothing was asked."""
    if not result.records:
        return None
    rows = table_of(result)
    states = [row[1].split()[-1].lower() for row in rows[1:]]
    return section(
        "buckets",
        "Buckets",
        table(
            rows,
            caption=f"Buckets; ratio and interval by the {result.config.protocol} protocol, the"
            " last column by the other",
            words=2,
            row_class=[f"row {state}" for state in states],
        ),
    )


def baseline(result: Result) -> Element | None:
    """The two results side by side; None without a baseline."""
    against = result.baseline
    if against is None:
        return None
    before = against.baseline
    version = f", server {before.server_version}" if before.server_version else ""
    facts = (
        f"{before.path}: model {before.model or '?'}{version}, run {before.started},"
        f" {before.graded} of {before.planned} samples graded"
    )
    comparison = against.comparison
    if comparison is None:
        return section(
            "baseline",
            "Against the baseline",
            element("p", element("bdi", foreign(facts))),
            element("p", element("strong", "Not compared: "), foreign(against.problem)),
        )
    asides = [*exact_lines(comparison, SIDES), *lost_lines(comparison)]
    return section(
        "baseline",
        "Against the baseline",
        element("p", foreign(comparison.summary)),
        element("p", element("bdi", foreign(facts)), class_="note"),
        sides(comparison, SIDES),
        table(
            bucket_table(comparison, SIDES),
            caption="Mean match ratio of the samples graded in both; change is this run less the"
            " baseline",
            words=2,
        ),
        table(rate_table(comparison, SIDES), caption="Shares of samples on both sides"),
        table(
            flip_table(comparison, SIDES),
            caption=flips_title(comparison).capitalize(),
            words=2,
            last_is_word=True,
        )
        if comparison.flips
        else None,
        (element("p", foreign(line), class_="note") for line in (*asides, *comparison.notes)),
    )


def passes(result: Result) -> Element | None:
    """What differs between the passes; None where there was one."""
    if not any(change.asked for change in result.rounds):
        return None
    rows = rounds_table(result.rounds)
    return section(
        "passes",
        "Passes",
        table(rows, caption="Each pass beside the first one, sample by sample"),
    )


def coverage(result: Result) -> Element | None:
    """What of the dataset was tested; None where samples are not chosen by cell."""
    if not result.coverage:
        return None
    intervals = {b.name: b.interval for b in result.buckets if b.bin is not None}
    rows = coverage_table(result.coverage, result.config.protocol, intervals or None)
    rest = beyond(result.coverage)
    return section(
        "coverage",
        "Coverage",
        table(rows, caption="Cells: what was asked of them, and what of the dataset they are"),
        element("p", foreign(rest), class_="note") if rest else None,
    )


def notes(result: Result) -> Element | None:
    """What every reader of the figures should know; None without any."""
    if not result.notes:
        return None
    return section(
        "notes", "Notes", element("ul", (element("li", foreign(note)) for note in result.notes))
    )


def about(result: Result) -> Element:
    """What was run on what."""
    server, data = result.server, result.data
    facts = {
        "verdict": result.verdict.summary,
        "model": result.model or "?",
        "configuration": result.config_path,
        "server": " ".join(filter(None, [server.route, server.version, server.image])),
        "started as": shlex.join(server.command) if server.command else None,
        "samples": f"{data.dataset} {data.revision or ''}".strip(),
        "tested": tested(result),
        "time": f"{result.started} to {result.finished}",
        "to repeat": shlex.join(result.invocation) if result.invocation else None,
        "written by": f"mrcr-action {result.tool_version}",
    }
    return section(
        "about",
        "This run",
        element(
            "dl",
            (
                (element("dt", name), element("dd", element("bdi", foreign(value))))
                for name, value in facts.items()
                if value
            ),
        ),
    )
