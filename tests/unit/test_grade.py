import random
from collections.abc import Callable
from difflib import SequenceMatcher

import pytest

from mrcr_action.grade import FAST_LIMIT, Grade, exact_ratio, grade

NONCE = "aB3dE5gH7j"
WORDS = [
    *("the", "tapir", "of", "Oslo", "sings,", "dreams;", "a", "poem", "about", "rain", "and"),
    *("42", "grey", "stones", "—", "naïve"),
]
ODD = [
    "😀",
    "\U0001f469\u200d\U0001f467",
    "e\u0301",
    "é",
    "\0",
    "\n",
    "\r\n",
    "\u2028",
    "𝔘",
    "\ufffe",
    "中",
    " ",
    "",
]
LONE = ["\ud800", "\udfff", "\ud83d"]
PAIRS = 10_000


def card_grade(response: str, answer: str, nonce: str) -> float:
    """As the dataset card has it."""
    if not response.startswith(nonce):
        return 0
    response = response.removeprefix(nonce)
    answer = answer.removeprefix(nonce)
    return float(SequenceMatcher(None, response, answer).ratio())


def vllm_grade(response: str, answer: str, nonce: str) -> float:
    """As vLLM's own test has it."""
    if not response.startswith(nonce):
        return 0.0
    stripped = response[len(nonce) :]
    return SequenceMatcher(a=answer, b=stripped, autojunk=False).ratio()


def expected(response: str, answer: str, nonce: str) -> Grade:
    return Grade(
        nonce_hit=response.startswith(nonce),
        exact=response == answer,
        match_ratio_openai=card_grade(response, answer, nonce),
        match_ratio_vllm=vllm_grade(response, answer, nonce),
    )


def sentence(rng: random.Random, length: int) -> str:
    parts: list[str] = []
    while sum(map(len, parts)) < length:
        parts.append(rng.choice(ODD) if rng.random() < 0.05 else rng.choice(WORDS) + " ")
    return "".join(parts)[:length]


def same(rng: random.Random, text: str) -> str:
    return text


def edited(rng: random.Random, text: str) -> str:
    chars = list(text)
    for _ in range(rng.randint(1, 8)):
        place = rng.randint(0, len(chars))
        chars[place : place + rng.randint(0, 3)] = rng.choice([*WORDS, *ODD])
    return "".join(chars)


def unrelated(rng: random.Random, text: str) -> str:
    return sentence(rng, rng.randint(0, 300))


def truncated(rng: random.Random, text: str) -> str:
    return text[: rng.randint(0, len(text))]


def continued(rng: random.Random, text: str) -> str:
    return text + sentence(rng, rng.randint(1, 100))


def repeated(rng: random.Random, text: str) -> str:
    return (text[: rng.randint(1, 20)] or "x") * rng.randint(1, 12)


def of_one_letter(rng: random.Random, text: str) -> str:
    return rng.choice("a\n ") * rng.randint(0, 300)


def shuffled(rng: random.Random, text: str) -> str:
    words = text.split(" ")
    rng.shuffle(words)
    return " ".join(words)


def stripped(rng: random.Random, text: str) -> str:
    return text.strip() + rng.choice(["", "\n", " "])


def decorated(rng: random.Random, text: str) -> str:
    return rng.choice([" ", "\n\n", "**", NONCE, ": "]) + text


def with_half_a_pair(rng: random.Random, text: str) -> str:
    place = rng.randint(0, len(text))
    return text[:place] + rng.choice(LONE) + text[place:]


def nothing(rng: random.Random, text: str) -> str:
    return ""


CHANGES: list[Callable[[random.Random, str], str]] = [
    *(same, edited, unrelated, truncated, continued, repeated, of_one_letter, shuffled),
    *(stripped, decorated, with_half_a_pair, nothing),
]


def test_both_grades_are_the_standard_librarys_on_ten_thousand_pairs() -> None:
    rng = random.Random(20260101)
    wrong = []
    for number in range(PAIRS):
        # Some texts lie past 200 characters, where difflib's junk heuristic begins.
        length = rng.choice([0, 1, rng.randint(0, 60), rng.randint(0, 300), rng.randint(190, 260)])
        text = sentence(rng, length)
        change = CHANGES[number % len(CHANGES)]
        answer, response = NONCE + text, NONCE + change(rng, text)
        if rng.random() < 0.05:
            response = change(rng, response)  # which may spoil the nonce
        if rng.random() < 0.05:
            answer = text  # an answer without its nonce
        if grade(response, answer, NONCE) != expected(response, answer, NONCE):
            wrong.append((change.__name__, response, answer))
    assert wrong == []


@pytest.mark.parametrize("length", [2_000, 5_000])
@pytest.mark.parametrize("change", [same, edited, truncated, shuffled, with_half_a_pair])
def test_long_answers_are_graded_as_by_the_standard_library(
    change: Callable[[random.Random, str], str], length: int
) -> None:
    rng = random.Random(length)
    text = sentence(rng, length)
    response = NONCE + change(rng, text)
    assert grade(response, NONCE + text, NONCE) == expected(response, NONCE + text, NONCE)


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_nothing_changes_at_the_limit_of_the_fast_way(over: int) -> None:
    response = sentence(random.Random(1), FAST_LIMIT + over)
    answer = response[:4000] + "X" + response[4001:]
    reference = SequenceMatcher(None, answer, response, autojunk=False).ratio()
    assert exact_ratio(answer, response) == reference


def test_a_long_answer_with_a_short_response_is_graded_the_same() -> None:
    answer = sentence(random.Random(2), FAST_LIMIT + 500)
    response = answer[100:400]
    reference = SequenceMatcher(None, answer, response, autojunk=False).ratio()
    assert exact_ratio(answer, response) == reference


@pytest.mark.parametrize("response", ["", "the poem", " " + NONCE, NONCE[:-1], NONCE.lower()])
def test_without_the_nonce_at_the_start_both_grades_are_zero(response: str) -> None:
    assert grade(response + "the poem", NONCE + "the poem", NONCE) == Grade(
        nonce_hit=False, exact=False, match_ratio_openai=0.0, match_ratio_vllm=0.0
    )


@pytest.mark.parametrize("length", [0, 1, 100, 199, 200, 201, 1800])
def test_a_perfect_response_is_one_to_the_card_and_a_little_less_to_vllm(length: int) -> None:
    text = sentence(random.Random(length), length)
    graded = grade(NONCE + text, NONCE + text, NONCE)
    assert graded.nonce_hit
    assert graded.exact
    assert graded.match_ratio_openai == 1.0
    assert graded.match_ratio_vllm == 2 * length / (2 * length + 10)


def test_no_whitespace_is_stripped() -> None:
    graded = grade(NONCE + "poem\n", NONCE + "poem", NONCE)
    assert not graded.exact
    assert graded.match_ratio_openai == 2 * 4 / 9


def test_the_two_protocols_are_told_apart() -> None:
    graded = grade(NONCE + "abcd", NONCE + "abcd", NONCE)
    assert graded.match_ratio("openai") == graded.match_ratio_openai == 1.0
    assert graded.match_ratio("vllm") == graded.match_ratio_vllm == 8 / 18


def test_the_junk_heuristic_is_on_for_the_card_only() -> None:
    rng = random.Random(3)
    text = sentence(rng, 1800)
    response = sentence(rng, 1800)
    graded = grade(NONCE + response, NONCE + text, NONCE)
    without = SequenceMatcher(None, response, text, autojunk=False).ratio()
    assert graded.match_ratio_openai < without
    assert graded.match_ratio_vllm > graded.match_ratio_openai
