from collections.abc import Callable

import msgspec
import pytest

from mrcr_action.comparison.document import Lost
from mrcr_action.comparison.pairs import shared_samples
from mrcr_action.errors import CannotJudge, DataError, UsageError
from mrcr_action.plan import Plan
from mrcr_action.result import Record, Result

MakeRecord = Callable[..., Record]
MakeResult = Callable[..., Result]


def test_samples_are_paired_by_what_was_asked_and_not_by_their_order(
    make_result: MakeResult, make_record: MakeRecord
) -> None:
    records = [make_record(i, 0.1 * i) for i in range(4)]
    shuffled = [
        msgspec.structs.replace(record, ask=place) for place, record in enumerate(reversed(records))
    ]
    shared = shared_samples(make_result(records=records), make_result(records=shuffled))
    assert [pair.ratios for pair in shared.graded] == [(0.1 * i, 0.1 * i) for i in range(4)]
    assert (shared.lost, shared.notes()) == ((), [])


@pytest.mark.parametrize("field", ["shard", "row", "sha256"])
def test_another_question_is_another_sample(
    make_result: MakeResult, make_record: MakeRecord, field: str
) -> None:
    other = {"shard": "2needle/2needle_1.parquet", "row": 999, "sha256": "f" * 64}[field]
    a = make_result(records=[make_record(0), make_record(1)])
    b = make_result(records=[make_record(0), make_record(1, **{field: other})])
    shared = shared_samples(a, b)
    assert len(shared.graded) == 1
    assert shared.notes()[0].startswith("Only 1 samples are in both; 1 are in A alone and 1 in B")
    assert any("another text" in note for note in shared.notes()) is (field == "sha256")


def test_the_protocol_says_which_ratios_are_compared(
    make_result: MakeResult, make_record: MakeRecord, make_grade: Callable[..., object]
) -> None:
    grade = make_grade(match_ratio_openai=0.25, match_ratio_vllm=0.75)
    result = make_result(records=[make_record(0, grade=grade)])
    assert result.config.protocol == "vllm"
    assert shared_samples(result, result).graded[0].ratios == (0.75, 0.75)


def test_what_was_lost_in_either_is_no_pair_and_is_listed_with_what_became_of_it(
    make_result: MakeResult, make_record: MakeRecord
) -> None:
    a = make_result(
        records=[make_record(0), make_record(1), make_record(2, None), make_record(3, None)]
    )
    b = make_result(
        records=[
            make_record(0, outcome="truncated"),
            make_record(1, None, outcome="rejected", reason="too long"),
            make_record(2),
            make_record(3, None, reason="the server died"),
        ]
    )
    shared = shared_samples(a, b)
    assert len(shared.graded) == 1
    assert [(s.row, s.outcome_a, s.outcome_b, s.reason) for s in shared.lost] == [
        (101, "scored", "rejected", "too long"),
        (102, "failed", "scored", "the connection broke"),
        (103, "failed", "failed", "the server died"),
    ]
    assert shared.missed == 1


def test_a_sample_that_was_planned_and_not_asked_is_lost(
    make_result: MakeResult, make_record: MakeRecord, make_plan: Callable[..., Plan]
) -> None:
    records = [make_record(0), make_record(1)]
    a = make_result(records=records)
    cancelled = make_result(records=records[:1], plan=make_plan(records, a.config))
    shared = shared_samples(a, cancelled)
    assert shared.lost == (
        Lost(
            shard=records[1].shard,
            row=101,
            sha256=records[1].sha256,
            pass_name="cold",
            outcome_a="scored",
            outcome_b="not asked",
            reason="",
        ),
    )
    assert shared.missed == 1


def test_a_result_without_a_plan_has_the_samples_of_its_records(
    make_result: MakeResult, make_record: MakeRecord
) -> None:
    a = make_result(records=[make_record(0)], plan=None, coverage=())
    assert len(shared_samples(a, a).graded) == 1


def test_results_of_other_samples_are_refused(
    make_result: MakeResult, make_record: MakeRecord
) -> None:
    a, b = make_result(records=[make_record(0)]), make_result(records=[make_record(1)])
    with pytest.raises(UsageError, match="samples: 1 in A, 1 in B, none in both"):
        shared_samples(a, b)


def test_nothing_graded_in_both_is_no_comparison(
    make_result: MakeResult, make_record: MakeRecord
) -> None:
    a = make_result(records=[make_record(0), make_record(1, None)])
    b = make_result(records=[make_record(0, None), make_record(1)])
    with pytest.raises(CannotJudge, match="no sample is graded in both: 1 of 2 in A, 1 of 2 in B"):
        shared_samples(a, b)


def test_a_run_that_asked_nothing_is_no_comparison(make_result: MakeResult) -> None:
    with pytest.raises(CannotJudge, match="3 of 3 in A, 0 of 0 in B"):
        shared_samples(make_result(), make_result(records=[]))


def test_a_sample_that_is_there_twice_is_an_error(
    make_result: MakeResult, make_record: MakeRecord
) -> None:
    twice = make_result(records=[make_record(0), make_record(0)])
    with pytest.raises(DataError, match=r"B: 2needle/2needle_0\.parquet row 100 is in it twice"):
        shared_samples(make_result(records=[make_record(0)]), twice)


@pytest.mark.parametrize("ratio", [-0.1, 1.1, 1e308])
def test_a_ratio_that_is_none_is_an_error(
    make_result: MakeResult, make_record: MakeRecord, ratio: float
) -> None:
    odd = make_result(records=[make_record(0, ratio)])
    with pytest.raises(DataError, match=r"A: .* row 100: .* is no ratio"):
        shared_samples(odd, odd)
