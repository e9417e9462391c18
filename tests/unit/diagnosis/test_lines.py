from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import msgspec
import pytest
from tests.unit.diagnosis.conversation import NONCE, sample

from mrcr_action.diagnosis.evidence import FirstWrong, Form, Place, Repeat, Source
from mrcr_action.diagnosis.forms import diagnose
from mrcr_action.diagnosis.lines import tally, told

if TYPE_CHECKING:
    from collections.abc import Callable

    from mrcr_action.result import Record

    Diagnosed = Callable[..., Record]

FIRST = FirstWrong(offset=1200, place=Place(turn=8, char=1190, token=4400))
AT = "at character 1,200 (in the prompt turn 8, character 1,190, about token 4,400)"


@pytest.mark.parametrize(
    ("form", "changes", "expected"),
    [
        ("exact", {}, "exact"),
        ("near copy", {"edits": 1}, f"the wanted text with 1 edit, the first {AT}"),
        ("near copy", {}, f"the wanted text with more than 64 edits, the first {AT}"),
        (
            "wrong needle",
            {"source": Source(turn=9, ordinal=2, ratio=1.0), "ratio": 0.21},
            "needle 2 of 2 instead of 1 (turn 9, ratio 1.00, the wanted one 0.21)",
        ),
        (
            "distractor",
            {"source": Source(turn=9, ratio=0.9, share=0.93), "nonce": "absent"},
            "text of another turn: about 93% of it stands in turn 9; no nonce",
        ),
        ("no nonce", {"edits": 0}, "the right text without the nonce"),
        ("other nonce", {"edits": 0}, "another nonce, and behind it the right text"),
        (
            "nonce not first",
            {"edits": 3, "lead": 1420},
            "1,420 characters before the nonce, and behind it the wanted text with 3 edits",
        ),
        (
            "truncated",
            {"outcome": "truncated", "reasoning_chars": 300},
            "cut at max_tokens, after 300 characters of reasoning; right up to character 1,200",
        ),
        (
            "stopped early",
            {},
            f"ended by itself after 100 tokens within the wanted text: wrong or missing {AT}",
        ),
        ("ran on", {}, "the whole answer, and more behind it"),
        (
            "garbled",
            {"source": Source(turn=9, ordinal=2, ratio=0.5)},
            f"wrong {AT}, and unrelated from there on: it goes on with turn 9 (needle 2)",
        ),
        (
            "degenerate",
            {"repeat": Repeat(text="la ", period=3, times=400, offset=60), "outcome": "truncated"},
            "from character 60 on, 400 times the same 3 characters; cut at max_tokens",
        ),
        (
            "degenerate",
            {"strange": 0.5},
            "no text: 50% of it are control or replacement characters",
        ),
        ("refusal", {}, "a refusal"),
        (
            "empty",
            {"outcome": "truncated", "reasoning_chars": 9000},
            "no text after 9,000 characters of reasoning, cut at max_tokens",
        ),
        ("cut", {}, "cut, since it could no longer start with the nonce"),
        (
            "unrelated",
            {"ratio": 0.04},
            "text of no piece of the conversation (ratio 0.04 to the wanted text)",
        ),
        ("rejected", {"reason": "HTTP 400: too long"}, "HTTP 400: too long"),
        ("failed", {"reason": "HTTP 500"}, "HTTP 500"),
    ],
)
def test_a_diagnosis_in_words(
    diagnosed: Diagnosed, form: Form, changes: dict[str, object], expected: str
) -> None:
    assert told(diagnosed(0, form, first_wrong=FIRST, **changes)) == expected


def test_every_form_that_is_found_has_words(diagnosed: Diagnosed) -> None:
    row = sample()
    text = row.answer[10:]
    found = [
        diagnose(response, row, truncated=truncated, cut=cut, prompt_tokens=900)
        for response in (
            *(
                row.answer,
                row.answer[:90],
                text,
                "x" * 500,
                "",
                "No.",
                "I'm sorry.",
                f"A {row.answer}",
            ),
            *(NONCE + turn.content for turn in row.messages),
            *(
                row.answer + "!",
                row.answer[:90] + "x? y" * 30,
                "zz" + text,
                NONCE + text[:99] + text[101:],
            ),
        )
        for truncated in (True, False)
        for cut in (True, False)
    ]

    seen = set()
    for number, one in enumerate(found):
        record = diagnosed(number, one.form)
        words = told(msgspec.structs.replace(record, diagnosis=one))
        assert words
        seen.add(one.form)
    assert set(get_args(Form)) - seen <= {"rejected", "failed", "garbled"}


def test_how_many_are_what(diagnosed: Diagnosed) -> None:
    forms = ("exact", "wrong needle", "garbled", "wrong needle", "failed")
    records = [diagnosed(at, form) for at, form in enumerate(forms)]

    assert tally(records) == "1 of 5 exact; 2 wrong needle, 1 garbled, 1 failed"
    assert tally(records[:1]) == "1 of 1 exact"
    assert tally([]) == ""


def test_a_record_of_before_there_was_a_diagnosis_is_told_by_its_grade(
    make_record: Callable[..., Record],
) -> None:
    assert told(make_record(0, 0.5)) == "not the wanted text"
    assert told(make_record(0, None)) == "the connection broke"
    assert tally([make_record(0, 0.5)]) == ""
