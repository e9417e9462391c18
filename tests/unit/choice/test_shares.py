from hypothesis import given
from hypothesis import strategies as st

from mrcr_action.choice.shares import level

CAPACITIES = st.lists(st.integers(0, 40), max_size=12)


@given(total=st.integers(0, 400), capacities=CAPACITIES)
def test_shares_add_up_to_the_total_as_far_as_there_is_room(
    total: int, capacities: list[int]
) -> None:
    shares = level(total, capacities)

    assert sum(shares) == min(total, sum(capacities))
    assert len(shares) == len(capacities)
    assert all(0 <= share <= most for share, most in zip(shares, capacities, strict=True))


@given(total=st.integers(0, 400), capacities=CAPACITIES)
def test_shares_differ_by_one_at_most_where_there_is_room(
    total: int, capacities: list[int]
) -> None:
    shares = level(total, capacities)

    largest = max(shares, default=0)
    for share, most in zip(shares, capacities, strict=True):
        assert share == most or share >= largest - 1


@given(total=st.integers(0, 400), more=st.integers(0, 50), capacities=CAPACITIES)
def test_no_share_shrinks_when_the_total_grows(
    total: int, more: int, capacities: list[int]
) -> None:
    before, after = level(total, capacities), level(total + more, capacities)

    assert all(one <= other for one, other in zip(before, after, strict=True))


def test_the_remainder_goes_to_the_last_the_first_and_then_in_between() -> None:
    assert level(8, [9, 9, 9]) == [3, 2, 3]
    assert level(8, [1, 9, 9]) == [1, 3, 4]
    assert level(2, [0, 5, 5, 5]) == [0, 1, 0, 1]
    assert level(3, [5] * 5) == [1, 0, 1, 0, 1]
    assert level(5, [5] * 9) == [1, 0, 1, 0, 1, 0, 1, 0, 1]
    assert level(10**9, [1, 2]) == [1, 2]
    assert level(5, []) == []
