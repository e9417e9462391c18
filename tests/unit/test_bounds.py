from hypothesis import given, settings
from hypothesis import strategies as st

from mrcr_action.bounds import interval_reach, reach
from mrcr_action.intervals import mean_interval

ratios = st.sampled_from([0.0, 1.0, 0.5]) | st.floats(0, 1)


@given(known=st.lists(ratios, max_size=20), rest=st.lists(ratios, min_size=1, max_size=20))
def test_a_mean_ends_within_its_reach_also_when_some_are_lost(
    known: list[float], rest: list[float]
) -> None:
    least, most = reach(sum(known), len(known), len(rest))
    for kept in range(len(rest) + 1):
        values = known + rest[:kept]
        if values:
            assert least - 1e-9 <= sum(values) / len(values) <= most + 1e-9


@given(known=st.lists(ratios, max_size=20), left=st.integers(1, 20))
def test_the_ends_of_a_reach_are_reached(known: list[float], left: int) -> None:
    n = len(known) + left
    least, most = reach(sum(known), len(known), left)
    assert least == sum(known) / n
    assert most == (sum(known) + left) / n


@settings(max_examples=40)
@given(
    known=st.lists(ratios, min_size=3, max_size=20),
    rest=st.lists(ratios, min_size=1, max_size=12),
    spare=st.integers(0, 3),
)
def test_an_interval_ends_within_its_reach_also_when_as_many_are_lost_as_may_be(
    known: list[float], rest: list[float], spare: int
) -> None:
    reached = interval_reach(known, len(rest), spare)
    for lost in range(min(spare, len(rest)) + 1):
        interval = mean_interval(known + rest[lost:])
        if interval is None:
            assert reached is None
        elif reached is not None:
            assert reached.low - 1e-9 <= interval.low
            assert interval.high <= reached.high + 1e-9


def test_too_few_samples_may_have_no_interval_at_all() -> None:
    assert interval_reach([0.0] * 3, 3, 0) is not None
    assert interval_reach([0.0] * 3, 3, 1) is None
    assert interval_reach([0.0] * 3, 2, 0) is None
