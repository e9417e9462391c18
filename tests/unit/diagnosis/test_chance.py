from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcr_action.diagnosis.chance import fisher, leading

COUNT = st.integers(0, 12)


@given(COUNT, COUNT, COUNT, COUNT)
def test_fisher_counts_the_tables_that_are_as_extreme(a: int, b: int, c: int, d: int) -> None:
    of, other_of, hits = a + b, c + d, a + c
    whole = math.comb(of + other_of, of)
    extreme = sum(
        math.comb(hits, k) * math.comb(of + other_of - hits, of - k)
        for k in range(a, min(hits, of) + 1)
    )
    assert fisher(a, of, c, other_of) == pytest.approx(extreme / whole)


def test_fisher_s_own_tea() -> None:
    assert fisher(3, 4, 1, 4) == pytest.approx(17 / 70)
    assert fisher(4, 4, 0, 4) == pytest.approx(1 / 70)


def test_fisher_of_many_is_finite() -> None:
    assert fisher(1000, 1200, 10, 1200) < 1e-200
    assert fisher(10, 1200, 1000, 1200) == pytest.approx(1.0)


@pytest.mark.parametrize(("exact", "wrong"), [(4, 3), (5, 1), (2, 4)])
def test_how_many_exact_ones_lead_by_chance(exact: int, wrong: int) -> None:
    orders = list(itertools.combinations(range(exact + wrong), wrong))
    for before in range(exact + 1):
        expected = sum(min(order) >= before for order in orders) / len(orders)
        assert leading(before, exact, wrong) == pytest.approx(expected)
