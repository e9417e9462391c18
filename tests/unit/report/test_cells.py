"""The tables of cells."""

from collections.abc import Callable
from typing import Any

import pytest

from mrcr_action.config import RunConfig
from mrcr_action.coverage import Coverage, Spread
from mrcr_action.grade import Grade
from mrcr_action.plan import Cell, Plan
from mrcr_action.report.cells import (
    COVERAGE_COLUMNS,
    PLAN_COLUMNS,
    beyond,
    coverage_table,
    left_out,
    plan_table,
    shown,
    spread,
)
from mrcr_action.result import Record
from mrcr_action.stats import coverage_of

MakeCell = Callable[..., Cell]
MakePlan = Callable[..., Plan]
MakeRecord = Callable[..., Record]

OPENAI = RunConfig(protocol="openai", needles=(2, 8))


@pytest.fixture
def records(make_record: MakeRecord) -> list[Record]:
    return [
        make_record(0, n_needles=2, o200k_tokens=9_000),
        make_record(1, None, n_needles=2, o200k_tokens=12_000),
        make_record(2, 0.5, n_needles=8, o200k_tokens=9_500, outcome="truncated"),
    ]


@pytest.fixture
def plan(make_plan: MakePlan, make_cell: MakeCell, records: list[Record]) -> Plan:
    """Two cells that are asked, one that is named in vain, three that are out of reach."""
    cells = (
        make_cell(2, "8K-16K", rows=1_100, fitting=1_050, planned=2, dropped={"too long": 50}),
        make_cell(2, "512K-1M", fitting=0, planned=0, dropped={"too long": 100}),
        make_cell(8, "8K-16K", planned=1),
        make_cell(8, "16K-32K", rows=0, fitting=0, planned=0, requested=True),
        make_cell(8, "256K-512K", fitting=0, planned=0, dropped={"too long": 100}),
        make_cell(8, "512K-1M", rows=1_000, fitting=0, planned=0, dropped={"too long": 1_000}),
    )
    return make_plan(records, OPENAI, cells=cells)


def test_a_plan_is_a_table_of_cells_with_their_sum(plan: Plan) -> None:
    assert plan_table(plan, coverage_of(plan, ())) == [
        PLAN_COLUMNS,
        (
            *("n2/8K-16K", "1,100", "1,050", "2", "9,000 – 10,500 – 12,000", "16,001"),
            "50 too long",
        ),
        ("n8/8K-16K", "100", "100", "1", "9,500", "8,002", "–"),
        ("n8/16K-32K", "0", "0", "0", "–", "0", "–"),
        ("all", "1,200", "1,150", "3", "–", "24,003", "–"),
    ]


def test_coverage_is_a_table_of_what_was_asked_and_lost(plan: Plan, records: list[Record]) -> None:
    assert coverage_table(coverage_of(plan, records), "openai") == [
        COVERAGE_COLUMNS,
        (
            *("n2/8K-16K", "0.9000", "2/2", "1", "1 failed", "9,000 – 10,500 – 12,000"),
            *("1,100", "1,050", "50 too long"),
        ),
        ("n8/8K-16K", "0.5000", "1/1", "1", "1 truncated", "9,500", "100", "100", "–"),
        ("n8/16K-32K", "–", "0/0", "0", "0", "–", "0", "0", "–"),
    ]


@pytest.mark.parametrize(("protocol", "expected"), [("openai", "0.3000"), ("vllm", "0.7500")])
def test_the_ratio_of_a_cell_is_the_mean_that_its_protocol_gates_on(
    make_plan: MakePlan,
    make_record: MakeRecord,
    make_grade: Callable[..., Grade],
    protocol: str,
    expected: str,
) -> None:
    grades = [
        make_grade(match_ratio_openai=0.5, match_ratio_vllm=1.0),
        make_grade(match_ratio_openai=0.1, match_ratio_vllm=0.5),
    ]
    # A lost request has no part in the mean.
    records = [make_record(i, grade=grade) for i, grade in enumerate(grades)]
    records.append(make_record(2, None))
    cells = coverage_of(make_plan(records, OPENAI), records)

    (row,) = coverage_table(cells, protocol)[1:]
    assert row[COVERAGE_COLUMNS.index("ratio")] == expected


def test_a_column_that_would_be_blank_is_left_out(
    make_plan: MakePlan, make_record: MakeRecord
) -> None:
    plan = make_plan([make_record(0)], RunConfig())
    cells = coverage_of(plan, [make_record(0)])

    assert plan_table(plan, cells)[0] == PLAN_COLUMNS[:-1]
    assert coverage_table(cells, "vllm")[0] == COVERAGE_COLUMNS[:-1]
    assert plan_table(plan, cells)[1][:3] == ("n2/8K-16K", "–", "–")
    assert plan_table(plan, cells)[-1][:4] == ("all", "–", "–", "1")


def test_every_row_of_a_table_is_as_wide_as_its_header(plan: Plan, records: list[Record]) -> None:
    for table in (
        plan_table(plan, coverage_of(plan, ())),
        coverage_table(coverage_of(plan, records), "openai"),
    ):
        assert {len(row) for row in table} == {len(table[0])}


def test_cells_out_of_reach_are_summed_up_in_a_sentence(plan: Plan) -> None:
    cells = coverage_of(plan, ())

    assert [cell.name for cell in shown(cells)] == ["n2/8K-16K", "n8/8K-16K", "n8/16K-32K"]
    assert beyond(cells) == "Not tested: 1,200 rows too long (256K-512K, 512K-1M)."


def test_what_is_not_tested_is_told_by_reason_and_a_bin_tested_elsewhere_by_cell(
    make_plan: MakePlan, make_cell: MakeCell, records: list[Record]
) -> None:
    cells = (
        make_cell(2, "4K-8K", rows=20, fitting=0, planned=0, dropped={"excluded": 20}),
        make_cell(2, "8K-16K", planned=2),
        make_cell(2, "16K-32K", rows=5, fitting=0, planned=0, dropped={"excluded": 5}),
        make_cell(8, "4K-8K", planned=1),
        make_cell(8, "16K-32K", rows=7, fitting=0, planned=0, dropped={"excluded": 7}),
        make_cell(
            *(8, "256K-512K"),
            rows=1_200,
            fitting=0,
            planned=0,
            dropped={"invalid": 2, "too long": 1_198},
        ),
        make_cell(8, "512K-1M", rows=0, fitting=0, planned=0),
    )
    assert beyond(coverage_of(make_plan(records, OPENAI, cells=cells), ())) == (
        "Not tested: 32 rows excluded (n2/4K-8K, 16K-32K); 2 rows invalid (256K-512K);"
        " 1,198 rows too long (256K-512K)."
    )


def test_where_everything_is_tested_there_is_nothing_to_say(
    make_plan: MakePlan, make_record: MakeRecord
) -> None:
    assert beyond(coverage_of(make_plan([make_record(0)], RunConfig()), ())) == ""
    assert beyond(()) == ""
    assert coverage_table((), "openai") == [COVERAGE_COLUMNS[:-1]]


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        (None, "–"),
        (Spread(1, 1, 1), "1"),
        (Spread(4_096, 4_096.0, 4_096), "4,096"),
        (Spread(1, 1.5, 2), "1 – 2 – 2"),
        (Spread(4_096, 6_000.5, 1_048_576), "4,096 – 6,000 – 1,048,576"),
    ],
)
def test_lengths_are_least_median_and_most_or_one_number_where_all_are_equal(
    lengths: Spread | None, expected: str
) -> None:
    assert spread(lengths) == expected


def test_why_rows_are_left_out_is_said_by_reason(make_cell: MakeCell) -> None:
    def of(dropped: dict[Any, int]) -> Coverage:
        return Coverage(
            name="n2/8K-16K",
            n_needles=2,
            low=8192,
            high=16384,
            rows=9,
            fitting=0,
            planned=0,
            asked=0,
            scored=0,
            truncated=0,
            rejected=0,
            failed=0,
            dropped=dropped,
        )

    assert left_out(of({"too long": 3, "invalid": 1})) == "3 too long, 1 invalid"
    assert left_out(of({})) == "–"
