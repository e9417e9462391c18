import re
from collections.abc import Callable

import msgspec
import pytest

from mrcr_action.config import RunConfig
from mrcr_action.report import heat
from mrcr_action.report.heat import GLUE, SHADES, chart_markdown
from mrcr_action.report.html.groups import by_length, first_round
from mrcr_action.report.html.heat import STEPS
from mrcr_action.result import Record, Result

MakeResult = Callable[..., Result]
MakeRecord = Callable[..., Record]

SHORT, MIDDLE, LONG = 5_000, 9_000, 20_000
"""Tokens of three bins."""


@pytest.fixture
def spread(make_result: MakeResult, make_record: MakeRecord) -> Result:
    """Two needle counts over three lengths, one cell of which was never asked."""
    asked = [(2, SHORT, 1.0), (2, MIDDLE, 0.5), (2, LONG, 0.1), (4, SHORT, 0.9), (4, MIDDLE, None)]
    records = [
        make_record(i, ratio, n_needles=needles, o200k_tokens=tokens)
        for i, (needles, tokens, ratio) in enumerate(asked)
    ]
    config = RunConfig(needles=(2, 4), num_samples=5, thresholds={"n2": 0.9}, max_failures=1)
    return make_result(config=config, records=records)


def heat_markdown(result: Result) -> str:
    """With plain spaces, for the eye."""
    return heat.heat_markdown(result).replace(GLUE, " ")


def rows(text: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]


def test_needles_are_rows_and_lengths_columns(spread: Result) -> None:
    head, rule, two, four, every = rows(heat_markdown(spread))
    assert head == ["needles", "4K-8K", "8K-16K", "16K-32K", "all lengths"]
    assert len(rule) == len(head)
    assert two[:4] == ["2", "█ 1.000<br>n 1", "▃ 0.500<br>n 1", "▁ 0.100<br>n 1"]
    assert four[:4] == ["4", "▆ 0.900<br>n 1", "–<br>n 0", ""]
    assert every[:4] == ["all", "█ 0.950<br>n 2", *two[2:4]]


def test_what_was_decided_and_what_is_needed_stand_with_the_bucket(spread: Result) -> None:
    two, four, every = rows(heat_markdown(spread))[2:]
    assert two[-1] == "▃ 0.533 **✗**<br>n 3<br>needs 0.850"
    assert four[-1] == "▆ 0.900<br>n 1"
    assert every[-1] == "▅ 0.625<br>n 4"


def test_a_cell_with_a_threshold_has_its_mark(bounded: Result) -> None:
    (row,) = rows(heat_markdown(bounded))[2:]
    assert row[1] == "▃ 0.450 **✗**<br>n 8<br>needs 0.900"
    assert row[2] == "█ 0.950<br>n 8"


def test_one_needle_count_needs_no_row_for_all(bounded: Result) -> None:
    assert [row[0] for row in rows(heat_markdown(bounded))] == ["needles", "---:", "2"]


def test_one_length_is_no_table(make_result: MakeResult) -> None:
    assert heat_markdown(make_result()) == ""
    assert heat_markdown(make_result(records=[])) == ""


def test_further_passes_are_not_mixed_in(make_result: MakeResult, make_record: MakeRecord) -> None:
    records = [
        make_record(0, 1.0, o200k_tokens=SHORT),
        make_record(1, 1.0, o200k_tokens=MIDDLE),
        make_record(2, 0.0, o200k_tokens=SHORT, pass_name="warm"),
    ]
    result = make_result(config=RunConfig(needles=(2,), num_samples=2), records=records)
    assert "█ 1.000<br>n 1 | █ 1.000<br>n 1" in heat_markdown(result)


def test_every_step_has_a_shade_of_its_own(
    make_result: MakeResult, make_record: MakeRecord
) -> None:
    assert len(set(SHADES)) == len(STEPS) + 1
    for at, ratio in enumerate((0.0, *STEPS)):
        records = [make_record(i, ratio, o200k_tokens=t) for i, t in enumerate((SHORT, LONG))]
        result = make_result(config=RunConfig(needles=(2,), num_samples=2), records=records)
        assert f"| {SHADES[at]} {ratio:.3f}<br>" in heat_markdown(result)


def test_lengths_are_in_order_and_counted_over_all_needles(spread: Result) -> None:
    found = by_length(first_round(spread.records), spread.config.protocol)
    assert [(str(length), of.n, of.lost) for length, of in found.items()] == [
        ("4K-8K", 2, 0),
        ("8K-16K", 1, 1),
        ("16K-32K", 1, 0),
    ]


def test_a_chart_has_a_bar_for_each_length(spread: Result) -> None:
    assert chart_markdown(spread).splitlines()[-5:] == [
        '    title "Mean match ratio by length, all needle counts"',
        '    x-axis ["4K-8K", "8K-16K", "16K-32K"]',
        "    y-axis 0 --> 1",
        "    bar [0.950, 0.500, 0.100]",
        "```",
    ]


@pytest.mark.parametrize(
    ("ratios", "drawn"),
    [((0.9, 0.1), False), ((1.0, 1.0, 0.98), False), ((1.0, 1.0, 0.5), True)],
)
def test_a_chart_that_adds_nothing_is_not_drawn(
    make_result: MakeResult, make_record: MakeRecord, ratios: tuple[float, ...], *, drawn: bool
) -> None:
    lengths = (SHORT, MIDDLE, LONG)
    records = [make_record(i, r, o200k_tokens=lengths[i]) for i, r in enumerate(ratios)]
    result = make_result(config=RunConfig(needles=(2,), num_samples=3), records=records)
    assert bool(chart_markdown(result)) is drawn


def test_no_foreign_text_is_in_either(spread: Result, hostile: str) -> None:
    records = [
        msgspec.structs.replace(record, shard=hostile, reason=hostile) for record in spread.records
    ]
    changed = msgspec.structs.replace(
        spread, name=hostile, model=hostile, records=tuple(records), notes=(hostile,)
    )
    assert heat_markdown(changed) == heat_markdown(spread)
    assert chart_markdown(changed) == chart_markdown(spread)
    assert re.fullmatch(r"```mermaid\n[^`<]*\n```", chart_markdown(changed))


def test_a_figure_and_its_mark_stand_on_one_line(bounded: Result) -> None:
    (row,) = rows(heat.heat_markdown(bounded))[2:]
    assert [line for cell in row for line in cell.split("<br>") if " " in line] == []
