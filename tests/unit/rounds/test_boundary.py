"""Padding a prompt to the token, against tokenizers that count unlike each other."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from mrcr_action.client import Rejected
from mrcr_action.config import RunConfig
from mrcr_action.result import CacheInfo
from mrcr_action.rounds.boundary import ASSUMED_CHUNKS, PAST, Boundaries
from mrcr_action.rounds.padding import filler, padded
from mrcr_action.sample import Message, Sample, SampleId

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mrcr_action.client import Client
    from mrcr_action.data.shards import Shards
    from mrcr_action.plan import Ask, Plan

CONFIG = RunConfig(needles=(2,), num_samples=4, boundaries=2, protocol="openai")
SIZES = CacheInfo(block_size=128, prefill_chunk=2048)

NEEDLE = "A needle of some length, which is wanted, word for word. " * 4


def sample(row: int) -> Sample:
    messages = (
        Message("user", "Hello."),
        Message("user", "write a poem"),
        Message("assistant", "Another piece. " * 40 * (row + 1)),
        Message("user", "write a poem"),
        Message("assistant", NEEDLE),
        Message("user", "write a tale"),
        Message("assistant", "And one more. " * 60),
        Message("user", "Prepend 0123456789 to the 2nd poem."),
    )
    size = sum(len(m.content) for m in messages)
    return Sample(
        id=SampleId("s", row, "0"),
        messages=messages,
        answer="0123456789" + NEEDLE,
        nonce="0123456789",
        n_needles=2,
        desired_msg_index=3,
        n_chars=size,
    )


class FakeShards:
    """Rows that are made when they are asked for."""

    def load(self, _shard: str, row: int) -> Sample:
        return sample(row)


class Tokenizer:
    """Counts by a number of characters to a token, with some for each turn."""

    def __init__(self, characters: float, *, refuses: bool = False) -> None:
        self.characters = characters
        self.refuses = refuses
        self.asked = 0

    def count(self, messages: Sequence[Message]) -> int:
        return 3 + sum(4 + round(len(m.content) / self.characters) for m in messages)

    async def count_tokens(
        self, _model: str, messages: Sequence[Message], *, template_kwargs: Mapping[str, Any]
    ) -> int:
        del template_kwargs
        self.asked += 1
        if self.refuses and messages[-1].role == "assistant":
            raise Rejected("roles must alternate")
        return self.count(messages)


def plan_with(
    make_record: Callable[..., Any],
    make_plan: Callable[..., Plan],
    tokenizer: Tokenizer,
    *,
    cache: CacheInfo = SIZES,
    limit: int = 30_000,
    counted_by: str = "server",
) -> Plan:
    records = [
        make_record(i, row=i, prompt_tokens=tokenizer.count(sample(i).messages)) for i in range(4)
    ]
    plan = make_plan(records, CONFIG, max_prompt_tokens=limit, counted_by=counted_by)
    boundaries = Boundaries(
        config=CONFIG,
        client=cast("Client", tokenizer),
        model="m",
        shards=cast("Shards", FakeShards()),
    )
    return asyncio.run(boundaries.add(plan, cache))


def of_round(plan: Plan, name: str) -> list[Ask]:
    return [ask for ask in plan.asks if ask.pass_name == name]


@pytest.mark.parametrize("characters", [1, 2, 3.7])
def test_padded_prompts_end_just_past_a_block_and_a_chunk(
    make_record: Callable[..., Any], make_plan: Callable[..., Plan], characters: float
) -> None:
    tokenizer = Tokenizer(characters)
    plan = plan_with(make_record, make_plan, tokenizer)
    for name, size in (("block", 128), ("block warm", 128), ("chunk", 2048)):
        asks = of_round(plan, name)
        assert len(asks) == 2
        for ask in asks:
            count = tokenizer.count(padded(sample(ask.row).messages, ask.padding))
            assert ask.prompt_tokens == count
            assert PAST[0] <= count % size <= PAST[1]
            assert count > size


@pytest.mark.parametrize("characters", [1, 2, 3.7])
def test_the_wanted_needle_lies_across_the_end_of_a_chunk(
    make_record: Callable[..., Any], make_plan: Callable[..., Plan], characters: float
) -> None:
    tokenizer = Tokenizer(characters)
    plan = plan_with(make_record, make_plan, tokenizer)
    assert len(of_round(plan, "straddle")) == 2
    for ask in of_round(plan, "straddle"):
        messages = padded(sample(ask.row).messages, ask.padding)
        start, end = tokenizer.count(messages[:4]), tokenizer.count(messages[:5])
        last = (end // 2048) * 2048 - 1
        assert start < last < end


def test_warm_follows_its_cold_one_and_each_is_asked_alone(
    make_record: Callable[..., Any], make_plan: Callable[..., Plan]
) -> None:
    plan = plan_with(make_record, make_plan, Tokenizer(3))
    cold, warm = of_round(plan, "block"), of_round(plan, "block warm")
    assert [ask.follows for ask in warm] == [ask.index for ask in cold]
    assert [ask.padding for ask in warm] == [ask.padding for ask in cold]
    assert {round_.concurrency for round_ in plan.rounds[1:]} == {1}
    assert [ask.index for ask in plan.asks] == list(range(len(plan.asks)))


def test_a_sample_that_would_get_too_long_is_left_out_and_that_is_said(
    make_record: Callable[..., Any], make_plan: Callable[..., Plan]
) -> None:
    plan = plan_with(make_record, make_plan, Tokenizer(3), limit=1_000)
    assert not of_round(plan, "chunk")
    assert "chunk" not in {round_.name for round_ in plan.rounds}
    assert any("Only 0 of 2 samples could be padded for the round chunk" in n for n in plan.notes)


@pytest.mark.parametrize("limit", [2_066, 2_400, 2_414])
def test_no_padded_prompt_is_longer_than_the_limit(
    make_record: Callable[..., Any], make_plan: Callable[..., Plan], limit: int
) -> None:
    # A server refuses what has no room for an answer, and a request that is lost is no verdict.
    plan = plan_with(make_record, make_plan, Tokenizer(3), limit=limit)
    own = [ask.prompt_tokens for ask in plan.asks if ask.padding]
    assert own
    assert max(own) <= limit


def test_a_server_that_counts_no_tokens_has_no_boundaries(
    make_record: Callable[..., Any], make_plan: Callable[..., Plan]
) -> None:
    tokenizer = Tokenizer(3)
    plan = plan_with(make_record, make_plan, tokenizer, counted_by="o200k")
    assert (len(plan.rounds), tokenizer.asked) == (1, 0)
    assert "without /tokenize" in plan.notes[-1]


def test_a_template_that_refuses_the_start_of_a_conversation_ends_nothing(
    make_record: Callable[..., Any], make_plan: Callable[..., Plan]
) -> None:
    plan = plan_with(make_record, make_plan, Tokenizer(3, refuses=True))
    assert of_round(plan, "chunk")
    assert not of_round(plan, "straddle")


@pytest.mark.parametrize(("limit", "chunk"), [(30_000, 8192), (10_000, 2048)])
def test_a_chunk_that_nobody_tells_is_assumed_and_that_is_said(
    make_record: Callable[..., Any], make_plan: Callable[..., Plan], limit: int, chunk: int
) -> None:
    assert chunk in ASSUMED_CHUNKS
    tokenizer = Tokenizer(1)
    plan = plan_with(
        make_record, make_plan, tokenizer, cache=CacheInfo(block_size=128), limit=limit
    )
    for ask in of_round(plan, "chunk"):
        assert PAST[0] <= ask.prompt_tokens % chunk <= PAST[1]
    assert any(f"{chunk:,} tokens were assumed" in note for note in plan.notes)


def test_padding_changes_the_first_turn_only_and_none_changes_nothing() -> None:
    messages = sample(0).messages
    assert padded(messages, 0) == messages
    changed = padded(messages, 30)
    assert changed[1:] == messages[1:]
    assert changed[0].content == "Hello." + filler(30)
    assert filler(28).endswith(" y z a b")
