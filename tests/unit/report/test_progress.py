import io
from collections.abc import Callable

import msgspec
import pytest
from rich.console import Console

from mrcr_action.config import RunConfig
from mrcr_action.plan import Look, Plan
from mrcr_action.report import progress
from mrcr_action.report.progress import PlainProgress, RichProgress, make_progress, plan_line
from mrcr_action.result import Record, Result

MakePlan = Callable[..., Plan]
MakeRecord = Callable[..., Record]


TABLE = [
    "  cell       rows  fit  planned  o200k tokens  prompt tokens",
    "  n2/8K-16K  –     –    2        9,000         16,001",
    "  n8/8K-16K  –     –    1        9,000         8,002",
    "  all        –     –    3        –             24,003",
]
"""The cells of the plan below, as a log shows them."""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


@pytest.fixture
def plan(make_plan: MakePlan, make_record: MakeRecord) -> Plan:
    records = [make_record(i, n_needles=n) for i, n in enumerate([2, 2, 8])]
    return make_plan(records, RunConfig(needles=(2, 8), num_samples=3))


def test_a_plan_is_told_in_a_line(plan: Plan) -> None:
    assert plan_line(plan) == (
        "3 samples (2 with 2 needles, 1 with 8 needles), 8,000 to 8,002 prompt tokens"
    )


def test_lengths_of_another_count_are_named_so(
    make_plan: MakePlan, make_record: MakeRecord
) -> None:
    config = RunConfig(needles=(2,), num_samples=1)
    plan = make_plan([make_record(0)], config, counted_by="o200k")
    assert plan_line(plan).endswith("8,000 to 8,000 o200k tokens")


def test_a_log_hears_of_every_stage_and_of_the_end(
    clock: Clock, plan: Plan, make_record: MakeRecord
) -> None:
    stream = io.StringIO()
    shown = PlainProgress(stream)
    shown.stage("starting", "http://127.0.0.1:8000")
    shown.stage("connecting", "http://h")
    shown.stage("choosing", "org/model")
    shown.chosen(1, 3)
    shown.planned(plan)
    shown.answered(make_record(0, 0.5))
    shown.answered(make_record(1, None))
    shown.answered(make_record(2, 1.0))
    shown.stage("stopping", "")
    shown.stage("done", "")
    shown.close()
    assert stream.getvalue().splitlines() == [
        "Starting the server at http://127.0.0.1:8000",
        "Connecting to http://h",
        "Choosing samples for org/model",
        *TABLE,
        "Asking 3 samples (2 with 2 needles, 1 with 8 needles), 8,000 to 8,002 prompt tokens",
        "sample 2needle/2needle_0.parquet#101 failed: the connection broke",
        "3/3 answered, mean ratio (openai) 0.750, 1 lost",
        "Stopping the server",
        "Done",
    ]


def test_a_log_hears_of_further_samples_and_of_their_end(
    clock: Clock, plan: Plan, make_record: MakeRecord
) -> None:
    stream = io.StringIO()
    shown = PlainProgress(stream)
    shown.planned(plan)
    for i in range(3):
        shown.answered(make_record(i, 0.5))
    look = Look(buckets=("all", "n8/8K-16K@warm"), level=15, samples=2)
    more = msgspec.structs.replace(plan, schedule=(10, 15), looks=(look,))
    shown.extended(more, 4)
    for i in range(4):
        shown.answered(make_record(i, 0.5))
    before, look_again, after = stream.getvalue().splitlines()[-3:]
    assert before == "3/3 answered, mean ratio (openai) 0.500"
    assert look_again == (
        "Look 2 of at most 2: undecided all, n8/8K-16K@warm; asking 2 more samples (4 requests), up"
        " to 15 a cell"
    )
    assert after == "7/7 answered, mean ratio (openai) 0.500"


def test_a_log_is_not_flooded(clock: Clock, plan: Plan, make_record: MakeRecord) -> None:
    stream = io.StringIO()
    shown = PlainProgress(stream)
    shown.stage("choosing", "m")
    for i in range(25):
        clock.now += 1
        shown.chosen(i, 25)
    shown.planned(plan)
    clock.now += 9
    shown.answered(make_record(0, 0.5))
    clock.now += 1
    shown.answered(make_record(1, 0.5))
    assert stream.getvalue().splitlines()[1:] == [
        "9/25 chosen",
        "19/25 chosen",
        *TABLE,
        f"Asking {plan_line(plan)}",
        "2/3 answered, mean ratio (openai) 0.500",
    ]


def test_no_foreign_control_character_reaches_a_log(
    plan: Plan, make_record: MakeRecord, hostile: str
) -> None:
    stream = io.StringIO()
    shown = PlainProgress(stream)
    shown.stage("choosing", hostile)
    shown.planned(plan)
    shown.answered(make_record(0, None, reason=hostile, shard=hostile))
    text = stream.getvalue()
    assert len(text.splitlines()) == 3 + len(TABLE)
    assert all(c == "\n" or c.isprintable() for c in text if c not in "\ufffe\uffff")
    assert not [line for line in text.splitlines() if line.strip().startswith("::")]
    assert "##[" not in text


def test_a_terminal_sees_a_live_line_that_goes_away(
    plan: Plan, make_record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "200")
    stream = Terminal()
    shown = make_progress(stream)
    assert isinstance(shown, RichProgress)
    try:
        shown.stage("choosing", "[bold]\x1b[31mm[/bold]")
        shown.chosen(1, 3)
        shown.planned(plan)
        shown.answered(make_record(0, 0.5))
        shown.answered(make_record(1, None))
    finally:
        shown.close()
    text = stream.getvalue()
    assert f"Asking {plan_line(plan)}" in text
    assert "\x1b[31mm" not in text


def test_a_terminal_sees_further_samples_in_the_same_bar(
    plan: Plan, make_record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "200")
    stream = Terminal()
    shown = RichProgress(Console(file=stream))
    look = Look(buckets=("all",), level=15, samples=2)
    try:
        shown.planned(plan)
        shown.answered(make_record(0, 0.5))
        shown.chosen(5, 5)
        shown.extended(msgspec.structs.replace(plan, schedule=(10, 15), looks=(look,)), 2)
        shown.answered(make_record(1, 0.5))
    finally:
        shown.close()
    text = stream.getvalue()
    assert "Look 2 of at most 2: undecided all; asking 2 more samples, up to 15 a cell" in text
    assert "2/5 answered" in text


def test_what_is_no_terminal_gets_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(make_progress(io.StringIO()), PlainProgress)
    make_progress().stage("done", "")
    assert capsys.readouterr().err == "Done\n"


def test_a_log_hears_of_a_long_start_and_a_terminal_shows_the_time_anyway() -> None:
    stream = io.StringIO()
    PlainProgress(stream).waiting(90.4)
    assert stream.getvalue() == "not ready after 90 s\n"


def test_a_plan_by_cell_is_shown_before_it_is_asked(by_cell: Result) -> None:
    stream = io.StringIO()
    assert by_cell.plan is not None
    PlainProgress(stream).planned(by_cell.plan)
    text = stream.getvalue()
    assert "  n2/8K-16K " in text
    assert "Not tested: 100 rows excluded (512K-1M)." in text
    assert text.splitlines()[-1].startswith("Asking 10 samples (10 with 2 needles), ")


def test_a_fetch_is_told_line_by_line_and_foreign_text_in_it_is_harmless(hostile: str) -> None:
    stream = io.StringIO()
    shown = PlainProgress(stream)
    shown.fetching("2needle/2needle_0.parquet: fetching 266 MB")
    shown.fetching(hostile)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0] == "2needle/2needle_0.parquet: fetching 266 MB"
    assert not lines[1].strip().startswith("::")
    assert "##[" not in lines[1]


def test_a_terminal_hears_of_a_fetch_and_markup_in_it_is_literal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    shown = make_progress(stream)
    try:
        shown.fetching("[bold]2needle[/bold]")
    finally:
        shown.close()
    assert "[bold]2needle[/bold]" in stream.getvalue()
