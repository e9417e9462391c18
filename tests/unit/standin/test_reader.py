from __future__ import annotations

import pytest

from mrcr_action.standin.reader import (
    Needle,
    Question,
    Turn,
    asked_question,
    edit,
    find_needles,
    garble,
    read,
)
from mrcr_action.standin.reader import parse_question as parse

PREAMBLE = """Here are some examples of conversations succeeded by a follow-up question answered \
correctly:

======EXAMPLE======
User: write a poem about tapirs
Assistant: a decoy
User: Prepend QQQQQQQQQQ to the 1st (1 indexed) poem about tapirs. Do not include any other text \
in your response.
Assistant: QQQQQQQQQQa decoy
======END EXAMPLE======
"""
NONCE = "Zx9kQ1mN0p"


def question(ordinal: str, what: str = "poem about tapirs") -> Turn:
    ask = f"Prepend {NONCE} to the {ordinal} (1 indexed) {what}."
    return Turn("user", f"{ask} Do not include any other text in your response.")


def pair(request: str, reply: str) -> list[Turn]:
    return [Turn("user", request), Turn("assistant", reply)]


def conversation(ordinal: str) -> list[Turn]:
    return [
        Turn("user", PREAMBLE),
        *pair("write a poem about tapirs", "first 🌿"),
        *pair("write a email about tapirs", "not a poem"),
        *pair("write a poem about tapirs", "second\n\n**bold**"),
        *pair("write a poem about tapirs and rain", "another topic"),
        *pair("write a poem about tapirs", "third "),
        question(ordinal),
    ]


def said(turns: list[Turn], *, window: int | None = None, wrong_needle: bool = False) -> str:
    answer = read(turns, window=window, wrong_needle=wrong_needle)
    return answer.nonce + answer.text


@pytest.mark.parametrize(
    ("ordinal", "reply"),
    [("1st", "first 🌿"), ("2nd", "second\n\n**bold**"), ("3rd", "third ")],
)
def test_the_answer_is_the_nonce_and_the_wanted_reply_word_for_word(
    ordinal: str, reply: str
) -> None:
    assert said(conversation(ordinal)) == NONCE + reply


@pytest.mark.parametrize(
    "ordinal", ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "16th", "21st"]
)
def test_every_ordinal_is_understood(ordinal: str) -> None:
    found = parse(question(ordinal).content)

    assert found == Question(NONCE, int(ordinal[:-2]), "poem", "tapirs")


@pytest.mark.parametrize("needles", [1, 3, 16])
def test_conversations_of_any_number_of_needles_are_answered(needles: int) -> None:
    haystack = [Turn("user", PREAMBLE)]
    for number in range(1, needles + 1):
        haystack += pair("write a poem about tapirs", f"reply {number}")
    ordinals = {1: "1st", 2: "2nd", 3: "3rd"}

    for number in range(1, needles + 1):
        ordinal = ordinals.get(number, f"{number}th")
        assert said([*haystack, question(ordinal)]) == f"{NONCE}reply {number}"


def test_the_first_request_is_found_below_the_preamble_in_one_turn() -> None:
    first, second, *rest = conversation("1st")
    merged = [Turn("user", f"{first.content}\n\n{second.content}"), *rest]

    assert said(merged) == NONCE + "first 🌿"
    assert said([*merged[:-1], question("3rd")]) == NONCE + "third "


def test_a_request_below_other_text_is_none_in_a_later_turn() -> None:
    turns = [*pair("Hi", "Hello"), *pair("So:\n\nwrite a poem about tapirs", "no")]

    assert find_needles(turns, "poem about tapirs") == ()


def test_a_format_of_many_words_and_a_topic_with_a_full_stop_are_understood() -> None:
    found = parse(question("2nd", "short scene in a play about the U.S. Mint").content)

    assert found == Question(NONCE, 2, "short scene in a play", "the U.S. Mint")


def test_the_last_about_of_a_topic_belongs_to_the_topic() -> None:
    turns = [
        *pair("write a song about talking about dogs", "woof"),
        question("1st", "song about talking about dogs"),
    ]

    assert said(turns) == NONCE + "woof"


@pytest.mark.parametrize(
    "request_text",
    ["Write a poem about tapirs", "write an poem about tapirs", "write a poem about tapirs\n"],
)
def test_a_request_may_differ_in_its_article_and_first_letter(request_text: str) -> None:
    assert find_needles(pair(request_text, "yes"), "poem about tapirs") == (Needle(0, "yes"),)


@pytest.mark.parametrize(
    "request_text",
    [
        "please write a poem about tapirs",
        "write a poem about tapirs. Thank you",
        "write the poem about tapirs",
        "write a Poem about tapirs",
    ],
)
def test_a_request_is_the_whole_turn(request_text: str) -> None:
    assert find_needles(pair(request_text, "no"), "poem about tapirs") == ()


def test_examples_in_the_preamble_are_decoys_even_when_a_reply_follows_it() -> None:
    turns = [
        Turn("user", PREAMBLE),
        Turn("assistant", "I see."),
        *pair("write a poem about tapirs", "the real one"),
        question("1st"),
    ]

    assert said(turns) == NONCE + "the real one"


def test_a_request_without_a_reply_is_no_needle() -> None:
    turns = [Turn("user", "write a poem about tapirs"), *pair("write a poem about tapirs", "it")]

    assert find_needles(turns, "poem about tapirs") == (Needle(1, "it"),)


def test_words_of_the_assistant_are_no_requests() -> None:
    turns = [Turn("assistant", "write a poem about tapirs"), Turn("assistant", "no")]

    assert find_needles(turns, "poem about tapirs") == ()


def test_an_ordinal_beyond_the_needles_gets_made_up_text_behind_the_nonce() -> None:
    answer = read(conversation("4th"))

    assert answer.nonce == NONCE
    assert "poem about tapirs" in answer.text
    assert answer.text not in {turn.content for turn in conversation("4th")}


@pytest.mark.parametrize("turns", [[Turn("user", "Hello?")], [Turn("assistant", "Hm")], []])
def test_small_talk_gets_a_greeting_without_a_nonce(turns: list[Turn]) -> None:
    answer = read(turns)

    assert answer.nonce == ""
    assert "not a model" in answer.text


def test_the_question_is_the_last_user_turn_and_nothing_else() -> None:
    turns = conversation("2nd")

    assert asked_question(turns) == Question(NONCE, 2, "poem", "tapirs")
    assert asked_question([*turns, Turn("assistant", "Hm")]) == asked_question(turns)
    assert asked_question([*turns, Turn("user", "Thank you")]) is None
    assert asked_question([]) is None


def test_a_wide_window_changes_nothing() -> None:
    assert said(conversation("1st"), window=1000) == NONCE + "first 🌿"


def test_a_needle_outside_the_window_is_mistaken_for_a_visible_one() -> None:
    assert said(conversation("1st"), window=70) == NONCE + "second\n\n**bold**"


def test_a_needle_inside_the_window_is_found_though_earlier_ones_are_not_seen() -> None:
    assert said(conversation("3rd"), window=20) == NONCE + "third "


def test_a_needle_outside_the_window_is_made_up_when_too_few_are_visible() -> None:
    answer = read(conversation("2nd"), window=20)

    assert answer.nonce == NONCE
    assert answer.text.startswith("Here is a poem about tapirs.")


def test_the_window_does_not_spend_tokens_on_the_question() -> None:
    # "third " is 2 tokens, its request 7, and 4 more for each of the two messages.
    assert said(conversation("3rd"), window=17) == NONCE + "third "
    assert said(conversation("3rd"), window=16) != NONCE + "third "


def test_the_wrong_needle_is_another_of_the_identical_requests() -> None:
    answers = [said(conversation(nth), wrong_needle=True) for nth in ("1st", "2nd", "3rd")]

    assert answers == [NONCE + "second\n\n**bold**", NONCE + "third ", NONCE + "first 🌿"]


def test_the_wrong_needle_is_made_up_when_there_is_only_one() -> None:
    turns = [*pair("write a poem about tapirs", "only"), question("1st")]

    assert read(turns, wrong_needle=True).text.startswith("Here is a poem about tapirs.")


def test_garbled_text_keeps_its_length_and_most_of_its_characters() -> None:
    text = "The tapir walks through the rain, 🌿 and nobody sees it go. " * 4

    garbled = garble(text)

    changed = sum(a != b for a, b in zip(text, garbled, strict=True))
    assert 10 < changed < len(text) / 5
    assert garble(text) == garbled
    assert garbled.count("🌿") == 4


def test_an_edit_replaces_a_few_characters_and_draws_them_anew_for_another_seed() -> None:
    text = "Fields of barley, rolling to the sea\n" * 5

    once, again, other = (edit(text, places=4, seed=seed) for seed in ("1", "1", "2"))

    assert once == again != other
    assert len(once) == len(text)
    assert 1 <= sum(a != b for a, b in zip(once, text, strict=True)) <= 4


@pytest.mark.parametrize(("text", "places"), [("", 3), ("as it is", 0)])
def test_an_edit_of_nothing_changes_nothing(text: str, places: int) -> None:
    assert edit(text, places=places, seed="1") == text


@pytest.mark.parametrize("text", ["a", "Z", "🌿", "\n"])
def test_an_edit_always_changes_the_character(text: str) -> None:
    assert all(edit(text, places=1, seed=str(seed)) != text for seed in range(100))
