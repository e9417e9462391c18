"""A KV cache smaller than what is asked: blocks are evicted, and must not be found again.

A server with a cache for a million tokens evicts nothing in a test of an hour. So it is started
once more with one that just holds the longest sample, and some samples are asked twice in the same
order: by the second time all of them have been evicted, and a block that is found in the cache all
the same is a wrong one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mrcr_action.request import request_body
from mrcr_action.rounds import FIRST, Round, pool_sample

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mrcr_action.config import RunConfig
    from mrcr_action.plan import Ask, Plan
    from mrcr_action.result import CacheInfo, Record
    from mrcr_action.rounds import Kind

KINDS: tuple[Kind, ...] = ("pool", "pool warm")

LEAST_OVERFLOW = 1.5
"""How many times as large as its cache the samples are at least: each is evicted in between."""

SPARE_BLOCKS = 2
"""Blocks that vLLM keeps for itself, or rounds up to."""


def with_pool(
    plan: Plan, config: RunConfig, cache: CacheInfo, *, own: bool, window: int | None = None
) -> Plan:
    """A plan with the rounds of a small cache, or with a note that says why there are none.

    Args:
        plan: its longest samples are taken.
        config: how long answers get, and how many requests are in flight.
        cache: what the server tells of its blocks.
        own: whether the server was started here, and can be started again.
        window: of the server, in tokens.
    """
    chosen = pool_sample(plan.samples)
    lack = ""
    if not own:
        lack = "it takes a server that is started here"
    elif cache.block_size is None:
        lack = "the server does not tell the size of its blocks in /metrics"
    elif _blocks_beside(cache, window) > SPARE_BLOCKS:
        # vLLM does not start where the longest request finds no room in all of its kinds of cache.
        lack = "the model has several kinds of attention, and nobody tells how small one may be"
    elif sum(a.prompt_tokens for a in chosen) < LEAST_OVERFLOW * window_of(chosen, config):
        lack = "the samples are too few, or too short, to fill one that holds the longest of them"
    if lack:
        note = f"The rounds with a small KV cache were left out: {lack}."
        return plan.noted(note)
    asks, rounds = list(plan.asks), list(plan.rounds)
    for kind in KINDS:
        rounds.append(
            Round(
                name=kind,
                kind=kind,
                concurrency=config.concurrencies[0],
                stage=rounds[-1].stage + 1,
            )
        )
        asks += [
            msgspec.structs.replace(ask, index=len(asks) + at, pass_name=kind, follows=None)
            for at, ask in enumerate(chosen)
        ]
    return msgspec.structs.replace(plan, asks=tuple(asks), rounds=tuple(rounds))


def _blocks_beside(cache: CacheInfo, window: int | None) -> int:
    """Blocks of a request as long as the window beside those that its tokens fill; 0 if unknown."""
    if not (cache.block_size and cache.blocks and cache.capacity and window):
        return 0
    return cache.blocks * window // cache.capacity - -(-window // cache.block_size)


def window_of(asks: list[Ask], config: RunConfig) -> int:
    """Tokens that the longest of some samples takes, with its answer."""
    return max(ask.prompt_tokens for ask in asks) + longest_answer(config)


def longest_answer(config: RunConfig) -> int:
    """Tokens that an answer may take; ``extra_body`` may allow more than ``max_tokens``."""
    body = request_body(config, "", ())
    given = [body.get(key) for key in ("max_tokens", "max_completion_tokens")]
    return max([config.max_tokens, *(limit for limit in given if type(limit) is int)])


def pool_arguments(
    plan: Plan, config: RunConfig, cache: CacheInfo, records: Iterable[Record] = ()
) -> tuple[str, ...]:
    """What a server is started with, behind all else, to have a cache that small.

    Args:
        plan: its rounds of the small cache are meant.
        config: how long answers get.
        cache: what is known of the blocks.
        records: of the first server; they tell what the plan may only estimate, the longest prompt.
    """
    assert cache.block_size is not None
    chosen = [ask for ask in plan.asks if ask.pass_name == KINDS[0]]
    rows = {(ask.shard, ask.row) for ask in chosen}
    counted = [
        (record.prompt_tokens or 0) + longest_answer(config)
        for record in records
        if record.pass_name == FIRST and (record.shard, record.row) in rows
    ]
    window = max([window_of(chosen, config), *counted])
    blocks = -(-window // cache.block_size) + SPARE_BLOCKS
    return ("--num-gpu-blocks-override", str(blocks), "--max-model-len", str(window))
