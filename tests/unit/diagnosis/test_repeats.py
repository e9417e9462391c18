from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.diagnosis.conversation import prose

from mrcr_action.diagnosis.repeats import (
    LEAST_CHARS,
    LONGEST_PERIOD,
    SHOWN,
    repeat_at_end,
    strange_share,
)


@given(st.text(alphabet="xyz ", max_size=50), st.integers(1, 40), st.integers(0, 39))
def test_where_a_repetition_begins_and_how_often_it_comes(
    before: str, period: int, rest: int
) -> None:
    piece = prose(5, period).replace(" ", "_")
    text = before + "|" + piece * 100 + piece[: rest % period]
    found = repeat_at_end(text)

    assert found is not None
    assert period % found.period == 0
    repeated = text[found.offset :]
    assert repeated[found.period :] == repeated[: -found.period]
    assert found.offset <= len(before) + 1
    assert found.times == len(repeated) // found.period


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        prose(1),
        prose(1) + "ha" * 10,
        prose(1) + prose(2, 300) * 3,
        "x" * (LEAST_CHARS - 1),
        prose(1, 3000) + "!" * 20,
    ],
)
def test_what_does_not_come_over_and_over(text: str) -> None:
    assert repeat_at_end(text) is None


def test_a_long_piece_is_found_and_shown_in_part() -> None:
    found = repeat_at_end(prose(4, LONGEST_PERIOD) * 5)

    assert found is not None
    assert (found.period, found.times, len(found.text)) == (LONGEST_PERIOD, 5, SHOWN)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("", 0),
        ("plain text\n\twith lines", 0),
        ("\ufffdabc", 0.25),
        ("\x00\x01ab", 0.5),
        ("é中😀", 0),
    ],
)
def test_the_share_of_what_is_no_text(text: str, share: float) -> None:
    assert strange_share(text) == share
