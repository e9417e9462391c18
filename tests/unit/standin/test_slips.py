from __future__ import annotations

from dataclasses import replace

import pytest

from mrcr_action.standin.faults import Effects
from mrcr_action.standin.slips import Moment, Slip, slip

CALM = Moment(
    completion=1,
    question="Which one?",
    prompt_tokens=1000,
    cached_tokens=0,
    evicted=False,
    running=1,
)
"""Nothing is cached, and nobody else asks."""


def wrong(effects: Effects, moment: Moment) -> bool:
    made = slip(effects, moment)
    return made.wrong_needle or made.garble or made.drop_nonce or bool(made.edits)


def test_nothing_slips_without_a_fault() -> None:
    busy = replace(CALM, cached_tokens=900, evicted=True, running=99)

    assert not wrong(Effects(), busy)
    assert not wrong(Effects(garble=True, wrong_needle=True), busy)


@pytest.mark.parametrize(
    ("more_than", "cached", "expected"),
    [(0, 0, False), (0, 16, True), (64, 64, False), (64, 80, True)],
)
def test_a_stale_hit_needs_more_tokens_from_the_cache_than_it_says(
    more_than: int, cached: int, *, expected: bool
) -> None:
    assert wrong(Effects(stale_hit=more_than), replace(CALM, cached_tokens=cached)) == expected


def test_an_evicted_hit_needs_a_prompt_that_was_evicted() -> None:
    effects = Effects(evicted_hit=True)

    assert not wrong(effects, replace(CALM, cached_tokens=900))
    assert wrong(effects, replace(CALM, evicted=True))


@pytest.mark.parametrize(
    ("multiple", "right", "faulty"),
    [
        (128, [1, 24, 100, 127, 128, 153, 255, 256, 281], [129, 130, 152, 257, 280]),
        (2048, [5, 2047, 2048, 2073, 4096], [2049, 2072, 4097, 4120]),
        (16, [1, 15, 16], [17, 31, 32, 33, 1000]),
    ],
)
def test_an_edge_is_just_past_a_multiple_and_never_below_the_first(
    multiple: int, right: list[int], faulty: list[int]
) -> None:
    effects = Effects(block_edge=multiple)

    assert [n for n in right if wrong(effects, replace(CALM, prompt_tokens=n))] == []
    assert [n for n in faulty if wrong(effects, replace(CALM, prompt_tokens=n))] == faulty


def test_a_mistake_is_another_needle_or_other_characters_the_same_for_each_question() -> None:
    effects = Effects(stale_hit=0)
    moments = [replace(CALM, cached_tokens=16, question=f"{n}?") for n in range(200)]
    made = [slip(effects, moment) for moment in moments]

    assert all(one.wrong_needle != one.garble for one in made)
    assert 70 < sum(one.garble for one in made) < 130
    again = [slip(effects, replace(moment, completion=7)) for moment in moments]
    assert [one.garble for one in again] == [one.garble for one in made]


def test_a_crowd_edits_the_answer_otherwise_each_time() -> None:
    effects = Effects(batch=4)

    assert not wrong(effects, replace(CALM, running=3))
    made = [slip(effects, replace(CALM, running=4, completion=n)) for n in range(1, 50)]
    assert {one.edits for one in made} == set(range(1, 9))
    assert len({one.seed for one in made}) == len(made)
    assert not any(one.wrong_needle or one.garble or one.drop_nonce for one in made)


def test_noise_hits_its_share_mostly_mildly_and_seldom_hard() -> None:
    made = [slip(Effects(noise=0.2), replace(CALM, completion=n)) for n in range(1, 5001)]
    edited, elsewhere, lost = (
        sum(bool(one.edits) for one in made),
        sum(one.wrong_needle for one in made),
        sum(one.drop_nonce for one in made),
    )

    assert 900 < edited + elsewhere + lost < 1100
    assert edited > 2 * elsewhere > 4 * lost > 0
    assert not any(one.garble for one in made)


def test_noise_may_hit_one_completion_of_a_question_and_not_the_next() -> None:
    made = [wrong(Effects(noise=0.5), replace(CALM, completion=n)) for n in range(1, 9)]

    assert set(made) == {True, False}
    assert made == [wrong(Effects(noise=0.5), replace(CALM, completion=n)) for n in range(1, 9)]


def test_noise_of_1_hits_every_completion() -> None:
    assert all(wrong(Effects(noise=1), replace(CALM, completion=n)) for n in range(1, 500))


def test_reasons_add_up() -> None:
    busy = replace(CALM, cached_tokens=16, running=8)
    made = slip(Effects(stale_hit=0, batch=8), busy)

    assert made.edits
    assert made.wrong_needle or made.garble
    assert slip(Effects(), CALM) == Slip(seed=made.seed)
