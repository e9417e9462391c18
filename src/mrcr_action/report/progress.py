"""What is happening right now: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import IO, TYPE_CHECKING, Protocol

from mrcr_action.report.console import print_plan
from mrcr_action.report.text import one_line
from mrcr_action.rounds import FIRST

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from mrcr_action.plan import Plan
    from mrcr_action.result import Record

PLAIN_SECONDS = 10.0
"""Least time between two plain lines about the same stage."""

STAGES = {
    "route": "Server route: {what}",
    "starting": "Starting the server at {what}",
    "connecting": "Connecting to {what}",
    "choosing": "Choosing samples for {what}",
    "part": "Only {what}",
    "stopping": "Stopping the server",
    "done": "Done",
}


class Progress(Protocol):
    """Told of a run's progress; must be quick, since it is called on the event loop."""

    def stage(self, name: str, what: str) -> None:
        """A stage begins: one of `STAGES`, with the address or model that it is about."""

    def waiting(self, seconds: float) -> None:
        """The server is not ready yet, this long after the stage began."""

    def chosen(self, chosen: int, wanted: int) -> None:
        """Another sample was chosen."""

    def fetching(self, what: str) -> None:
        """Files of the dataset are fetched; called from other threads too."""

    def planned(self, plan: Plan) -> None:
        """The plan is complete; asking begins."""

    def extended(self, plan: Plan, asks: int) -> None:
        """The plan has got so many further asks, since thresholds were undecided."""

    def answered(self, record: Record) -> None:
        """An ask was finished."""

    def close(self) -> None:
        """The run is over; the terminal is given back."""


class _Counts:
    """Counters that both renderings show."""

    def __init__(self) -> None:
        self.total = self.done = self.lost = 0
        self.sum_of_ratios = 0.0

    def add(self, record: Record) -> None:
        self.done += 1
        if record.grade is None:
            self.lost += 1
        else:
            self.sum_of_ratios += record.grade.match_ratio_openai

    def __str__(self) -> str:
        graded = self.done - self.lost
        text = f"{self.done}/{self.total} answered"
        if graded:
            text += f", mean ratio (openai) {self.sum_of_ratios / graded:.3f}"
        return text + (f", {self.lost} lost" if self.lost else "")


def plan_line(plan: Plan) -> str:
    """One line about a plan: how many samples, how long."""
    lengths = [ask.prompt_tokens for ask in plan.asks]
    per = ", ".join(f"{plan.planned(n)} with {n} needles" for n in plan.quotas)
    unit = "prompt tokens" if plan.counted_by == "server" else "o200k tokens"
    line = f"{len(plan.samples)} samples ({per}), {min(lengths):,} to {max(lengths):,} {unit}"
    if len(plan.rounds) == 1:
        return line
    asked = Counter(ask.pass_name for ask in plan.asks)
    rounds = ", ".join(f"{round_.name} {asked[round_.name]}" for round_ in plan.rounds)
    return f"{line}; {len(plan.asks)} requests: {rounds}"


def extension_line(plan: Plan, asks: int) -> str:
    """One line about the further asks that a plan has got."""
    look = plan.looks[-1]
    which = f"Look {len(plan.looks) + 1} of at most {len(plan.schedule)}"
    requests = "" if asks == look.samples else f" ({asks} requests)"
    return (
        f"{which}: undecided {', '.join(look.buckets)}; asking {look.samples} more"
        f" samples{requests}, up to {look.level} a cell"
    )


class PlainProgress:
    """Lines without control characters, not too many, for logs."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream or sys.stderr
        self._counts = _Counts()
        self._last = 0.0

    def _say(self, text: str) -> None:
        print(one_line(text), file=self._stream, flush=True)

    def stage(self, name: str, what: str) -> None:
        self._last = time.monotonic()
        self._say(STAGES[name].format(what=what))

    def waiting(self, seconds: float) -> None:
        self._say(f"  not ready after {seconds:.0f} s")

    def chosen(self, chosen: int, wanted: int) -> None:
        if time.monotonic() - self._last >= PLAIN_SECONDS:
            self._last = time.monotonic()
            self._say(f"  {chosen}/{wanted} chosen")

    def fetching(self, what: str) -> None:
        self._say(f"  {what}")

    def planned(self, plan: Plan) -> None:
        self._counts.total = len(plan.asks)
        self._last = time.monotonic()
        print_plan(plan, self._stream)
        self._say(f"Asking {plan_line(plan)}")

    def extended(self, plan: Plan, asks: int) -> None:
        self._counts.total += asks
        self._last = time.monotonic()
        self._say(extension_line(plan, asks))

    def answered(self, record: Record) -> None:
        self._counts.add(record)
        if record.grade is None:
            further = "" if record.pass_name == FIRST else f" ({record.pass_name})"
            which = f"{record.shard}#{record.row}{further}"
            self._say(f"  sample {which} {record.outcome}: {record.reason}")
        last = self._counts.done == self._counts.total
        if last or time.monotonic() - self._last >= PLAIN_SECONDS:
            self._last = time.monotonic()
            self._say(f"  {self._counts}")

    def close(self) -> None:
        return None


class RichProgress:
    """One live line on a terminal."""

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self._console = console
        self._counts = _Counts()
        self._bar: Bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task: TaskID = self._bar.add_task("", total=None)
        self._bar.start()

    def stage(self, name: str, what: str) -> None:
        text = one_line(STAGES[name].format(what=what))
        if name == "route":
            # Said for good: the bar shows what goes on.
            self._console.print(text, highlight=False, markup=False)
        else:
            self._bar.update(self._task, description=text)

    def waiting(self, seconds: float) -> None:  # noqa: ARG002 - the bar shows the time itself
        return None

    def chosen(self, chosen: int, wanted: int) -> None:
        self._bar.update(self._task, completed=chosen, total=wanted)

    def fetching(self, what: str) -> None:
        self._console.print(one_line(what), highlight=False, markup=False)

    def planned(self, plan: Plan) -> None:
        self._counts.total = len(plan.asks)
        print_plan(plan, self._console.file)
        self._console.print(f"Asking {plan_line(plan)}", highlight=False, markup=False)
        self._bar.reset(self._task, total=len(plan.asks), description=str(self._counts))

    def extended(self, plan: Plan, asks: int) -> None:
        self._counts.total += asks
        self._console.print(extension_line(plan, asks), highlight=False, markup=False)
        # The bar has counted the choice of samples in between.
        self._bar.update(
            self._task,
            total=self._counts.total,
            completed=self._counts.done,
            description=str(self._counts),
        )

    def answered(self, record: Record) -> None:
        self._counts.add(record)
        self._bar.update(self._task, advance=1, description=str(self._counts))

    def close(self) -> None:
        self._bar.stop()


def make_progress(stream: IO[str] | None = None) -> Progress:
    """The rendering that suits a stream (default: standard error)."""
    stream = stream or sys.stderr
    if not stream.isatty():
        return PlainProgress(stream)
    from rich.console import Console

    return RichProgress(Console(file=stream))
