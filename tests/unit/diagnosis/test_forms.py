from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.diagnosis.conversation import NONCE, prose, sample

from mrcr_action.diagnosis.evidence import Diagnosis
from mrcr_action.diagnosis.forms import diagnose, lost
from mrcr_action.sample import Message, Sample

ROW = sample()
TEXT = ROW.answer.removeprefix(NONCE)
OTHER = ROW.messages[10].content
"""The third needle; the second is wanted."""
DISTRACTOR = ROW.messages[4].content


def swapped(text: str, *places: int) -> str:
    return "".join("Q" if at in places else char for at, char in enumerate(text))


@pytest.mark.parametrize(
    ("response", "form"),
    [
        (ROW.answer, "exact"),
        (NONCE + swapped(TEXT, 10, 200), "near copy"),
        (NONCE + " " + TEXT, "near copy"),
        (NONCE + TEXT[:150] + TEXT[230:], "near copy"),
        (NONCE + TEXT[250:], "near copy"),
        (NONCE + OTHER, "wrong needle"),
        (NONCE + swapped(OTHER, 10, 200), "wrong needle"),
        (NONCE + OTHER[:100], "wrong needle"),
        (OTHER, "wrong needle"),
        (NONCE + DISTRACTOR, "distractor"),
        (NONCE + DISTRACTOR[100:300], "distractor"),
        (DISTRACTOR, "distractor"),
        (TEXT, "no nonce"),
        ("Sure, here it is:\n\n" + TEXT, "no nonce"),
        (swapped(TEXT, 10, 200), "no nonce"),
        ("zz9zz9zz9z" + TEXT, "other nonce"),
        (f"Of course. {ROW.answer}", "nonce not first"),
        (f"<think>{NONCE} goes in front.</think>\n\n{ROW.answer}", "nonce not first"),
        (ROW.answer[:100], "stopped early"),
        (NONCE, "stopped early"),
        (NONCE[:4], "stopped early"),
        (NONCE + swapped(TEXT, 5)[:100], "stopped early"),
        (ROW.answer + "\n\nShall I write another one?", "ran on"),
        (ROW.answer[:200] + prose(77, 300), "garbled"),
        (ROW.answer[:200] + OTHER[150:], "garbled"),
        (ROW.answer[:60] + "lalala" * 40, "degenerate"),
        ("!" * 500, "degenerate"),
        ("\ufffd\ufffd" * 5 + prose(9, 40), "degenerate"),
        (NONCE + "\n\n" * 200, "degenerate"),
        ("I'm sorry, but I can't help with that.", "refusal"),
        (f"{NONCE}I am unable to find the poem.", "refusal"),
        ("", "empty"),
        (" \n ", "empty"),
        (NONCE + prose(55), "unrelated"),
        ("The poem is about tapirs.", "unrelated"),
    ],
)
def test_the_form_of_a_response(response: str, form: str) -> None:
    assert diagnose(response, ROW).form == form


@pytest.mark.parametrize(
    ("response", "form"),
    [
        (ROW.answer, "exact"),
        (ROW.answer[:100], "truncated"),
        (NONCE + swapped(TEXT, 5)[:300], "truncated"),
        ("<think>" + prose(55, 300), "truncated"),
        (NONCE + OTHER[:200], "wrong needle"),
        (ROW.answer[:100] + prose(77, 200), "garbled"),
        (NONCE + "la " * 100, "degenerate"),
        ("", "empty"),
    ],
)
def test_of_a_response_that_was_cut_at_max_tokens(response: str, form: str) -> None:
    assert diagnose(response, ROW, truncated=True).form == form


def test_a_near_copy_counts_its_edits_and_says_where_the_first_is() -> None:
    found = diagnose(NONCE + swapped(TEXT, 10, 200), ROW, prompt_tokens=1000)

    assert found.edits == 2
    assert found.ratio is not None
    assert found.ratio > 0.98
    assert found.first_wrong is not None
    assert found.first_wrong.offset == 20
    place = found.first_wrong.place
    assert place is not None
    assert (place.turn, place.char) == (6, 10)
    before = sum(len(message.content) for message in ROW.messages[:6]) + 10
    assert place.token == round(1000 * before / ROW.n_chars)


def test_a_wrong_needle_is_named_with_the_ratio_to_each() -> None:
    found = diagnose(NONCE + OTHER, ROW)

    assert found.source is not None
    assert (found.source.turn, found.source.ordinal, found.source.ratio) == (10, 3, 1.0)
    assert [likeness.ordinal for likeness in found.siblings] == [1, 3, 4]
    assert [likeness.ratio > 0.9 for likeness in found.siblings] == [False, True, False]
    assert found.ratio is not None
    assert found.ratio < 0.5


def test_a_distractor_is_named_by_its_turn() -> None:
    found = diagnose(NONCE + DISTRACTOR, ROW)

    assert found.source is not None
    assert (found.source.turn, found.source.ordinal) == (4, None)
    assert found.source.share is not None
    assert found.source.share > 0.9


def test_what_a_garbled_response_went_on_with_is_named() -> None:
    found = diagnose(ROW.answer[:200] + OTHER[150:], ROW)

    assert found.first_wrong is not None
    assert found.first_wrong.offset >= 200
    assert found.source is not None
    assert (found.source.turn, found.source.ordinal) == (10, 3)


def test_a_missing_nonce_is_missed_in_the_question() -> None:
    found = diagnose(TEXT, ROW)

    assert found.nonce == "absent"
    assert found.edits == 0
    assert found.first_wrong is not None
    place = found.first_wrong.place
    assert place is not None
    assert (place.turn, place.char) == (len(ROW.messages) - 1, len("Prepend "))


@pytest.mark.parametrize(
    ("response", "nonce", "lead"),
    [
        (f"Well. {ROW.answer}", "later", 6),
        ("zz9zz9zz9z" + TEXT, "other", 10),
        ("Here you are: " + TEXT, "absent", 14),
        (ROW.answer[:50], "first", 0),
    ],
)
def test_what_stands_in_front_is_measured(response: str, nonce: str, lead: int) -> None:
    found = diagnose(response, ROW)

    assert (found.nonce, found.lead) == (nonce, lead)


def test_an_early_end_is_missing_its_next_character() -> None:
    found = diagnose(ROW.answer[:100], ROW)

    assert found.first_wrong is not None
    assert found.first_wrong.offset == 100
    assert found.first_wrong.place is not None
    assert (found.first_wrong.place.turn, found.first_wrong.place.char) == (6, 90)


def test_what_comes_over_and_over_is_shown_once() -> None:
    found = diagnose(ROW.answer[:61] + "lalo" * 40 + "la", ROW)

    assert found.repeat is not None
    assert found.repeat.period == 4
    assert found.repeat.times == 40
    assert sorted(found.repeat.text) == sorted("lalo")
    assert found.repeat.offset in range(58, 62)


def test_a_refrain_of_the_wanted_text_is_no_fault() -> None:
    song = "hey ho, " * 20
    row = sample()
    messages = list(row.messages)
    messages[6] = Message("assistant", TEXT + song)
    row = Sample(
        id=row.id,
        messages=tuple(messages),
        answer=NONCE + TEXT + song,
        nonce=NONCE,
        n_needles=4,
        desired_msg_index=row.desired_msg_index,
        n_chars=row.n_chars + len(song),
    )

    assert diagnose(NONCE + swapped(TEXT, 7) + song, row).form == "near copy"


def test_where_the_wanted_needle_lies_is_known_of_every_response() -> None:
    for response in (ROW.answer, "", NONCE + OTHER):
        wanted = diagnose(response, ROW, prompt_tokens=1000).wanted
        assert wanted is not None
        assert (wanted.ordinal, wanted.of, wanted.turn) == (2, 4, 6)
        before = sum(len(message.content) for message in ROW.messages[:6])
        assert wanted.depth == round(before / ROW.n_chars, 4)
        assert wanted.token is not None
        assert wanted.distance == 1000 - wanted.token


def test_a_request_without_a_response_has_only_its_needle() -> None:
    found = lost("rejected", ROW, 1000)

    assert (found.form, found.excerpt) == ("rejected", None)
    assert found.wanted is not None
    assert found.wanted.distance is not None
    assert lost("failed", None) == Diagnosis(form="failed")


def test_of_a_response_that_was_cut_nothing_more_is_said() -> None:
    found = diagnose("I", ROW, cut=True)

    assert (found.form, found.nonce) == ("cut", "absent")


def test_an_excerpt_shows_both_texts_from_the_same_character_on() -> None:
    found = diagnose(NONCE + swapped(TEXT, 100), ROW)

    excerpt = found.excerpt
    assert excerpt is not None
    assert excerpt.offset == 70
    assert excerpt.wanted == ROW.answer[70:230]
    assert excerpt.returned == (NONCE + swapped(TEXT, 100))[70:230]


def test_a_diagnosis_survives_json() -> None:
    found = diagnose(ROW.answer[:200] + OTHER[150:], ROW, prompt_tokens=1000)

    assert msgspec.json.decode(msgspec.json.encode(found), type=Diagnosis) == found


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=300))
def test_any_text_has_a_form(response: str) -> None:
    for text in (response, NONCE + response, ROW.answer[:50] + response):
        found = diagnose(text, ROW)
        assert (found.form == "exact") == (text == ROW.answer)


@pytest.mark.parametrize(
    "response",
    [
        "e" * 262_000,
        "ab" * 131_000,
        ("a" * 511 + "b") * 512 + "c",
        "\ud800" * 262_000,
        " " * 262_000,
    ],
    ids=["e", "ab", "long period", "surrogates", "blanks"],
)
def test_hostile_text_is_diagnosed_in_bounded_time(response: str) -> None:
    row = sample(needles=8, chars=8000)
    begin = time.perf_counter()
    for text in (response, NONCE + response, row.answer[:5000] + response):
        diagnose(text, row)
    assert time.perf_counter() - begin < 15
