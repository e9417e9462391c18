from __future__ import annotations

import pytest

from mrcr_action.standin.prefix_cache import Hold, PrefixCache, Prompt


def text(tokens: int, *, name: str = "a", tail: str = "") -> str:
    """A rendered prompt; those of one name begin alike."""
    return "".join(f"{name}{number:03}" for number in range(tokens)) + tail


def ask(cache: PrefixCache, rendered: str, salt: str = "") -> Hold:
    """Take the prompt's blocks and give them back, as one request after another does."""
    hold = cache.take(cache.cut(rendered, salt))
    assert hold is not None
    cache.give_back(hold)
    return hold


def take(cache: PrefixCache, rendered: str) -> Hold:
    hold = cache.take(cache.cut(rendered, ""))
    assert hold is not None
    return hold


@pytest.mark.parametrize(
    ("tokens", "cached"),
    [(3, 0), (4, 0), (5, 4), (7, 4), (8, 4), (9, 8), (12, 8), (13, 12)],
)
def test_the_same_prompt_again_is_cached_in_whole_blocks_short_of_its_last_token(
    tokens: int, cached: int
) -> None:
    cache = PrefixCache(block_size=4)

    assert ask(cache, text(tokens)).cached_tokens == 0
    assert ask(cache, text(tokens)).cached_tokens == cached


def test_a_prompt_shares_what_it_begins_with_and_nothing_behind_a_difference() -> None:
    cache = PrefixCache(block_size=4)
    ask(cache, text(6) + "same" * 10)

    assert ask(cache, text(6) + "else" + "same" * 9).cached_tokens == 4
    assert ask(cache, "else" + text(5) + "same" * 10).cached_tokens == 0


def test_prompts_of_different_salts_share_nothing() -> None:
    cache = PrefixCache(block_size=4)
    ask(cache, text(20), "one")

    assert ask(cache, text(20), "two").cached_tokens == 0
    assert ask(cache, text(20)).cached_tokens == 0
    assert ask(cache, text(20), "one").cached_tokens == 16


def test_what_a_running_request_has_read_is_shared_with_others() -> None:
    cache = PrefixCache(block_size=4)
    first = take(cache, text(20))

    assert take(cache, text(20)).cached_tokens == 16
    assert cache.usage == 5 / cache.capacity

    cache.give_back(first)
    assert cache.usage == 5 / cache.capacity


def test_one_block_of_the_pool_is_never_used() -> None:
    cache = PrefixCache(block_size=4, blocks=6)

    assert cache.take(cache.cut(text(21), "")) is None
    assert cache.take(cache.cut(text(20), "")) is not None
    assert cache.usage == 1


def test_a_prompt_waits_for_room_and_gets_it_once_another_gives_it_back() -> None:
    cache = PrefixCache(block_size=4, blocks=6)
    first = take(cache, text(10))
    second = cache.cut(text(9, name="b"), "")

    assert cache.take(second) is None

    cache.give_back(first)
    assert cache.take(second) is not None


def test_the_blocks_unused_for_longest_go_first() -> None:
    cache = PrefixCache(block_size=4, blocks=10)
    for name in "aba":
        ask(cache, text(16, name=name))

    ask(cache, text(20, name="c"))

    assert ask(cache, text(17, name="a")).cached_tokens == 16
    assert ask(cache, text(9, name="b")).cached_tokens == 0


def test_what_is_left_of_an_evicted_prompt_is_its_beginning() -> None:
    cache = PrefixCache(block_size=4, blocks=9)
    ask(cache, text(16, name="a"))
    ask(cache, text(24, name="b"))

    assert ask(cache, text(17, name="a")).cached_tokens == 8


def test_a_prompt_in_use_is_never_evicted() -> None:
    cache = PrefixCache(block_size=4, blocks=11)
    held = take(cache, text(16, name="a"))
    for name in "bcdef":
        ask(cache, text(20, name=name))
    cache.give_back(held)

    assert ask(cache, text(17, name="a")).cached_tokens == 16


def test_a_prompt_is_known_to_have_been_evicted_once_and_not_when_it_was_never_cached() -> None:
    cache = PrefixCache(block_size=4, blocks=9)

    asked = [ask(cache, text(24, name=name)).evicted for name in "abaab"]

    assert asked == [False, False, True, False, True]


def test_a_cache_that_is_switched_off_knows_nothing_and_still_takes_room() -> None:
    cache = PrefixCache(block_size=4, blocks=6, enabled=False)

    assert [ask(cache, text(20)).cached_tokens for _ in range(2)] == [0, 0]
    take(cache, text(17))
    assert cache.usage == 1


def test_all_room_is_free_again_when_all_requests_are_over() -> None:
    cache = PrefixCache(block_size=4, blocks=50)
    held = [take(cache, text(tokens)) for tokens in (3, 10, 10, 33, 40)]

    for hold in held:
        cache.give_back(hold)

    assert cache.usage == 0


def test_a_prompt_takes_a_block_for_its_last_tokens_as_well() -> None:
    cut = PrefixCache(block_size=4).cut(text(9), "")

    assert cut == Prompt(tokens=9, keys=cut.keys, blocks=3)
    assert len(cut.keys) == 2
