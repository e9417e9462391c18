from collections.abc import Callable
from typing import Any

import pytest

from mrcr_action.checks import threshold_of
from mrcr_action.config import RunConfig
from mrcr_action.coverage import Coverage
from mrcr_action.errors import CellMissing, ExitCode
from mrcr_action.gate import EXIT_CODES, check_cells, judge
from mrcr_action.plan import Cell, Plan
from mrcr_action.result import Bucket, Check, Record, Verdict

MakeBucket = Callable[..., Bucket]
MakeCell = Callable[..., Cell]
MakePlan = Callable[..., Plan]
MakeRecord = Callable[..., Record]


def states(verdict: Verdict) -> dict[str, str]:
    return {check.bucket: check.state for check in verdict.checks}


def test_a_missed_threshold_fails_with_the_figures_in_the_message(make_bucket: MakeBucket) -> None:
    config = RunConfig(match_ratio_threshold={4: 0.84})
    verdict = judge([make_bucket(4, 0.7)], config)
    assert verdict == Verdict(
        conclusion="fail",
        summary="MRCR thresholds failed: match_ratio_n4: 0.7000 < 0.8400 - 0.0500",
        checks=(
            Check(
                bucket="n4",
                state="fail",
                message="match_ratio_n4: 0.7000 < 0.8400 - 0.0500",
                measured=0.7,
                threshold=0.84,
                tolerance=0.05,
                samples=10,
            ),
        ),
    )


def test_a_met_threshold_passes_with_the_figures_in_the_message(make_bucket: MakeBucket) -> None:
    verdict = judge([make_bucket(None, 0.8)], RunConfig(match_ratio_threshold=0.84))
    assert verdict.conclusion == "pass"
    assert verdict.summary == "MRCR passed: match_ratio: 0.8000 >= 0.8400 - 0.0500"


@pytest.mark.parametrize(
    ("measured", "threshold", "tolerance", "expected"),
    [
        (0.5, 0.75, 0.25, "pass"),
        (0.5 - 2**-54, 0.75, 0.25, "fail"),
        (0.84 - 0.05, 0.84, 0.05, "pass"),
        (0.79, 0.84, 0.05, "pass" if 0.79 >= 0.84 - 0.05 else "fail"),
        (0.84, 0.84, 0.0, "pass"),
        (0.8399999999, 0.84, 0.0, "fail"),
        (0.0, 0.05, 0.05, "pass"),
        (0.0, 0.0, 0.0, "pass"),
        (0.0, 0.05, 1.0, "pass"),
        (1.0, 1.0, 0.0, "pass"),
    ],
)
def test_a_ratio_on_the_boundary_passes_and_the_next_below_fails(
    make_bucket: MakeBucket, measured: float, threshold: float, tolerance: float, expected: str
) -> None:
    config = RunConfig(match_ratio_threshold={4: threshold}, tolerance=tolerance)
    assert judge([make_bucket(4, measured)], config).conclusion == expected


def test_a_scalar_threshold_speaks_of_the_mean_of_all_samples_only(
    make_bucket: MakeBucket,
) -> None:
    buckets = [make_bucket(None, 0.8), make_bucket(2, 1.0), make_bucket(8, 0.1)]
    verdict = judge(buckets, RunConfig(match_ratio_threshold=0.8))
    assert states(verdict) == {"all": "pass", "n2": "measured", "n8": "measured"}
    assert verdict.conclusion == "pass"


def test_thresholds_by_needle_count_speak_of_the_listed_ones_only(make_bucket: MakeBucket) -> None:
    buckets = [make_bucket(None, 0.1), make_bucket(2, 0.9), make_bucket(8, 0.1)]
    verdict = judge(buckets, RunConfig(match_ratio_threshold={2: 0.9}))
    assert states(verdict) == {"all": "measured", "n2": "pass", "n8": "measured"}
    assert verdict.conclusion == "pass"
    assert verdict.checks[0] == Check(
        bucket="all", state="measured", message="match_ratio: 0.1000", measured=0.1, samples=10
    )


def test_a_threshold_of_zero_is_a_threshold(make_bucket: MakeBucket) -> None:
    config = RunConfig(match_ratio_threshold={2: 0})
    assert threshold_of(make_bucket(2), config) == 0
    assert states(judge([make_bucket(2, 0.0)], config)) == {"n2": "pass"}


def test_the_protocol_says_which_ratio_is_gated(make_bucket: MakeBucket) -> None:
    bucket = make_bucket(2, match_ratio_openai=0.9, match_ratio_vllm=0.1)
    openai = RunConfig(match_ratio_threshold={2: 0.9}, protocol="openai")
    vllm = RunConfig(match_ratio_threshold={2: 0.9}, protocol="vllm")
    assert judge([bucket], openai).conclusion == "pass"
    assert judge([bucket], vllm).conclusion == "fail"


def test_every_missed_threshold_is_named(make_bucket: MakeBucket) -> None:
    config = RunConfig(match_ratio_threshold={2: 0.9, 4: 0.9, 8: 0.5})
    verdict = judge([make_bucket(2, 0.1), make_bucket(4, 0.2), make_bucket(8, 0.5)], config)
    assert verdict.summary == (
        "MRCR thresholds failed: match_ratio_n2: 0.1000 < 0.9000 - 0.0500;"
        " match_ratio_n4: 0.2000 < 0.9000 - 0.0500"
    )


def test_without_a_threshold_the_run_passes_and_says_that_nothing_was_gated(
    make_bucket: MakeBucket,
) -> None:
    verdict = judge([make_bucket(None), make_bucket(2)], RunConfig())
    assert verdict.conclusion == "pass"
    assert verdict.summary == "MRCR measured; no threshold was set, so nothing was gated"
    assert states(verdict) == {"all": "measured", "n2": "measured"}


def test_nothing_collected_is_inconclusive_and_never_green(make_bucket: MakeBucket) -> None:
    verdict = judge([make_bucket(None, None), make_bucket(2, None)], RunConfig())
    assert verdict.conclusion == "inconclusive"
    assert verdict.summary == (
        "MRCR is inconclusive: match_ratio: no samples collected; match_ratio_n2: no samples"
        " collected"
    )


def test_a_gated_bucket_without_samples_is_not_passed_over(make_bucket: MakeBucket) -> None:
    config = RunConfig(match_ratio_threshold={2: 0.9, 8: 0.9})
    verdict = judge([make_bucket(2, 1.0), make_bucket(8, None)], config)
    assert verdict.conclusion == "inconclusive"
    assert states(verdict) == {"n2": "pass", "n8": "inconclusive"}


def test_an_ungated_bucket_without_samples_makes_the_run_inconclusive(
    make_bucket: MakeBucket,
) -> None:
    config = RunConfig(match_ratio_threshold={2: 0.9})
    verdict = judge([make_bucket(2, 1.0), make_bucket(8, None)], config)
    assert verdict.conclusion == "inconclusive"


def test_a_needle_count_of_which_nothing_was_asked_is_no_gap(make_bucket: MakeBucket) -> None:
    verdict = judge([make_bucket(2, 1.0), make_bucket(8, None, wanted=0)], RunConfig())
    assert verdict.conclusion == "pass"
    assert verdict.checks[1].message == "match_ratio_n8: no samples were asked for"


def test_a_failed_bucket_wins_over_an_inconclusive_one(make_bucket: MakeBucket) -> None:
    config = RunConfig(match_ratio_threshold={2: 0.9, 8: 0.9})
    verdict = judge([make_bucket(8, None), make_bucket(2, 0.1)], config)
    assert verdict.conclusion == "fail"
    assert states(verdict) == {"n8": "inconclusive", "n2": "fail"}
    assert verdict.summary == "MRCR thresholds failed: match_ratio_n2: 0.1000 < 0.9000 - 0.0500"


@pytest.mark.parametrize(
    ("lost", "max_failures", "expected"),
    [
        ({}, 0, "pass"),
        ({"failed": 1}, 0, "inconclusive"),
        ({"rejected": 1}, 0, "inconclusive"),
        ({"failed": 1, "rejected": 1}, 2, "pass"),
        ({"failed": 2, "rejected": 1}, 2, "inconclusive"),
        ({"truncated": 5, "scored": 5}, 0, "pass"),
    ],
)
def test_more_lost_requests_than_allowed_leave_a_bucket_unclear(
    make_bucket: MakeBucket, lost: dict[str, int], max_failures: int, expected: str
) -> None:
    config = RunConfig(match_ratio_threshold={2: 0.9}, max_failures=max_failures)
    assert judge([make_bucket(2, 1.0, **lost)], config).conclusion == expected


def test_a_bucket_with_too_many_lost_is_unclear_even_below_its_threshold(
    make_bucket: MakeBucket,
) -> None:
    config = RunConfig(match_ratio_threshold={2: 0.9}, max_failures=1)
    verdict = judge([make_bucket(2, 0.1, asked=13, failed=2, rejected=1)], config)
    assert verdict.conclusion == "inconclusive"
    assert verdict.checks[0].message == (
        "match_ratio_n2: 3 of 13 requests were lost (2 failed, 1 refused; max_failures is 1)"
    )


@pytest.mark.parametrize(
    ("conclusion", "code"),
    [
        ("pass", ExitCode.PASS),
        ("fail", ExitCode.FAIL),
        ("inconclusive", ExitCode.CANNOT_JUDGE),
    ],
)
def test_only_a_pass_ends_in_exit_code_zero(conclusion: Any, code: ExitCode) -> None:
    assert EXIT_CODES[conclusion] == code
    assert (code == 0) == (conclusion == "pass")


@pytest.mark.parametrize(
    ("graded", "keys", "conclusion"),
    [
        (4, {}, "pass"),
        (3, {}, "inconclusive"),
        (3, {"max_failures": 1}, "pass"),
        (2, {"max_failures": 1}, "inconclusive"),
        (2, {"min_samples": 2}, "pass"),
        (1, {"min_samples": 2}, "inconclusive"),
    ],
)
def test_fewer_samples_than_asked_for_are_no_evidence_for_a_threshold(
    make_bucket: MakeBucket, graded: int, keys: dict[str, Any], conclusion: str
) -> None:
    bucket = make_bucket(None, 0.9, wanted=4, scored=graded)
    config = RunConfig(num_samples=4, needles=(2,), match_ratio_threshold=0.5, **keys)
    verdict = judge([bucket], config)
    assert verdict.conclusion == conclusion
    if conclusion == "inconclusive":
        assert f"only {graded} of 4 samples graded" in verdict.summary


def test_fewer_samples_without_a_threshold_are_measured(make_bucket: MakeBucket) -> None:
    bucket = make_bucket(None, 0.9, wanted=4, scored=1)
    assert judge([bucket], RunConfig(num_samples=4, needles=(2,))).conclusion == "pass"


def cell(**changes: Any) -> Coverage:
    values: dict[str, Any] = {
        "name": "n8/64K-128K",
        "n_needles": 8,
        "low": 65_536,
        "high": 131_072,
        "rows": 100,
        "fitting": 0,
        "planned": 0,
        "asked": 0,
        "scored": 0,
        "truncated": 0,
        "rejected": 0,
        "failed": 0,
        "requested": True,
        "dropped": {"too long": 98, "invalid": 2},
    }
    return Coverage(**(values | changes))


def test_a_named_cell_of_which_nothing_can_be_asked_makes_the_verdict_inconclusive(
    make_bucket: MakeBucket,
) -> None:
    config = RunConfig(match_ratio_threshold={2: 0.9})
    verdict = judge([make_bucket(2, 1.0)], config, [cell()])
    assert verdict.conclusion == "inconclusive"
    assert states(verdict) == {"n2": "pass", "n8/64K-128K": "inconclusive"}
    assert verdict.summary == (
        "MRCR is inconclusive: n8/64K-128K: no row to ask: 98 of 100 too long, 2 of 100 invalid"
        " (exclude leaves the cell out)"
    )


def test_a_named_cell_that_the_dataset_lacks_is_said_to_be_missing(make_bucket: MakeBucket) -> None:
    verdict = judge([make_bucket(2, 1.0)], RunConfig(), [cell(rows=0, dropped={})])
    assert verdict.checks[-1].message == (
        "n8/64K-128K: no row to ask: the dataset has none (exclude leaves the cell out)"
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"requested": False},
        {"planned": 1, "fitting": 1, "asked": 1, "scored": 1},
        {"requested": False, "dropped": {"excluded": 100}},
    ],
)
def test_other_cells_have_no_part_in_the_verdict(
    make_bucket: MakeBucket, changes: dict[str, Any]
) -> None:
    config = RunConfig(match_ratio_threshold={2: 0.9})
    verdict = judge([make_bucket(2, 1.0)], config, [cell(**changes)])
    assert verdict == judge([make_bucket(2, 1.0)], config)


def test_a_missed_threshold_wins_over_a_missing_cell(make_bucket: MakeBucket) -> None:
    config = RunConfig(match_ratio_threshold={2: 0.9})
    verdict = judge([make_bucket(2, 0.1)], config, [cell()])
    assert verdict.conclusion == "fail"
    assert states(verdict) == {"n2": "fail", "n8/64K-128K": "inconclusive"}


def test_a_cell_of_which_rows_fit_but_none_is_asked_does_not_blame_the_window(
    make_bucket: MakeBucket,
) -> None:
    found = cell(fitting=40, dropped={"too long": 60})
    verdict = judge([make_bucket(2, 1.0)], RunConfig(), [found])
    assert verdict.checks[-1].message == (
        "n8/64K-128K: no row to ask: none chosen fits, or num_samples is too small"
        " (exclude leaves the cell out)"
    )


def test_a_plan_without_a_cell_that_is_named_is_refused_before_anything_is_asked(
    make_plan: MakePlan, make_cell: MakeCell, make_record: MakeRecord
) -> None:
    lacking = {"fitting": 0, "planned": 0, "requested": True}
    cells = (
        make_cell(2, "8K-16K", planned=1, requested=True),
        make_cell(2, "64K-128K", **lacking, dropped={"too long": 98, "invalid": 2}),
        make_cell(2, "512K-1M", **lacking, rows=0),
        make_cell(2, "128K-256K", fitting=0, planned=0, dropped={"too long": 100}),
    )
    plan = make_plan([make_record(0)], RunConfig(protocol="openai", needles=(2,)), cells=cells)

    with pytest.raises(CellMissing) as caught:
        check_cells(plan)

    assert str(caught.value) == (
        "n2/64K-128K: no row to ask: 98 of 100 too long, 2 of 100 invalid;"
        " n2/512K-1M: no row to ask: the dataset has none"
    )
    assert "exclude" in caught.value.hint
    assert caught.value.exit_code == ExitCode.CANNOT_JUDGE


def test_a_plan_with_every_cell_that_is_named_is_asked(
    make_plan: MakePlan, make_cell: MakeCell, make_record: MakeRecord
) -> None:
    cells = (
        make_cell(2, "8K-16K", planned=1, requested=True),
        make_cell(2, "512K-1M", fitting=0, planned=0, dropped={"too long": 100}),
    )
    config = RunConfig(protocol="openai", needles=(2,))
    check_cells(make_plan([make_record(0)], config, cells=cells))
    check_cells(make_plan([make_record(0)], RunConfig()))
