from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcr_action.grade import Grade
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
