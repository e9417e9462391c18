from __future__ import annotations

from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcr_action.diagnosis.edits import MOST_EDITS, alike, common, edits

SHORT = st.text(alphabet="abc", max_size=30)


def levenshtein(first: str, second: str) -> int:
    """The textbook's table."""
    row = list(range(len(second) + 1))
    for at, one in enumerate(first, start=1):
        before, row[0] = row[0], at
        for column, other in enumerate(second, start=1):
            replaced = before + (one != other)
            before, row[column] = row[column], min(row[column] + 1, row[column - 1] + 1, replaced)
    return row[-1]


@given(SHORT, SHORT)
def test_edits_are_levenshtein_s_distance(first: str, second: str) -> None:
    assert edits(first, second) == levenshtein(first, second)


def test_too_many_edits_are_not_counted() -> None:
    text = "x" * 500
    assert edits("y" * MOST_EDITS + text, "z" * MOST_EDITS + text) == MOST_EDITS
    assert edits("y" * (MOST_EDITS + 1) + text, "z" * (MOST_EDITS + 1) + text) is None
    assert edits(text, text[MOST_EDITS + 1 :]) is None


@given(st.text(alphabet="ab", max_size=400), SHORT, SHORT)
def test_the_common_beginning_is_the_longest_one(begin: str, first: str, second: str) -> None:
    first, second = begin + first, begin + second
    length = common(first, second)
    assert first[:length] == second[:length]
    assert first[length : length + 1] != second[length : length + 1] or length == min(
        len(first), len(second)
    )


@given(SHORT, SHORT)
def test_likeness_is_that_of_difflib_without_its_junk_heuristic(first: str, second: str) -> None:
    assert alike(first, second) == SequenceMatcher(None, first, second, autojunk=False).ratio()


@pytest.mark.parametrize("text", ["\ud800 half", "whole \U0001f600", "a\udfff"])
def test_half_a_pair_can_be_compared(text: str) -> None:
    assert alike(text, text) == 1.0
