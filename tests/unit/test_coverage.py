"""What was tested of each cell."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from mrcr_action.bins import Bin
from mrcr_action.config import RunConfig
from mrcr_action.coverage import Spread, in_bin
from mrcr_action.grade import Grade
from mrcr_action.plan import Ask, Cell, Plan
from mrcr_action.result import Record
from mrcr_action.stats import coverage_of

MakeCell = Callable[..., Cell]
MakePlan = Callable[..., Plan]
MakeRecord = Callable[..., Record]

OPENAI = RunConfig(protocol="openai", needles=(2, 8))


def test_without_a_plan_nothing_is_covered() -> None:
    assert coverage_of(None, []) == ()


def test_every_cell_is_told_whether_or_not_it_was_planned(
    make_plan: MakePlan, make_record: MakeRecord, make_cell: MakeCell
) -> None:
    records = [make_record(0, n_needles=2), make_record(1, n_needles=2)]
    cells = (
        make_cell(2, "8K-16K", rows=100, fitting=90, planned=2, dropped={"too long": 10}),
        make_cell(8, "8K-16K", rows=40, fitting=0, planned=0, dropped={"excluded": 40}),
        make_cell(8, "16K-32K", rows=0, fitting=0, planned=0, requested=True),
    )
    plan = make_plan(records, OPENAI, cells=cells)

    found = coverage_of(plan, records)

    assert [cell.name for cell in found] == ["n2/8K-16K", "n8/8K-16K", "n8/16K-32K"]
    assert [(c.rows, c.fitting, c.planned, c.asked, c.scored) for c in found] == [
        (100, 90, 2, 2, 2),
        (40, 0, 0, 0, 0),
        (0, 0, 0, 0, 0),
    ]
    assert [cell.dropped for cell in found] == [{"too long": 10}, {"excluded": 40}, {}]
    assert [cell.is_missing for cell in found] == [False, False, True]
    assert found[0].bin == Bin(8192, 16384)
    assert found[1].o200k_tokens is None
    assert found[1].prompt_tokens is None


def test_outcomes_are_counted_in_the_cell_of_their_sample(
    make_plan: MakePlan, make_record: MakeRecord, make_cell: MakeCell
) -> None:
    records = [
        make_record(0, n_needles=2, o200k_tokens=9_000),
        make_record(1, None, n_needles=2, o200k_tokens=9_000),
        make_record(2, None, n_needles=2, o200k_tokens=9_000, outcome="rejected"),
        make_record(3, 0.5, n_needles=2, o200k_tokens=9_000, outcome="truncated"),
        make_record(4, n_needles=2, o200k_tokens=17_000),
        make_record(5, n_needles=8, o200k_tokens=9_000),
    ]
    cells = tuple(make_cell(n, b) for n, b in ((2, "8K-16K"), (2, "16K-32K"), (8, "8K-16K")))
    plan = make_plan(records, OPENAI, cells=cells)

    first, second, third = coverage_of(plan, records)

    assert (first.scored, first.failed, first.rejected, first.truncated) == (1, 1, 1, 1)
    assert (first.planned, first.asked) == (4, 4)
    for cell in (second, third):
        assert (cell.planned, cell.asked, cell.scored) == (1, 1, 1)


def test_a_cell_has_the_means_of_its_own_graded_samples(
    make_plan: MakePlan,
    make_record: MakeRecord,
    make_cell: MakeCell,
    make_grade: Callable[..., Grade],
) -> None:
    records = [
        make_record(0, grade=make_grade(match_ratio_openai=0.5, match_ratio_vllm=1.0)),
        make_record(1, None),
        make_record(
            *(2, 0.0),
            grade=make_grade(match_ratio_openai=0.0, match_ratio_vllm=0.25),
            outcome="truncated",
        ),
        make_record(3, 0.9, o200k_tokens=17_000),
        make_record(4, None, o200k_tokens=33_000),
    ]
    cells = tuple(make_cell(2, bin_) for bin_ in ("8K-16K", "16K-32K", "32K-64K", "64K-128K"))

    found = coverage_of(make_plan(records, OPENAI, cells=cells), records)

    assert [(c.match_ratio_openai, c.match_ratio_vllm) for c in found] == [
        (0.25, 0.625),
        (0.9, 0.9),
        (None, None),
        (None, None),
    ]
    assert [found[0].match_ratio(protocol) for protocol in ("openai", "vllm")] == [0.25, 0.625]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"fitting": 0, "dropped": {"too long": 90, "excluded": 10}},
            "90 of 100 too long, 10 of 100 excluded",
        ),
        ({"fitting": 0, "rows": 0}, "the dataset has none"),
        (
            {"fitting": 5, "dropped": {"too long": 95}},
            "none chosen fits, or num_samples is too small",
        ),
    ],
)
def test_why_a_cell_cannot_be_asked_is_told_by_reason(
    make_plan: MakePlan, make_cell: MakeCell, changes: dict[str, Any], reason: str
) -> None:
    plan = make_plan([], OPENAI, cells=(make_cell(8, "64K-128K", planned=0, **changes),))

    (cell,) = coverage_of(plan, ())

    assert cell.why_missing == f"n8/64K-128K: no row to ask: {reason}"


def test_an_ask_that_was_never_sent_is_planned_and_not_asked(
    make_plan: MakePlan, make_record: MakeRecord, make_cell: MakeCell
) -> None:
    records = [make_record(0), make_record(1, None, attempts=0), make_record(2)]
    plan = make_plan(records, OPENAI, cells=(make_cell(2, "8K-16K", planned=3),))

    (cell,) = coverage_of(plan, records[:2])

    assert (cell.planned, cell.asked, cell.scored, cell.failed) == (3, 1, 1, 1)


def test_lengths_are_those_of_all_samples_planned(
    make_plan: MakePlan, make_record: MakeRecord, make_cell: MakeCell
) -> None:
    records = [
        make_record(i, o200k_tokens=9_000 + 100 * i, prompt_tokens=8_000 + i) for i in range(4)
    ]
    plan = make_plan(records, OPENAI, cells=(make_cell(2, "8K-16K"),))
    counted = [msgspec.structs.replace(records[3], prompt_tokens=9_999)]

    (cell,) = coverage_of(plan, counted)

    assert cell.o200k_tokens == Spread(9_000, 9_150.0, 9_300)
    # The server's own number where it told one, the plan's elsewhere.
    assert cell.prompt_tokens == Spread(8_000, 8_001.5, 9_999)


def test_cells_of_the_vllm_protocol_are_those_that_its_samples_lie_in(
    make_plan: MakePlan, make_record: MakeRecord
) -> None:
    lengths = [(8, 20_000), (2, 9_000), (2, 500), (2, 9_001)]
    records = [make_record(i, n_needles=n, o200k_tokens=t) for i, (n, t) in enumerate(lengths)]

    found = coverage_of(make_plan(records, RunConfig()), records)

    assert [(cell.name, cell.planned, cell.asked) for cell in found] == [
        ("n8/16K-32K", 1, 1),
        ("n2/0-512", 1, 1),
        ("n2/8K-16K", 2, 2),
    ]
    assert {(cell.rows, cell.fitting) for cell in found} == {(None, None)}
    assert not any(cell.is_missing for cell in found)


@pytest.mark.parametrize(
    ("tokens", "inside"), [(4_096, True), (4_095, False), (8_192, True), (8_193, False)]
)
def test_a_sample_lies_in_the_bin_of_the_dataset_card(tokens: int, inside: bool) -> None:  # noqa: FBT001
    ask = Ask(
        index=0, shard="s", row=0, sha256="", n_needles=2, prompt_tokens=1, o200k_tokens=tokens
    )
    assert in_bin(ask, Bin(4096, 8192)) == inside
