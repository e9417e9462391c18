from __future__ import annotations

import pytest

from mrcr_action.standin.tokens import parse_token_count, prompt_tokens, text_ids, text_tokens


@pytest.mark.parametrize(("characters", "tokens"), [(0, 0), (1, 1), (4, 1), (5, 2), (400, 100)])
def test_four_characters_are_a_token_rounded_up(characters: int, tokens: int) -> None:
    assert text_tokens(characters) == tokens


def test_a_message_costs_four_tokens_more_than_its_text() -> None:
    assert prompt_tokens(["12345", "", "🌿"]) == (2 + 4) + (0 + 4) + (1 + 4)


@pytest.mark.parametrize("text", ["", "a", "abcd", "abcde", "🌿 emoji and \ud83d half a pair"])
def test_a_text_has_as_many_ids_as_tokens_and_others_when_it_changes(text: str) -> None:
    assert len(text_ids(text)) == text_tokens(len(text))
    assert text_ids(text) == text_ids(text)
    assert text_ids("x" + text) != text_ids(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [("131072", 131072), ("128K", 131072), ("128k", 128000), ("1M", 1048576), ("25.6k", 25600)],
)
def test_a_number_of_tokens_is_read_as_vllm_reads_it(text: str, count: int) -> None:
    assert parse_token_count(text) == count


@pytest.mark.parametrize("text", ["", "K", "-1", "1.5", "128KB", "1e3", "0.0001k"])
def test_what_is_no_number_of_tokens_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="number of tokens"):
        parse_token_count(text)
