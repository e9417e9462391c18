import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcr_action.comparison.document import Change
from mrcr_action.comparison.paired import (
    DRAWS,
    MOST_ENUMERATED,
    change_of,
    holm,
    sign_flip_test,
)
from mrcr_action.intervals import Interval

MAIZE = (49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48)
"""Darwin's fifteen pairs of maize plants, differences in eighths of an inch."""

SMALL = st.lists(st.sampled_from([-0.4, -0.3, -0.1, 0.0, 0.1, 0.2, 0.7]), max_size=9)


def by_hand(differences: Sequence[float]) -> tuple[float, float]:
    """Every way to sign the differences, zeros included; in hundredths, so that sums are exact."""
    whole = [round(difference * 100) for difference in differences]
    seen = sum(whole)
    sums = [
        sum(sign * abs(value) for sign, value in zip(signs, whole, strict=True))
        for signs in itertools.product((-1, 1), repeat=len(whole))
    ]
    lower = sum(total <= seen for total in sums) / len(sums)
    return lower, sum(abs(total) >= abs(seen) for total in sums) / len(sums)


def test_darwins_maize_has_the_p_that_fisher_found() -> None:
    # The Design of Experiments (1935), section 21: of 32,768 ways, 863 sum to 314 or more.
    lower, two_sided = sign_flip_test([-difference for difference in MAIZE])
    assert (lower, two_sided) == (863 / 32_768, 1_726 / 32_768)
    assert sign_flip_test(MAIZE)[1] == two_sided


@pytest.mark.parametrize(
    ("differences", "lower", "two_sided"),
    [
        ([], 1, 1),
        ([0, 0, 0], 1, 1),
        ([-1], 1 / 2, 1),
        ([1], 1, 1),
        # Signs --, -+, +-, ++ give -3, 1, -1, 3.
        ([-1, -2], 1 / 4, 2 / 4),
        ([1, -2], 2 / 4, 1),
        ([-0.5] * 5, 1 / 32, 2 / 32),
        # Of eight ways, -3 once and -1 three times are as low as -1.
        ([-1, -1, 1], 4 / 8, 1),
    ],
)
def test_few_differences_have_the_p_that_counting_gives(
    differences: list[float], lower: float, two_sided: float
) -> None:
    assert sign_flip_test(differences) == (lower, two_sided)


@given(differences=SMALL)
def test_p_is_the_share_of_all_ways_to_sign_the_differences(differences: list[float]) -> None:
    # Samples that do not differ, which the test leaves out, change nothing.
    assert sign_flip_test(differences) == by_hand(differences)


def test_sums_that_differ_in_their_last_bits_only_are_ties() -> None:
    assert 0.1 + 0.2 != 0.3
    # -, -, + against the other way round: both sum to 0.
    assert sign_flip_test([-0.1, -0.2, 0.3]) == by_hand([-0.1, -0.2, 0.3])


def test_drawn_signs_give_about_the_p_of_all_of_them() -> None:
    random = np.random.default_rng(5)
    differences = random.normal(-0.05, 0.1, MOST_ENUMERATED + 1)
    sums = np.zeros(1)
    for size in np.abs(differences):
        sums = np.concatenate((sums - size, sums + size))
    exact = float((sums <= differences.sum() + 1e-12).mean())
    lower, two_sided = sign_flip_test(differences.tolist())
    assert lower == pytest.approx(exact, abs=4 * (exact / DRAWS) ** 0.5)
    assert two_sided == pytest.approx(2 * exact, abs=4 * (2 * exact / DRAWS) ** 0.5)
    assert lower * (DRAWS + 1) == pytest.approx(round(lower * (DRAWS + 1)))


def test_p_is_never_zero() -> None:
    assert sign_flip_test([-1.0] * 500) == (1 / (DRAWS + 1), 1 / (DRAWS + 1))


def test_a_rise_is_no_fall_by_chance() -> None:
    lower, two_sided = sign_flip_test([1.0] * 100)
    assert (lower, two_sided) == (1, 1 / (DRAWS + 1))


def test_the_order_of_the_samples_decides_nothing() -> None:
    differences = np.random.default_rng(1).normal(-0.01, 0.1, 60).tolist()
    assert sign_flip_test(differences) == sign_flip_test(differences[::-1])


@given(chances=st.lists(st.floats(0, 1), max_size=12))
def test_holm_keeps_the_order_and_lowers_nothing(chances: list[float]) -> None:
    corrected = holm(chances)
    assert all(p <= c <= 1 for p, c in zip(chances, corrected, strict=True))
    ranked = [c for _, c in sorted(zip(chances, corrected, strict=True))]
    assert ranked == sorted(ranked)


@pytest.mark.parametrize(
    ("chances", "corrected"),
    [
        ([], []),
        ([0.03], [0.03]),
        # 4 x 0.005, 3 x 0.01, 2 x 0.03; 1 x 0.04 would be less than the one before.
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.5, 0.9, 0.4], [1, 1, 1]),
        ([0.02, 0.02], [0.04, 0.04]),
    ],
)
def test_holm_multiplies_the_least_by_all_the_next_by_one_less_and_so_on(
    chances: list[float], corrected: list[float]
) -> None:
    assert holm(chances) == pytest.approx(tuple(corrected))


def test_a_change_tells_means_difference_interval_and_chance() -> None:
    pairs = [(1.0, 0.0), *[(1.0, 1.0)] * 4, (0.5, 0.75)]
    change = change_of(pairs)
    assert change == Change(
        n=6,
        changed=2,
        mean_a=5.5 / 6,
        mean_b=4.75 / 6,
        difference=-0.75 / 6,
        interval=change.interval,
        # Of -1.25, -0.75, 0.75 and 1.25, two are as low as -0.75, and all as far from 0.
        p_lower=0.5,
        p_two_sided=1.0,
    )
    assert change.interval is not None
    assert change.interval.low < change.difference < change.interval.high


def test_samples_that_are_all_alike_in_both_have_no_difference_and_no_p() -> None:
    change = change_of([(0.25, 0.25), (1.0, 1.0)] * 5)
    assert (change.changed, change.difference, change.interval) == (0, 0, Interval(0, 0))
    assert (change.p_lower, change.p_two_sided) == (1, 1)
