import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcr_action.intervals import FEWEST, Interval, bounded_interval, mean_interval, share_interval

RATIOS = st.lists(st.floats(0, 1), min_size=FEWEST, max_size=40)


@pytest.mark.parametrize("values", [[], [0.5], [0.1, 0.9], [0.1, 0.2, 0.3, 0.4, 0.5]])
def test_a_mean_of_few_samples_has_no_interval(values: list[float]) -> None:
    assert mean_interval(values) is None


def test_five_values_on_one_side_are_more_frequent_than_an_end_may_miss_and_six_are_not() -> None:
    assert 2.0 ** -(FEWEST - 1) > 0.025 > 2.0**-FEWEST


def test_equal_values_show_no_spread_and_are_marked_as_a_point() -> None:
    interval = mean_interval([0.25] * 10)
    assert interval == Interval(0.25, 0.25)
    assert interval.is_point
    assert interval.excludes_zero


def test_the_interval_leaves_a_fortieth_of_all_resamples_on_either_side() -> None:
    # By hand: of six values, five 0 and one 6, the mean of a resample is how often the 6 was
    # drawn. P(0) = (5/6)^6 = 33.5 %; P(<= 2) = 93.8 %, P(<= 3) = 99.1 %: the ends are 0 and 3.
    chances = [math.comb(6, k) * 5 ** (6 - k) / 6**6 for k in range(7)]
    assert chances[0] > 0.025
    assert sum(chances[:3]) < 0.975 < sum(chances[:4])
    assert mean_interval([0, 0, 6, 0, 0, 0]) == Interval(0, 3)


def test_the_interval_is_the_one_of_all_resamples_there_are() -> None:
    values = [0.0, 0.1, 0.3, 0.35, 0.8, 1.0]
    means = [sum(drawn) / 6 for drawn in itertools.product(values, repeat=6)]
    low, high = np.quantile(means, (0.025, 0.975))
    interval = mean_interval(values)
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=0.01)


@given(values=RATIOS)
def test_the_interval_holds_the_mean_and_lies_within_the_values(values: list[float]) -> None:
    interval = mean_interval(values)
    assert interval is not None
    assert min(values) - 1e-12 <= interval.low <= interval.high <= max(values) + 1e-12


@pytest.mark.parametrize(("hits", "n"), [(0, 4), (10, 10), (1, 7), (9, 14), (45, 50)])
def test_a_bounded_interval_of_right_and_wrong_answers_is_that_of_their_share(
    hits: int, n: int
) -> None:
    bounded = bounded_interval([1.0] * hits + [0.0] * (n - hits))
    share = share_interval(hits, n)
    assert bounded is not None
    assert share is not None
    assert (bounded.low, bounded.high) == pytest.approx((share.low, share.high), abs=0.01)


def test_equal_samples_leave_a_bounded_interval_its_width() -> None:
    perfect, none = bounded_interval([1.0] * 10), bounded_interval([0.0] * 10)
    assert perfect is not None
    assert none is not None
    assert perfect.high == 1
    assert none.low == 0
    assert not perfect.is_point
    # One in 40 servers that have 69 % right answers gives ten right ones in a row.
    assert perfect.low == pytest.approx(0.025**0.1, abs=0.01)


@given(values=st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_a_bounded_interval_holds_the_mean_and_widens_with_its_level(values: list[float]) -> None:
    usual, wide = bounded_interval(values), bounded_interval(values, 0.99)
    assert usual is not None
    assert wide is not None
    mean = sum(values) / len(values)
    assert 0 <= wide.low <= usual.low <= mean + 1e-12
    assert mean - 1e-12 <= usual.high <= wide.high <= 1


def test_a_bounded_interval_does_not_depend_on_the_order_and_of_nothing_there_is_none() -> None:
    values = [*np.random.default_rng(3).random(30).tolist(), 1.0, 1.0, 0.0]
    assert bounded_interval(values) == bounded_interval(values[::-1])
    assert bounded_interval([]) is None


def test_of_many_samples_a_bounded_interval_is_the_usual_one() -> None:
    values = np.random.default_rng(4).beta(2, 1, 400).tolist()
    bounded, usual = bounded_interval(values), mean_interval(values)
    assert bounded is not None
    assert usual is not None
    assert (bounded.low, bounded.high) == pytest.approx((usual.low, usual.high), abs=0.01)


def test_the_order_of_the_samples_decides_nothing() -> None:
    values = np.random.default_rng(3).random(50).tolist()
    assert mean_interval(values) == mean_interval(values[::-1])


def test_many_samples_have_the_interval_of_a_normal_mean() -> None:
    values = np.random.default_rng(3).random(2_400)
    interval = mean_interval(values.tolist())
    assert interval is not None
    # What the central limit theorem says of so many.
    half = 1.96 * values.std() / math.sqrt(2_400)
    expected = values.mean() - half, values.mean() + half
    assert (interval.low, interval.high) == pytest.approx(expected, abs=0.1 * half)


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [
        # R. G. Newcombe, Statistics in Medicine 17 (1998) 857, table I, the exact method.
        (81, 263, 0.2527, 0.3676),
        (15, 148, 0.0578, 0.1617),
        (0, 20, 0.0000, 0.1684),
        (1, 29, 0.0009, 0.1776),
    ],
)
def test_a_share_has_the_published_exact_interval(
    hits: int, n: int, low: float, high: float
) -> None:
    interval = share_interval(hits, n)
    assert interval is not None
    assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)


@pytest.mark.parametrize("n", [1, 5, 100, 2_400])
def test_none_and_all_have_the_ends_that_a_formula_gives(n: int) -> None:
    # None of n: (1 - share)^n = 2.5 % at the upper end.
    end = 0.025 ** (1 / n)
    none, every = share_interval(0, n), share_interval(n, n)
    assert none is not None
    assert every is not None
    assert (none.low, every.high) == (0, 1)
    assert (none.high, every.low) == pytest.approx((1 - end, end), abs=1e-12)


@given(n=st.integers(1, 300), data=st.data())
def test_at_each_end_what_was_seen_has_a_chance_of_a_fortieth(n: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, n))
    interval = share_interval(hits, n)
    assert interval is not None
    assert 0 <= interval.low <= hits / n <= interval.high <= 1
    if hits > 0:
        assert at_least(hits, n, interval.low) == pytest.approx(0.025, rel=1e-6)
    if hits < n:
        assert at_least(n - hits, n, 1 - interval.high) == pytest.approx(0.025, rel=1e-6)


def at_least(hits: int, n: int, share: float) -> float:
    return math.fsum(
        math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(hits, n + 1)
    )


def test_a_share_of_nothing_has_no_interval() -> None:
    assert share_interval(0, 0) is None


@pytest.mark.parametrize(("hits", "n"), [(-1, 5), (6, 5), (1, 0)])
def test_a_share_that_cannot_be_is_an_error(hits: int, n: int) -> None:
    with pytest.raises(ValueError, match="is no share"):
        share_interval(hits, n)


@pytest.mark.parametrize("interval", [Interval(-0.2, -0.1), Interval(0.1, 0.2)])
def test_an_interval_on_one_side_of_zero_excludes_it(interval: Interval) -> None:
    assert interval.excludes_zero


@pytest.mark.parametrize(
    "interval", [Interval(-0.2, 0), Interval(0, 0.2), Interval(-0.1, 0.1), Interval(0, 0)]
)
def test_an_interval_that_touches_zero_does_not_exclude_it(interval: Interval) -> None:
    assert not interval.excludes_zero
