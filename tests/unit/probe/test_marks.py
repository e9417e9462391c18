import pytest

from mrcr_action.probe.marks import MEANINGS, meanings


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
    assert meanings(answer) == [MEANINGS[letter] for letter in letters]
