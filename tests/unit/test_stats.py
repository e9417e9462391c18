from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcr_action.config.thresholds import METRICS
from mrcr_action.grade import Grade
from mrcr_action.intervals import mean_interval
from mrcr_action.plan import Cell
from mrcr_action.result import Bucket, Record
from mrcr_action.stats import buckets_of, mean

MakeRecord = Callable[..., Record]


@given(values=st.lists(st.floats(0, 1), min_size=1, max_size=300))
def test_the_mean_is_numpys_to_the_last_bit(values: list[float]) -> None:
    assert mean(values) == float(np.mean(values))


def test_the_mean_of_nothing_is_none_and_no_zero() -> None:
    assert mean([]) is None


def test_the_first_bucket_is_all_samples_and_the_others_are_the_needle_counts(
    make_record: MakeRecord, make_grade: Callable[..., Grade]
) -> None:
    exact = make_grade(exact=True, match_ratio_openai=1.0, match_ratio_vllm=0.95)
    missed = make_grade(0.0, nonce_hit=False)
    records = [
        make_record(0, n_needles=2, grade=exact),
        make_record(1, n_needles=8, grade=missed, outcome="truncated"),
        make_record(2, n_needles=2, grade=make_grade(0.5)),
    ]
    overall, two, eight = buckets_of(records, {2: 2, 8: 1})
    assert overall == Bucket(
        name="all",
        n_needles=None,
        wanted=3,
        asked=3,
        scored=2,
        truncated=1,
        rejected=0,
        failed=0,
        match_ratio_openai=0.5,
        match_ratio_vllm=float(np.mean([0.95, 0.0, 0.5])),
        prefix_hit_rate=float(np.mean([1, 0, 1])),
        exact_rate=float(np.mean([1, 0, 0])),
    )
    assert (two.name, two.n_needles, two.wanted, two.asked) == ("n2", 2, 2, 2)
    assert (two.match_ratio_openai, two.exact_rate) == (0.75, 0.5)
    assert (eight.name, eight.graded, eight.truncated) == ("n8", 1, 1)
    assert (eight.match_ratio_vllm, eight.prefix_hit_rate) == (0.0, 0.0)


@pytest.mark.parametrize("outcome", ["failed", "rejected"])
def test_a_lost_request_is_counted_and_never_a_zero(make_record: MakeRecord, outcome: str) -> None:
    records = [make_record(0, 0.9), make_record(1, None, outcome=outcome)]
    overall, two = buckets_of(records, {2: 2})
    for bucket in (overall, two):
        assert bucket.match_ratio_openai == 0.9
        assert bucket.match_ratio_vllm == 0.9
        assert bucket.prefix_hit_rate == 1.0
        assert (bucket.graded, bucket.lost, bucket.asked, bucket.wanted) == (1, 1, 2, 2)


def test_a_truncated_answer_is_graded_as_it_is(make_record: MakeRecord) -> None:
    (overall, _) = buckets_of([make_record(0, 0.4, outcome="truncated")], {2: 1})
    assert (overall.scored, overall.truncated, overall.graded) == (0, 1, 1)
    assert overall.match_ratio_openai == 0.4


def test_a_bucket_without_graded_samples_has_no_ratio(make_record: MakeRecord) -> None:
    overall, two, four = buckets_of([make_record(0, None)], {2: 1, 4: 1})
    for bucket in (overall, two, four):
        assert bucket.match_ratio_openai is None
        assert bucket.match_ratio_vllm is None
        assert bucket.prefix_hit_rate is None
        assert bucket.exact_rate is None
    assert (two.asked, four.asked, four.wanted) == (1, 0, 1)


def test_a_needle_count_of_which_nothing_is_wanted_has_a_bucket_nevertheless() -> None:
    assert [bucket.name for bucket in buckets_of([], {2: 1, 8: 0})] == ["all", "n2", "n8"]


def test_every_planned_cell_is_a_bucket_of_its_own_samples(
    make_record: MakeRecord, make_cell: Callable[..., Cell]
) -> None:
    records = [
        make_record(0, 0.9, o200k_tokens=5_000),
        make_record(1, 0.5, o200k_tokens=9_000, outcome="truncated"),
        make_record(2, None, o200k_tokens=16_384),
        make_record(3, 0.1, n_needles=8, o200k_tokens=9_000),
    ]
    cells = [
        make_cell(2, "4K-8K", planned=1),
        make_cell(2, "8K-16K", planned=3),
        make_cell(2, "16K-32K", planned=0),
        make_cell(8, "8K-16K", planned=1),
        make_cell(8, "4K-8K", planned=2),
    ]
    buckets = buckets_of(records, {2: 4, 8: 3}, cells=cells)
    assert [bucket.name for bucket in buckets] == [
        *("all", "n2", "n8", "n2/4K-8K", "n2/8K-16K", "n8/8K-16K", "n8/4K-8K")
    ]
    assert [bucket.bin for bucket in buckets[:3]] == [None] * 3
    assert [str(bucket.bin) for bucket in buckets[3:]] == ["4K-8K", "8K-16K", "8K-16K", "4K-8K"]
    cell = buckets[4]
    assert (cell.n_needles, cell.low, cell.high) == (2, 8_192, 16_384)
    assert (cell.wanted, cell.asked, cell.truncated, cell.failed) == (3, 2, 1, 1)
    assert cell.match_ratio_openai == 0.5
    assert (buckets[6].wanted, buckets[6].asked, buckets[6].match_ratio_openai) == (2, 0, None)


def test_the_interval_is_that_of_the_gated_ratio_over_graded_samples(
    make_record: MakeRecord, make_grade: Callable[..., Grade]
) -> None:
    ratios = [0.1 * i for i in range(8)]
    records = [
        make_record(i, grade=make_grade(match_ratio_openai=r, match_ratio_vllm=1 - r))
        for i, r in enumerate(ratios)
    ]
    records.append(make_record(8, None))
    openai, _ = buckets_of(records, {2: 9}, protocol="openai")
    vllm, _ = buckets_of(records, {2: 9}, protocol="vllm")
    assert openai.interval == mean_interval(ratios)
    assert vllm.interval == mean_interval([1 - r for r in ratios])
    (few, _) = buckets_of(records[:3], {2: 3}, protocol="openai")
    assert few.interval is None


def test_samples_that_a_stopped_run_did_not_come_to_are_told_apart(make_record: MakeRecord) -> None:
    records = [
        make_record(0, None),
        make_record(1, None, attempts=0),
        make_record(2, None, outcome="rejected"),
    ]
    (overall, _) = buckets_of(records, {2: 3})
    assert (overall.failed, overall.unasked, overall.lost) == (2, 1, 3)


def test_rates_are_shares_of_what_they_are_named_after(make_bucket: Callable[..., Bucket]) -> None:
    bucket = make_bucket(scored=6, truncated=2, failed=1, rejected=1, asked=10)
    assert (bucket.truncation_rate, bucket.failure_rate) == (0.25, 0.2)
    nothing = make_bucket(ratio=None)
    assert (nothing.truncation_rate, nothing.failure_rate) == (None, None)
    found = {m: bucket.measured(m, "openai") for m in METRICS}
    assert found == {
        "match_ratio": 0.9,
        "nonce_rate": 1.0,
        "exact_rate": 0.5,
        "truncation_rate": 0.25,
        "failure_rate": 0.2,
    }
