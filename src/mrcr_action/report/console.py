"""What a run prints when it is over."""

from __future__ import annotations

import sys
from typing import IO, TYPE_CHECKING

from mrcr_action.report.cells import beyond, coverage_table, plan_table
from mrcr_action.report.cost import cost_line
from mrcr_action.report.diagnosis import counts, suspicions
from mrcr_action.report.rows import areas, reasons, rounds_table, table_of, tested
from mrcr_action.report.text import lines, one_line
from mrcr_action.stats import coverage_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mrcr_action.plan import Plan
    from mrcr_action.result import Result

COLOURS = {"pass": "green", "fail": "red", "inconclusive": "yellow", "measured": "cyan"}


def print_result(result: Result, files: Sequence[Path], stream: IO[str] | None = None) -> None:
    """Print the table of buckets, the verdict, and where the reports are."""
    stream = stream or sys.stdout
    say = Printer(stream)
    _show_head(say, result)
    _show_tables(say, result)
    for reason in reasons(result.records):
        say(f"lost: {reason}")
    for note in result.notes:
        say(f"note: {one_line(note, 1_000)}")
    if result.problem is not None:
        for line in lines(result.problem.details):
            say(line)
    if result.stopped is not None:
        say(one_line(result.stopped.sentence, 1_000))
    say(one_line(result.verdict.summary, 2_000), colour=COLOURS[result.verdict.conclusion])
    if result.verdict.conclusion != "pass" and (said := counts(result.records)):
        say(f"Answers: {said}")
        for line in suspicions(result):
            say(f"Looks like: {one_line(line, 1_000)}")
    if result.problem is not None and result.problem.hint:
        say(one_line(result.problem.hint, 1_000))
    if files:
        say("Reports: " + ", ".join(one_line(str(file), 1_000) for file in files))


def _show_head(say: Printer, result: Result) -> None:
    if result.verdict.conclusion == "measured":  # lest what follows be taken for a verdict
        say(one_line(result.verdict.summary), colour=COLOURS["measured"])
    say(f"{one_line(result.name)}: model {one_line(result.model or '?')}, {tested(result)}")
    say(cost_line(result))


def _show_tables(say: Printer, result: Result) -> None:
    from mrcr_action.report.baseline import show_baseline

    if result.records:
        say.table(table_of(result, wide=False))
    if result.coverage and result.records:
        say.table(coverage_table(result.coverage, result.config.protocol))
        if rest := beyond(result.coverage):
            say(one_line(rest, 2_000))
    if told := areas(result):
        say(told)
    if any(change.asked for change in result.rounds):
        say.table(rounds_table(result.rounds))
    if result.baseline is not None:
        show_baseline(say, result.baseline)


def print_plan(plan: Plan, stream: IO[str] | None = None) -> None:
    """Print the cells of a plan."""
    say = Printer(stream or sys.stdout)
    cells = coverage_of(plan, ())
    say.table(plan_table(plan, cells))
    if rest := beyond(cells):
        say(rest)


def print_progress(line: str) -> None:
    """Print a line about work that goes on, apart from what a command prints as its result."""
    print(one_line(line), file=sys.stderr, flush=True)


def print_table(rows: Sequence[Sequence[str]], stream: IO[str] | None = None) -> None:
    """Print a header and rows; every cell is made here, none is foreign."""
    Printer(stream or sys.stdout).table(rows)


class Printer:
    """Prints to a terminal with rich, elsewhere as aligned plain lines."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._terminal = stream.isatty()

    def __call__(self, text: str, *, colour: str = "") -> None:
        if self._terminal:
            from rich.console import Console
            from rich.text import Text

            Console(file=self._stream).print(Text(text, style=f"bold {colour}" if colour else ""))
        else:
            print(text, file=self._stream, flush=True)

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Print a header and rows, each cell on one line; blanks in it may align its figures."""
        rows = [[one_line(cell, keep_blanks=True) for cell in row] for row in rows]
        if self._terminal:
            from rich.box import SIMPLE_HEAD
            from rich.console import Console
            from rich.table import Table
            from rich.text import Text

            # Frameless and unbroken, to fit 80 columns.
            table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
            for title in rows[0]:
                table.add_column(title, no_wrap=title not in {"lost", "left out", "what"})
            for row in rows[1:]:
                table.add_row(*(Text(cell) for cell in row))
            Console(file=self._stream).print(table)
            return
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            self("  " + "  ".join(cells).rstrip())
