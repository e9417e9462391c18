from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest

from mrcr_action.diagnosis.clues import clues_of
from mrcr_action.diagnosis.evidence import LOST, Excerpt, Form
from mrcr_action.diagnosis.probe_parts import MARKS, PARTS, meanings, parts_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mrcr_action.result import Record

    Diagnosed = Callable[..., Record]


@pytest.mark.parametrize(
    ("answer", "letters"),
    [
        ("V", "V"),
        ("S", "S"),
        ("kv", "kv"),
        ("Skv", "Skv"),
        ("vk", ""),
        ("VS", ""),
        ("kk", ""),
        ("", ""),
        ("aYooSG8CQgkv", ""),
        ("S.", ""),
    ],
)
def test_marks_are_told_from_any_other_answer(answer: str, letters: str) -> None:
    assert meanings(answer) == [MARKS[letter] for letter in letters]


def test_every_form_of_a_wrong_answer_leads_to_a_part() -> None:
    assert set(PARTS) == set(get_args(Form)) - LOST - {"exact"}


def test_one_wrong_answer_is_enough_to_name_a_part(diagnosed: Diagnosed) -> None:
    records = [diagnosed(n) for n in range(19)] + [diagnosed(19, "wrong needle")]
    (told,) = (clue.told for clue in clues_of(records, None, is_probe=True))
    assert told.startswith("1 of 1 wrong answers are the right request, and not the right one of")
    # Of another model, one wrong answer says nothing.
    assert clues_of(records, None) == ()


def test_forms_that_lead_to_the_same_part_count_together(diagnosed: Diagnosed) -> None:
    forms: tuple[Form, ...] = ("unrelated", "empty", "garbled", "distractor", "stopped early")
    first, second = parts_of([diagnosed(n, form) for n, form in enumerate(forms)])
    assert first.startswith("3 of 5 wrong answers are nothing of the wanted text")
    assert second.startswith("1 of 5 wrong answers are ")


def test_letters_are_told_ahead_of_forms(diagnosed: Diagnosed) -> None:
    marked = [
        diagnosed(n, "unrelated", excerpt=Excerpt(offset=0, wanted="aYooSG8CQg…", returned="kv"))
        for n in range(2)
    ]
    first, second = parts_of([diagnosed(2, "garbled"), *marked])
    assert first == (
        "2 of 3 wrong answers say that keys are rounded to fewer than 6 bits, and values are"
        " rounded to fewer than 6 bits."
    )
    assert second.startswith("1 of 3 wrong answers are begun right")


def test_a_piece_that_ends_in_such_letters_is_none(diagnosed: Diagnosed) -> None:
    excerpt = Excerpt(offset=30, wanted="wood", returned="kv")
    assert "say that" not in parts_of([diagnosed(0, "garbled", excerpt=excerpt)])[0]
