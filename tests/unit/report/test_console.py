import io
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from mrcr_action.auc import Area
from mrcr_action.config import RunConfig
from mrcr_action.report.console import print_plan, print_result
from mrcr_action.report.rows import COLUMNS
from mrcr_action.report.summary import render_summary
from mrcr_action.result import Problem, Record, Result

MakeResult = Callable[..., Result]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "200")
    return Terminal()


def printed(result: Result, files: tuple[Path, ...] = ()) -> str:
    stream = io.StringIO()
    print_result(result, files, stream)
    return stream.getvalue()


def test_a_log_gets_plain_aligned_lines(make_result: MakeResult) -> None:
    config = RunConfig(num_samples=3, match_ratio_threshold={8: 0.9})
    assert printed(make_result(config=config), (Path("out/a.json"), Path("out/b.xml"))) == (
        "model: model org/model, protocol vllm, prompts of 8,000 to 8,002 tokens, limit 30,464,"
        " window 32,768\n"
        "Cost: 60.0 s (server start 50.0), 1,200 output tokens, 300.0 output tokens/s\n"
        "  bucket       verdict     ratio   95 %  needed  nonce  exact  graded  lost\n"
        "  all samples  · measured  0.8000  –     –       1.000  0.000  3/3     0\n"
        "  2 needles    · measured  0.9000  –     –       1.000  0.000  1/1     0\n"
        "  4 needles    · measured  0.8000  –     –       1.000  0.000  1/1     0\n"
        "  8 needles    ✗ FAIL      0.7000  –     0.8500  1.000  0.000  1/1     0\n"
        "  cell       ratio   asked  graded  lost  o200k tokens  rows  fit\n"
        "  n2/8K-16K  0.9000  1/1    1       0     9,000         –     –\n"
        "  n4/8K-16K  0.8000  1/1    1       0     9,000         –     –\n"
        "  n8/8K-16K  0.7000  1/1    1       0     9,000         –     –\n"
        "MRCR thresholds failed: match_ratio_n8: 0.7000 < 0.9000 - 0.0500\n"
        "Reports: out/a.json, out/b.xml\n"
    )


def test_areas_are_printed_where_there_are_any(make_result: MakeResult) -> None:
    area = Area(n_needles=2, up_to=131_072, auc=0.616, n=50)
    told = "AUC as Context Arena counts it: n2 @128K 61.6% (50 samples)"
    assert told in printed(make_result(auc=(area,))).splitlines()
    assert f"- {told}" in render_summary([make_result(auc=(area,))]).splitlines()
    assert "AUC" not in printed(make_result()) + render_summary([make_result()])


def test_what_stopped_the_run_is_printed_with_log_and_hint(make_result: MakeResult) -> None:
    problem = Problem(kind="ServerError", message="it died", hint="look there", details="a\nb")
    result = make_result(records=[], problem=problem, notes=("a note",), model=None)
    assert printed(result) == (
        "model: model ?, protocol vllm, window 32,768\n"
        "Cost: 60.0 s (server start 50.0), 1,200 output tokens, 300.0 output tokens/s\n"
        "note: a note\n"
        "a\n"
        "b\n"
        "MRCR is inconclusive: it died\n"
        "look there\n"
    )


@pytest.mark.parametrize(
    ("config", "problem", "colour"),
    [
        (RunConfig(num_samples=3), None, 32),
        (RunConfig(num_samples=3, match_ratio_threshold=0.99), None, 31),
        (RunConfig(num_samples=3), Problem(kind="ServerError", message="died"), 33),
    ],
)
def test_a_terminal_sees_the_verdict_in_colour(
    make_result: MakeResult,
    terminal: Terminal,
    config: RunConfig,
    problem: Problem | None,
    colour: int,
) -> None:
    result = make_result(config=config, problem=problem)
    print_result(result, [], terminal)
    assert f"\x1b[1;{colour}m{result.verdict.summary}" in terminal.getvalue()
    for words in ("bucket", "needed", "all samples", "8 needles", "0.7000"):
        assert words in terminal.getvalue()


def test_no_foreign_control_character_reaches_a_log(
    make_result: MakeResult, make_record: Callable[..., Record], hostile: str
) -> None:
    text = printed(
        hostile_result(make_result, hostile), (Path(f"out/{hostile}".replace("\0", "")),)
    )
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\x85\u2028\u2029\u202e\ud800-\udfff]", text)
    assert not re.search(r"(?m)^\s*::|##\[", text)
    text.encode()


def test_no_foreign_control_character_reaches_a_terminal(
    make_result: MakeResult, terminal: Terminal, hostile: str
) -> None:
    print_result(hostile_result(make_result, hostile), [], terminal)
    # Only colours, which rich sets itself, and nothing that hostile text brought along.
    text = re.sub("\x1b\\[(0|1|2|3|1;3[123])m", "", terminal.getvalue())
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\x85\u2028\u2029\u202e\ud800-\udfff]", text)
    assert "\x1b[31mred" not in terminal.getvalue()


def test_markup_of_the_terminal_library_is_literal(
    make_result: MakeResult, terminal: Terminal
) -> None:
    print_result(
        make_result(name="[bold red]x[/]", notes=("[link=file:///]y[/link]",)), [], terminal
    )
    assert "[bold red]x[/]" in terminal.getvalue()
    assert "[link=file:///]y[/link]" in terminal.getvalue()


def test_without_a_stream_standard_output_is_used(
    make_result: MakeResult, capsys: pytest.CaptureFixture[str]
) -> None:
    print_result(make_result(), [])
    assert capsys.readouterr().out == printed(make_result())


def hostile_result(make_result: MakeResult, hostile: str) -> Result:
    return make_result(
        name=hostile,
        model=hostile,
        notes=(hostile,),
        problem=Problem(kind="ServerError", message=hostile, hint=hostile, details=hostile),
    )


def test_coverage_is_printed_by_cell_and_what_lies_out_of_reach(by_cell: Result) -> None:
    lines = printed(by_cell).splitlines()
    at = lines.index("Not tested: 100 rows excluded (512K-1M).")
    assert [" ".join(line.split()) for line in lines[at - 3 : at]] == [
        "cell ratio asked graded lost o200k tokens rows fit left out",
        "n2/8K-16K 0.9000 10/10 10 0 9,000 100 60 40 too long",
        "n2/64K-128K – 0/0 0 0 – 100 0 100 too long",
    ]
    assert lines[-1].startswith("MRCR is inconclusive: n2/64K-128K: no row to ask: ")


def test_a_terminal_sees_every_cell(by_cell: Result, terminal: Terminal) -> None:
    print_result(by_cell, [], terminal)
    for words in ("n2/8K-16K", "n2/64K-128K", "10/10", "100 too long", "Not tested: 100 rows"):
        assert words in terminal.getvalue()


def test_that_scores_are_not_comparable_is_printed(merged: Result) -> None:
    assert f"note: {merged.notes[0]}" in printed(merged).splitlines()


def test_a_plan_is_printed_as_a_table(by_cell: Result) -> None:
    stream = io.StringIO()
    assert by_cell.plan is not None
    print_plan(by_cell.plan, stream)
    lines = stream.getvalue().splitlines()
    assert [line.split()[0] for line in lines] == ["cell", "n2/8K-16K", "n2/64K-128K", "all", "Not"]


def test_the_table_of_a_run_that_asked_nothing_is_not_printed(make_result: MakeResult) -> None:
    problem = Problem(kind="ServerError", message="it died")
    assert "  cell " not in printed(make_result(records=[], problem=problem))


def test_the_table_of_buckets_fits_a_terminal_of_80_columns(
    bounded: Result, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    quiet = tuple(msgspec.structs.replace(b, failed=0, truncated=0) for b in bounded.buckets)
    print_result(msgspec.structs.replace(bounded, buckets=quiet), [], terminal)
    lines = [
        re.sub("\x1b\\[[0-9;]*m", "", line).strip() for line in terminal.getvalue().splitlines()
    ]
    (header,) = [line for line in lines if line.startswith("bucket")]
    assert header.split() == " ".join(COLUMNS).split()
    (cell,) = [line for line in lines if line.startswith("n2/4K-8K") and "FAIL" in line]
    assert " ".join(cell.split()) == ("n2/4K-8K ✗ FAIL 0.4500 0.29–0.61 0.9000 1.000 0.000 4/8 0")
