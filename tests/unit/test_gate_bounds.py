"""The gate's rates, cells and intervals; the match ratio's own rule is in test_gate.py."""

from collections.abc import Callable
from typing import Any

import pytest

from mrcr_action.config import RunConfig
from mrcr_action.coverage import Coverage
from mrcr_action.gate import judge
from mrcr_action.intervals import Interval, share_interval
from mrcr_action.result import Bucket, Check, Verdict

MakeBucket = Callable[..., Bucket]

CELL = {"name": "n8/4K-8K", "low": 4096, "high": 8192}


def config_of(thresholds: Any, **keys: Any) -> RunConfig:
    return RunConfig(protocol="openai", thresholds=thresholds, **keys)


def states(verdict: Verdict) -> dict[tuple[str, str], str]:
    return {(check.bucket, check.metric): check.state for check in verdict.checks}


@pytest.mark.parametrize(
    ("metric", "bound", "changes", "expected"),
    [
        ("match_ratio", 0.75, {"match_ratio_openai": 0.75}, "pass"),
        ("match_ratio", 0.75, {"match_ratio_openai": 0.75 - 2**-53}, "fail"),
        ("nonce_rate", 0.9, {"prefix_hit_rate": 0.9}, "pass"),
        ("nonce_rate", 0.9, {"prefix_hit_rate": 0.8}, "fail"),
        ("nonce_rate", 1.0, {"prefix_hit_rate": 1.0}, "pass"),
        ("exact_rate", 0.5, {"exact_rate": 0.5}, "pass"),
        ("exact_rate", 0.5, {"exact_rate": 0.4}, "fail"),
        ("exact_rate", 0.0, {"exact_rate": 0.0}, "pass"),
        ("truncation_rate", 0.3, {"scored": 7, "truncated": 3}, "pass"),
        ("truncation_rate", 0.3, {"scored": 6, "truncated": 4}, "fail"),
        ("truncation_rate", 0.0, {"scored": 10}, "pass"),
        ("failure_rate", 0.3, {"scored": 7, "failed": 2, "rejected": 1}, "pass"),
        ("failure_rate", 0.3, {"scored": 6, "failed": 3, "rejected": 1}, "fail"),
        ("failure_rate", 0.0, {"scored": 10}, "pass"),
    ],
)
def test_every_metric_has_a_bound_that_may_be_reached_and_not_be_passed(
    make_bucket: MakeBucket, metric: str, bound: float, changes: dict[str, Any], expected: str
) -> None:
    bucket = make_bucket(8, **{"asked": 10, **changes})
    verdict = judge([bucket], config_of({"n8": {metric: bound}}, tolerance=0))
    assert verdict.conclusion == expected
    assert states(verdict)["n8", metric] == expected


@pytest.mark.parametrize("metric", ["nonce_rate", "exact_rate"])
def test_the_tolerance_is_for_match_ratios_only(make_bucket: MakeBucket, metric: str) -> None:
    bucket = make_bucket(8, prefix_hit_rate=0.8, exact_rate=0.8)
    verdict = judge([bucket], config_of({"n8": {metric: 0.9}}, tolerance=1))
    assert verdict.conclusion == "fail"
    assert verdict.checks[1].tolerance is None


def test_a_check_of_a_rate_tells_what_was_measured_and_how_sure_that_is(
    make_bucket: MakeBucket,
) -> None:
    bucket = make_bucket(8, prefix_hit_rate=0.8, interval=Interval(0.7, 0.95))
    ratio, nonce = judge([bucket], config_of({"n8": {"nonce_rate": 0.9}})).checks
    assert ratio == Check(
        bucket="n8",
        state="measured",
        message="match_ratio_n8: 0.9000",
        measured=0.9,
        samples=10,
        interval=Interval(0.7, 0.95),
    )
    assert nonce == Check(
        bucket="n8",
        metric="nonce_rate",
        state="fail",
        message="nonce_rate_n8: 0.8000 < 0.9000",
        measured=0.8,
        threshold=0.9,
        samples=10,
        interval=share_interval(8, 10),
    )


@pytest.mark.parametrize(
    ("thresholds", "expected"),
    [
        ({"all": {"nonce_rate": 1}}, "nonce_rate: 0.8000 < 1.0000"),
        ({"all": {"nonce_rate": 0.8}}, "nonce_rate: 0.8000 >= 0.8000"),
        ({"all": {"truncation_rate": 0}}, "truncation_rate: 0.2000 > 0.0000"),
        ({"all": {"truncation_rate": 0.5}}, "truncation_rate: 0.2000 <= 0.5000"),
    ],
)
def test_messages_say_which_way_a_bound_holds(
    make_bucket: MakeBucket, thresholds: Any, expected: str
) -> None:
    bucket = make_bucket(None, prefix_hit_rate=0.8, scored=8, truncated=2)
    assert judge([bucket], config_of(thresholds)).checks[1].message == expected


def test_every_missed_bound_of_a_bucket_is_named_and_its_worst_state_is_its_own(
    make_bucket: MakeBucket,
) -> None:
    config = config_of({"n8": {"match_ratio": 0.99, "nonce_rate": 0.5, "exact_rate": 0.9}})
    verdict = judge([make_bucket(8)], config)
    assert verdict.summary == (
        "MRCR thresholds failed: match_ratio_n8: 0.9000 < 0.9900 - 0.0500;"
        " exact_rate_n8: 0.5000 < 0.9000"
    )
    assert [check.state for check in verdict.of("n8")] == ["fail", "pass", "fail"]
    assert verdict.state_of("n8") == "fail"
    assert verdict.state_of("n4") == "measured"


def test_a_bucket_without_evidence_is_explained_once_whatever_its_bounds(
    make_bucket: MakeBucket,
) -> None:
    config = config_of({"n8": {"match_ratio": 0.5, "nonce_rate": 0.5, "truncation_rate": 0.5}})
    verdict = judge([make_bucket(8, asked=10, scored=9, failed=1)], config)
    assert {check.state for check in verdict.checks} == {"inconclusive"}
    assert verdict.summary == (
        "MRCR is inconclusive: match_ratio_n8: 1 of 10 requests were lost (1 failed, 0 refused;"
        " max_failures is 0)"
    )


@pytest.mark.parametrize("metric", ["nonce_rate", "exact_rate", "truncation_rate", "failure_rate"])
def test_no_rate_passes_without_a_sample(make_bucket: MakeBucket, metric: str) -> None:
    bound = 1.0 if metric in {"truncation_rate", "failure_rate"} else 0.0
    for wanted in (10, 0):
        bucket = make_bucket(8, None, wanted=wanted)
        verdict = judge([bucket], config_of({"n8": {metric: bound}}))
        assert verdict.conclusion == "inconclusive"


def test_a_rate_needs_as_many_samples_as_a_ratio(make_bucket: MakeBucket) -> None:
    bucket = make_bucket(8, wanted=20)
    config = config_of({"n8": {"nonce_rate": 0.5}})
    assert judge([bucket], config).conclusion == "inconclusive"
    lower = config_of({"n8": {"nonce_rate": 0.5}}, min_samples=10)
    assert judge([bucket], lower).conclusion == "pass"


# --- failure rates


def test_a_failure_rate_takes_the_place_of_max_failures_in_its_bucket(
    make_bucket: MakeBucket,
) -> None:
    bucket = make_bucket(8, asked=10, scored=8, failed=2)
    config = config_of({"n8": {"match_ratio": 0.9, "failure_rate": 0.2}})
    verdict = judge([bucket], config)
    assert verdict.conclusion == "pass"
    assert states(verdict) == {("n8", "match_ratio"): "pass", ("n8", "failure_rate"): "pass"}
    stricter = config_of({"n8": {"match_ratio": 0.9, "failure_rate": 0.1}}, max_failures=9)
    verdict = judge([bucket], stricter)
    assert verdict.conclusion == "fail"
    assert verdict.checks[0].message == (
        "match_ratio_n8: 2 of 10 requests were lost (2 failed, 0 refused; failure_rate is at most"
        " 0.1)"
    )
    assert verdict.summary == "MRCR thresholds failed: failure_rate_n8: 0.2000 > 0.1000"


def test_it_does_not_in_another_bucket_with_a_threshold(make_bucket: MakeBucket) -> None:
    buckets = [
        make_bucket(None, wanted=20, asked=20, scored=19, failed=1),
        make_bucket(8, asked=10, scored=9, failed=1),
    ]
    config = config_of({"all": {"failure_rate": 0.1}, "n8": 0.5})
    assert states(judge(buckets, config)) == {
        ("all", "match_ratio"): "measured",
        ("all", "failure_rate"): "pass",
        ("n8", "match_ratio"): "inconclusive",
    }


def test_a_budget_for_all_samples_is_enough_for_parts_without_a_threshold(
    make_bucket: MakeBucket,
) -> None:
    buckets = [
        make_bucket(None, wanted=20, asked=20, scored=19, failed=1),
        make_bucket(8, asked=10, scored=9, failed=1),
    ]
    assert judge(buckets, config_of({"all": {"failure_rate": 0.1}})).conclusion == "pass"
    assert judge(buckets, config_of({"n8": {"failure_rate": 0.1}})).conclusion == "inconclusive"
    nothing = [buckets[0], make_bucket(8, None, asked=10, failed=10)]
    assert judge(nothing, config_of({"all": {"failure_rate": 1}})).conclusion == "inconclusive"


@pytest.mark.parametrize(
    ("failed", "unasked", "expected"),
    [(10, 10, "inconclusive"), (10, 9, "pass"), (10, 8, "fail"), (2, 0, "fail"), (1, 0, "pass")],
)
def test_what_a_stopped_run_did_not_ask_is_no_failure_of_the_server(
    make_bucket: MakeBucket, failed: int, unasked: int, expected: str
) -> None:
    bucket = make_bucket(8, asked=10, scored=10 - failed, failed=failed, unasked=unasked)
    check = judge([bucket], config_of({"n8": {"failure_rate": 0.1}})).checks[1]
    # One failure of ten is allowed, and the others may have become one.
    assert check.state == ("inconclusive" if unasked and expected == "pass" else expected)


def test_the_first_of_a_run_that_was_cut_off_do_not_stand_for_all(make_bucket: MakeBucket) -> None:
    config = config_of({"n8": {"failure_rate": 0.1}})
    # One failure of twenty would do, whatever share it is of those asked in time.
    cut_off = make_bucket(8, None, wanted=20, asked=1, failed=1)
    assert judge([cut_off], config).conclusion == "inconclusive"
    # Three of twenty are too many, even if all others had been answered.
    worse = make_bucket(8, None, wanted=20, asked=3, failed=3)
    assert judge([worse], config).conclusion == "fail"


def test_a_failure_rate_is_told_of_the_requests_that_the_server_had(
    make_bucket: MakeBucket,
) -> None:
    bucket = make_bucket(8, asked=10, scored=2, failed=8, unasked=6)
    check = judge([bucket], config_of({"n8": {"failure_rate": 0.1}})).checks[1]
    assert check.message == "failure_rate_n8: 0.5000 > 0.1000"
    assert (check.measured, check.samples) == (0.5, 4)
    assert check.interval == share_interval(2, 4)


def test_a_failure_rate_needs_as_many_requests_as_were_asked_for(make_bucket: MakeBucket) -> None:
    bucket = make_bucket(8, wanted=20, asked=10)
    config = config_of({"n8": {"failure_rate": 0.5}})
    verdict = judge([bucket], config)
    assert verdict.checks[1].message == (
        "failure_rate_n8: only 10 of 20 samples asked, 20 are needed"
    )
    lower = config_of({"n8": {"failure_rate": 0.5}}, min_samples=10)
    assert judge([bucket], lower).conclusion == "pass"


# --- cells


def test_a_cell_has_a_threshold_of_its_own(make_bucket: MakeBucket) -> None:
    buckets = [make_bucket(8, 0.9), make_bucket(8, 0.5, **CELL)]
    config = config_of({"n8": 0.9, "n8/4K-8K": 0.8})
    verdict = judge(buckets, config)
    assert verdict.summary == (
        "MRCR thresholds failed: match_ratio_n8/4K-8K: 0.5000 < 0.8000 - 0.0500"
    )
    assert states(verdict)["n8", "match_ratio"] == "pass"


@pytest.mark.parametrize(
    "changes", [{}, {"failed": 3}, {"scored": 1}, {"scored": 0, "failed": 10}, {"asked": 0}]
)
def test_a_cell_without_a_threshold_is_measured_whatever_became_of_it(
    make_bucket: MakeBucket, changes: dict[str, Any]
) -> None:
    verdict = judge([make_bucket(8), make_bucket(8, 0.1, **CELL, **changes)], config_of({"n8": 0}))
    assert states(verdict)["n8/4K-8K", "match_ratio"] == "measured"
    assert verdict.conclusion == "pass"


def test_a_cell_with_a_threshold_needs_evidence(make_bucket: MakeBucket) -> None:
    buckets = [make_bucket(8, 0.9), make_bucket(8, None, **CELL)]
    verdict = judge(buckets, config_of({"n8/4K-8K": 0.8}))
    assert verdict.summary == "MRCR is inconclusive: match_ratio_n8/4K-8K: no samples collected"


@pytest.mark.parametrize("thresholds", [{"n8/4K-8K": 0}, {"n8/4K-8K": {"failure_rate": 1}}])
def test_a_bucket_that_is_not_there_never_passes(
    make_bucket: MakeBucket, thresholds: dict[str, Any]
) -> None:
    verdict = judge([make_bucket(None), make_bucket(8)], config_of(thresholds))
    assert verdict.conclusion == "inconclusive"
    assert verdict.summary.endswith("_n8/4K-8K: nothing of it was asked")


def test_a_cell_that_is_missing_is_explained_by_what_was_left_out(make_bucket: MakeBucket) -> None:
    cell = Coverage(
        name="n8/4K-8K",
        n_needles=8,
        low=4096,
        high=8192,
        rows=7,
        fitting=0,
        planned=0,
        asked=0,
        scored=0,
        truncated=0,
        rejected=0,
        failed=0,
        requested=True,
        dropped={"too long": 7},
    )
    verdict = judge([make_bucket(8)], config_of({"n8/4K-8K": 0.5}), [cell])
    assert verdict.summary == (
        "MRCR is inconclusive: n8/4K-8K: no row to ask: 7 of 7 too long (exclude leaves the cell"
        " out)"
    )


def test_many_thresholds_that_were_reached_are_counted(make_bucket: MakeBucket) -> None:
    buckets = [make_bucket(n) for n in range(1, 8)]
    config = config_of({f"n{n}": 0.9 for n in range(1, 8)}, needles=tuple(range(1, 8)))
    assert judge(buckets, config).summary == "MRCR passed: all 7 thresholds were reached"
    assert (
        "; match_ratio_n6: 0.9000 >= "
        in judge(buckets[:6], config_of({f"n{n}": 0.9 for n in range(1, 7)})).summary
    )


# --- decision


def decided(bucket: Bucket, threshold: float, **keys: Any) -> Check:
    config = config_of({"n8": threshold}, decision="confident", **keys)
    return judge([bucket], config).checks[0]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.75, 0.95, "pass"),
        (0.75 - 2**-53, 0.95, "inconclusive"),
        (0.5, 0.75, "inconclusive"),
        (0.5, 0.75 - 2**-53, "fail"),
    ],
)
def test_to_be_confident_is_to_have_the_whole_interval_on_one_side(
    make_bucket: MakeBucket, low: float, high: float, expected: str
) -> None:
    bucket = make_bucket(8, (low + high) / 2, interval=Interval(low, high))
    assert decided(bucket, 0.875, tolerance=0.125).state == expected
    point = config_of({"n8": 0.875}, tolerance=0.125)
    assert judge([bucket], point).conclusion == ("pass" if low + high >= 1.5 else "fail")


def test_a_confident_message_shows_the_interval(make_bucket: MakeBucket) -> None:
    bucket = make_bucket(8, 0.7, interval=Interval(0.6, 0.8))
    assert decided(bucket, 0.9).message == (
        "match_ratio_n8: 0.7000 (95 %: 0.6000 to 0.8000) < 0.9000 - 0.0500"
    )
    assert decided(bucket, 0.6).message == (
        "match_ratio_n8: 0.7000 (95 %: 0.6000 to 0.8000) >= 0.6000 - 0.0500"
    )


@pytest.mark.parametrize(
    ("needed", "expected"),
    [
        (0.65, "about 30 more samples might tell"),
        (0.75, "about 30 more samples might tell"),
        (0.61, "about 3 more samples might tell"),
        (0.6875, "about 630 more samples might tell"),
        (0.695, "it is too close for more samples to tell"),
        (0.7, "it is too close for more samples to tell"),
    ],
)
def test_where_the_interval_has_both_answers_it_is_said_how_many_samples_might_tell(
    make_bucket: MakeBucket, needed: float, expected: str
) -> None:
    bucket = make_bucket(8, 0.7, interval=Interval(0.6, 0.8))
    check = decided(bucket, needed, tolerance=0)
    assert check.state == "inconclusive"
    assert check.message == (
        "match_ratio_n8: 0.7000 (95 %: 0.6000 to 0.8000) is on both sides of"
        f" {needed:.4f} - 0.0000; {expected}"
    )


@pytest.mark.parametrize(("threshold", "expected"), [(0.9, "pass"), (0.91, "fail")])
def test_samples_that_are_all_equal_are_judged_by_their_mean(
    make_bucket: MakeBucket, threshold: float, expected: str
) -> None:
    bucket = make_bucket(8, 0.9, interval=Interval(0.9, 0.9))
    assert decided(bucket, threshold, tolerance=0).state == expected


def test_too_few_samples_for_an_interval_decide_nothing(make_bucket: MakeBucket) -> None:
    bucket = make_bucket(8, 1.0, wanted=5, asked=5, scored=5, interval=None)
    assert decided(bucket, 0.5).state == "inconclusive"
    assert decided(bucket, 0.5).message == (
        "match_ratio_n8: 1.0000, and 5 graded samples are too few for an interval, 6 are needed"
    )


def test_rates_are_exact_bounds_even_when_confident(make_bucket: MakeBucket) -> None:
    config = config_of({"n8": {"nonce_rate": 1}}, decision="confident")
    assert judge([make_bucket(8, prefix_hit_rate=0.9)], config).conclusion == "fail"


def test_lost_requests_come_before_any_interval(make_bucket: MakeBucket) -> None:
    bucket = make_bucket(8, 0.1, failed=1, interval=Interval(0.0, 0.2))
    assert "requests were lost" in decided(bucket, 0.9).message
