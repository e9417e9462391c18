from collections.abc import Callable
from typing import Any

import pytest

from mrcr_action.config import RunConfig
from mrcr_action.config.thresholds import Metric
from mrcr_action.margins import can_be_missed, one_sample_decides, toothless
from mrcr_action.result import Bucket

MakeBucket = Callable[..., Bucket]


def test_a_threshold_that_nobody_can_miss_is_pointed_out() -> None:
    config = RunConfig(match_ratio_threshold={2: 0.05, 4: 0.5})
    assert toothless(config) == [
        "The threshold 0.05 with a tolerance of 0.05 can never be missed (2 needles)."
    ]
    assert toothless(RunConfig(match_ratio_threshold=0.0)) != []
    assert toothless(RunConfig(match_ratio_threshold=0.5)) == toothless(RunConfig()) == []


@pytest.mark.parametrize(
    ("metric", "bound", "said"),
    [
        ("nonce_rate", 0, True),
        ("nonce_rate", 0.01, False),
        ("exact_rate", 0, True),
        ("exact_rate", 1, False),
        ("truncation_rate", 1, True),
        ("truncation_rate", 0, False),
        ("failure_rate", 1, True),
        ("failure_rate", 0.99, False),
    ],
)
def test_a_rate_has_no_tolerance_that_could_make_it_toothless(
    metric: str,
    bound: float,
    said: bool,  # noqa: FBT001
) -> None:
    config = RunConfig(thresholds={"n8/4K-8K": {metric: bound}}, tolerance=1)  # type: ignore[dict-item]
    expected = [f"The threshold {metric} {bound:g} can never be missed (n8/4K-8K)."]
    assert toothless(config) == (expected if said else [])


def test_one_sentence_names_every_bucket_that_one_sample_decides(make_bucket: MakeBucket) -> None:
    buckets = [
        make_bucket(None, scored=30),
        make_bucket(2, scored=20),
        make_bucket(4, scored=14),
        make_bucket(8, scored=8, truncated=5),
    ]
    config = RunConfig(match_ratio_threshold={2: 0.9, 4: 0.9, 8: 0.9})
    assert one_sample_decides(buckets, config) == [
        (
            "One sample decides: it can move the match ratio by more than the tolerance of 0.05 in"
            " n4 (0.0714), n8 (0.0769). Ask for more samples, or set decision: confident."
        )
    ]


@pytest.mark.parametrize(
    ("keys", "samples"),
    [
        ({"match_ratio_threshold": 0.9}, 20),
        ({"match_ratio_threshold": 0.9, "decision": "confident"}, 2),
        ({"match_ratio_threshold": 0.05}, 2),
        ({"match_ratio_threshold": {2: 0.9}}, 2),
        ({"thresholds": {"all": {"nonce_rate": 0.9}}}, 2),
        ({}, 2),
        ({"match_ratio_threshold": 0.9}, 0),
    ],
)
def test_nothing_is_said_where_no_sample_decides(
    make_bucket: MakeBucket, keys: dict[str, Any], samples: int
) -> None:
    assert one_sample_decides([make_bucket(None, scored=samples)], RunConfig(**keys)) == []


def test_no_more_buckets_are_named_than_a_sentence_bears(make_bucket: MakeBucket) -> None:
    buckets = [make_bucket(n, scored=2) for n in range(1, 10)]
    (said,) = one_sample_decides(
        buckets, RunConfig(match_ratio_threshold=dict.fromkeys(range(1, 10), 0.9))
    )
    assert "n6 (0.5000) and 3 more. Ask" in said


def test_the_step_of_a_bucket_is_what_one_graded_sample_weighs(make_bucket: MakeBucket) -> None:
    assert make_bucket(scored=3, truncated=1, failed=4).step == 0.25
    assert make_bucket(2, None).step is None


@pytest.mark.parametrize(
    ("metric", "threshold", "tolerance", "expected"),
    [
        ("match_ratio", 0.05, 0.05, False),
        ("match_ratio", 0.06, 0.05, True),
        ("nonce_rate", 0.0, 0.0, False),
        ("exact_rate", 0.01, 0.0, True),
        ("truncation_rate", 0.0, 0.0, True),
        ("failure_rate", 1.0, 0.0, False),
    ],
)
def test_a_least_is_missed_from_below_and_a_most_from_above(
    metric: Metric,
    threshold: float,
    tolerance: float,
    expected: bool,  # noqa: FBT001
) -> None:
    assert can_be_missed(metric, threshold, tolerance) == expected


@pytest.mark.parametrize(("allowed", "said"), [(None, 0), (0.99, 0), (1.0, 1)])
def test_a_baseline_that_no_server_can_fall_behind_is_said(
    allowed: float | None, said: int
) -> None:
    notes = toothless(RunConfig(baseline="base", max_regression=allowed))
    assert notes == ["With a max_regression of 1 no fall against the baseline is too large."] * said
