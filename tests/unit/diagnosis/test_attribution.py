"""Every piece of a conversation of the dataset's shape is told from every other one."""

from __future__ import annotations

import pytest
from tests.unit.diagnosis.conversation import sample

from mrcr_action.bins import parse_bin
from mrcr_action.diagnosis.attribution import LEAST_CHARS, needles_of, place_of, wanted_of
from mrcr_action.diagnosis.edits import alike
from mrcr_action.diagnosis.forms import diagnose
from mrcr_action.sample import Sample
from mrcr_action.synthetic import synthetic_rows

ROWS = [
    Sample.from_row(row, shard="synthetic", index=at)
    for at, row in enumerate(synthetic_rows([2, 8], [parse_bin("4K-8K")], 2, 7))
]


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_each_needle_of_a_row_is_recognised(row: Sample) -> None:
    for needle in needles_of(row):
        found = diagnose(row.nonce + needle.text, row)
        if needle.turn == row.desired_msg_index + 1:
            assert found.form == "exact"
        else:
            assert found.form == "wrong needle"
            assert found.source is not None
            assert (found.source.ordinal, found.source.turn) == (needle.ordinal, needle.turn)


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_each_other_reply_of_a_row_is_recognised(row: Sample) -> None:
    needles = {needle.turn for needle in needles_of(row)}
    replies = [
        (turn, message.content)
        for turn, message in enumerate(row.messages)
        if message.role == "assistant" and turn not in needles
    ]
    long = [(turn, text) for turn, text in replies if len(text) >= 2 * LEAST_CHARS]
    assert len(long) > 3
    for turn, text in long:
        found = diagnose(row.nonce + text, row)
        assert (found.form, found.source and found.source.turn) == ("distractor", turn)


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_the_end_of_a_reply_is_recognised_as_well(row: Sample) -> None:
    for needle in needles_of(row):
        if needle.turn == row.desired_msg_index + 1 or len(needle.text) < 300:
            continue
        found = diagnose(row.nonce + needle.text[-len(needle.text) // 3 :], row)
        assert found.form == "wrong needle"
        assert found.source is not None
        assert found.source.ordinal == needle.ordinal


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_the_ratios_are_those_to_the_needles(row: Sample) -> None:
    needles = needles_of(row)
    other = next(n for n in needles if n.turn != row.desired_msg_index + 1)
    found = diagnose(row.nonce + other.text, row)

    expected = {n.ordinal: round(alike(other.text, n.text), 4) for n in needles}
    assert {one.ordinal: one.ratio for one in found.siblings} | {
        found.wanted.ordinal if found.wanted else 0: found.ratio
    } == expected


def test_a_place_s_token_is_its_share_of_the_characters() -> None:
    row = sample()

    assert place_of(row.messages, 0, 0, 500).token == 0
    last = len(row.messages) - 1
    end = len(row.messages[last].content)
    assert place_of(row.messages, last, end, 500).token == 500
    assert place_of(row.messages, 3, 5, None).token is None


def test_a_needle_that_nobody_counted_has_no_distance() -> None:
    wanted = wanted_of(sample(), None)

    assert (wanted.token, wanted.distance) == (None, None)
    assert 0 < wanted.depth < 1
