from __future__ import annotations

import pytest

from mrcr_action.standin.draws import draw, parse_share


def test_draws_are_spread_evenly_and_the_same_each_time() -> None:
    draws = [draw(f"a/{number}") for number in range(2000)]

    assert draws == [draw(f"a/{number}") for number in range(2000)]
    assert all(
        150 < sum(low / 10 <= drawn < (low + 1) / 10 for drawn in draws) < 250 for low in range(10)
    )


def test_half_a_surrogate_pair_can_be_part_of_a_name() -> None:
    assert 0 <= draw("\ud83d") < 1


@pytest.mark.parametrize(("text", "share"), [("1", 1.0), (".5", 0.5), ("0.05", 0.05), ("1.0", 1)])
def test_a_share_is_above_0_and_up_to_1(text: str, share: float) -> None:
    assert parse_share(text) == share


@pytest.mark.parametrize("text", ["", "0", "0.0", "1.1", "2", "-0.5", "nan", "5%"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a share"):
        parse_share(text)
