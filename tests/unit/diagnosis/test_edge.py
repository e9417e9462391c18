from __future__ import annotations

import random

from mrcr_action.diagnosis.edge import edge_of


def test_an_edge_lies_between_the_last_good_and_the_first_bad_value() -> None:
    edge = edge_of([(value, value > 4096) for value in range(1000, 9000, 500)])

    assert edge is not None
    assert (edge.below, edge.above) == (4000, 4500)
    assert (edge.wrong_below, edge.of_below, edge.wrong_above, edge.of_above) == (0, 7, 9, 9)
    assert edge.p < 0.001


def test_a_few_wrong_ones_elsewhere_leave_the_edge() -> None:
    values = [(value, value > 4096 or value == 1500) for value in range(1000, 9000, 250)]
    edge = edge_of(values)

    assert edge is not None
    assert (edge.below, edge.above) == (4000, 4250)
    assert (edge.wrong_below, edge.of_below) == (1, 13)


def test_there_is_none_without_a_few_of_both() -> None:
    assert edge_of([]) is None
    assert edge_of([(value, True) for value in range(20)]) is None
    assert edge_of([(value, False) for value in range(20)]) is None
    assert edge_of([(value, value > 1) for value in range(20)]) is None
    assert edge_of([(value, value > 17) for value in range(20)]) is None


def test_there_is_none_where_the_short_ones_are_wrong() -> None:
    assert edge_of([(value, value < 10) for value in range(20)]) is None


def test_equal_values_are_not_parted() -> None:
    assert edge_of([(7, at % 2 == 0) for at in range(40)]) is None


def test_a_random_order_seldom_has_one() -> None:
    draw = random.Random(0)
    found = 0
    for _ in range(400):
        marks = [True] * 12 + [False] * 18
        draw.shuffle(marks)
        found += edge_of(list(enumerate(marks))) is not None
    assert found <= 400 * 0.03
