from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from mrcr_action.config import RunConfig
from mrcr_action.plan import Plan
from mrcr_action.result import CacheInfo
from mrcr_action.rounds import with_rounds
from mrcr_action.rounds.pool import pool_arguments, with_pool

CONFIG = RunConfig(needles=(2,), num_samples=9, max_tokens=100, passes=("cold", "warm"))
KNOWN = CacheInfo(block_size=16)


@pytest.fixture
def plan(make_record: Callable[..., Any], make_plan: Callable[..., Plan]) -> Plan:
    records = [make_record(i, prompt_tokens=1_000 * (i + 1)) for i in range(9)]
    return with_rounds(make_plan(records, CONFIG), CONFIG)


def test_the_longest_samples_are_asked_all_cold_and_then_all_again(plan: Plan) -> None:
    found = with_pool(plan, CONFIG, KNOWN, own=True)
    added = found.asks[len(plan.asks) :]
    assert [ask.row for ask in added] == [108, 107, 106, 105, 103, 104] * 2
    assert [ask.pass_name for ask in added] == ["pool"] * 6 + ["pool warm"] * 6
    assert [ask.index for ask in found.asks] == list(range(len(found.asks)))
    assert {ask.follows for ask in added} == {None}
    assert [r.stage for r in found.rounds] == [0, 0, 1, 2]


def test_the_cache_holds_the_longest_sample_and_not_all_of_them(plan: Plan) -> None:
    found = with_pool(plan, CONFIG, KNOWN, own=True)
    # 9,000 tokens and an answer of 100 are 569 blocks of 16, and 2 are spare.
    assert pool_arguments(found, CONFIG, KNOWN) == (
        *("--num-gpu-blocks-override", "571", "--max-model-len", "9100"),
    )


def test_the_cache_holds_the_longest_sample_also_where_its_length_was_estimated_too_short(
    plan: Plan, make_record: Callable[..., Any]
) -> None:
    found = with_pool(plan, CONFIG, KNOWN, own=True)
    records = [make_record(i, prompt_tokens=1_100 * (i + 1)) for i in range(9)]
    # 9,900 tokens and an answer of 100 are 625 blocks.
    assert pool_arguments(found, CONFIG, KNOWN, records) == (
        *("--num-gpu-blocks-override", "627", "--max-model-len", "10000"),
    )


@pytest.mark.parametrize(
    ("config", "cache", "own", "reason"),
    [
        (CONFIG, KNOWN, False, "it takes a server that is started here"),
        (CONFIG, CacheInfo(), True, "the server does not tell the size of its blocks"),
        (RunConfig(max_tokens=60_000), KNOWN, True, "the samples are too few, or too short"),
    ],
)
def test_what_stands_in_the_way_is_said_and_nothing_is_asked(
    plan: Plan, config: RunConfig, cache: CacheInfo, *, own: bool, reason: str
) -> None:
    found = with_pool(plan, config, cache, own=own)
    assert found.asks == plan.asks
    assert reason in found.notes[-1]


@pytest.mark.parametrize("key", ["max_tokens", "max_completion_tokens"])
def test_there_is_room_for_answers_as_long_as_extra_body_allows(plan: Plan, key: str) -> None:
    config = msgspec.structs.replace(CONFIG, extra_body={key: 700})
    found = with_pool(plan, config, KNOWN, own=True)
    assert pool_arguments(found, config, KNOWN)[-1] == "9700"


@pytest.mark.parametrize(
    ("capacity", "is_asked"),
    [
        (32_000, True),  # all of its 2,000 blocks of 16
        (31_984, True),  # but one
        (16_000, False),  # two for every 16 tokens, such as of a full and a sliding window
        (30_000, False),
        (None, True),
    ],
)
def test_a_model_whose_requests_take_more_blocks_than_their_tokens_is_started_once_only(
    plan: Plan, capacity: int | None, *, is_asked: bool
) -> None:
    cache = CacheInfo(block_size=16, blocks=2_000, capacity=capacity)
    found = with_pool(plan, CONFIG, cache, own=True, window=10_000)
    assert (len(found.rounds) == 4) is is_asked
    assert any("several kinds of attention" in note for note in found.notes) is not is_asked
