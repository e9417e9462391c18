"""The rounds of a run: every sample cold, then again warm, repeated, or with other company. Pure.

A server is not one thing: a prompt takes another way through it when its beginning is cached, when
others are batched with it, or when its length ends at the edge of a block. A round is all requests
that go one of these ways. The first one is what a plain run asks, and what the others are compared
with, sample by sample.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.config import RunConfig
    from mrcr_action.plan import Ask, Plan

FIRST = "cold"
"""Name of the first round."""

Kind = Literal[
    "cold", "warm", "block", "block warm", "chunk", "straddle", "sweep", "pool", "pool warm"
]
"""Which way through the server. cold: not in the prefix cache. warm: in it. block and chunk: the
prompt ends just past a block of the KV cache or a chunk of the prefill. straddle: the wanted needle
lies across the end of a chunk. sweep: other turns of a conversation that is in the cache. pool: the
KV cache is smaller than what is asked."""

SAME_SAMPLES: frozenset[Kind] = frozenset({"cold", "warm"})
"""Rounds that ask the very requests of the first one, and are held to the same thresholds."""

POOL_SAMPLES = 6
"""Samples that are asked, twice, of the server with a small KV cache."""


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One round."""

    name: str = FIRST
    """Such as ``warm``, ``cold c1`` or ``warm #2``; what its asks carry as their pass."""
    kind: Kind = "cold"
    concurrency: int = 8
    """Requests in flight."""
    stage: int = 0
    """Its asks begin when those of all lower stages are done; rounds of one stage are mixed."""
    repeat: int = 1

    @property
    def is_first(self) -> bool:
        """Whether it is the one that the others are compared with."""
        return self.name == FIRST

    @property
    def has_same_samples(self) -> bool:
        """Whether it asks what the first one asks, word for word."""
        return self.kind in SAME_SAMPLES

    @property
    def from_cache(self) -> bool:
        """Whether its answers have to come from the prefix cache, or it tests nothing."""
        return self.kind in {"warm", "block warm"}

    @property
    def is_of_pool(self) -> bool:
        """Whether it is asked of the second server, with a small KV cache."""
        return self.kind in {"pool", "pool warm"}


def rounds_of(config: RunConfig) -> tuple[Round, ...]:
    """The rounds of whole samples that a configuration asks for, in their order."""
    found: list[Round] = []
    for stage, (concurrency, repeat) in enumerate(
        itertools.product(config.concurrencies, range(1, config.repeats + 1))
    ):
        further = "" if concurrency == config.concurrencies[0] else f" c{concurrency}"
        again = "" if repeat == 1 else f" #{repeat}"
        found += [
            Round(
                name=f"{kind}{further}{again}",
                kind=kind,
                concurrency=concurrency,
                stage=stage,
                repeat=repeat,
            )
            for kind in config.passes
        ]
    return tuple(found)


def with_rounds(plan: Plan, config: RunConfig) -> Plan:
    """A plan that asks each sample once, with all rounds of whole samples.

    A warm ask follows its cold one at once: in a small cache its blocks would soon be gone. Where
    there are several rounds, long and short samples take turns, so that they meet in a batch.
    """
    asks = tuple(in_rounds(plan.asks, config))
    return msgspec.structs.replace(plan, asks=asks, rounds=rounds_of(config))


def in_rounds(samples: Sequence[Ask], config: RunConfig, *, index: int = 0) -> list[Ask]:
    """Samples in all rounds of whole samples.

    Args:
        samples: one ask each.
        config: tells the rounds.
        index: place in the plan of the first ask.
    """
    rounds = rounds_of(config)
    samples = samples if len(rounds) == 1 else mixed(samples)
    asks: list[Ask] = []
    for _, several in itertools.groupby(rounds, key=lambda round_: round_.stage):
        kinds = list(several)
        for ask in samples:
            asks += chain(ask, kinds, index + len(asks))
    return asks


def mixed(asks: Sequence[Ask]) -> list[Ask]:
    """The longest, the shortest, the second longest and so on."""
    by_length = sorted(asks, key=lambda ask: (-ask.prompt_tokens, ask.index))
    half = (len(by_length) + 1) // 2
    longer, shorter = by_length[:half], by_length[half:][::-1]
    pairs = itertools.zip_longest(longer, shorter)
    return [ask for pair in pairs for ask in pair if ask is not None]


def chain(ask: Ask, rounds: Sequence[Round], index: int) -> list[Ask]:
    """One sample in several rounds, one request right after the other.

    Args:
        ask: the sample, as it is sent.
        rounds: of one stage.
        index: place in the plan of the first of them.
    """
    return [
        msgspec.structs.replace(
            ask,
            index=index + at,
            pass_name=round_.name,
            follows=index + at - 1 if at else None,
        )
        for at, round_ in enumerate(rounds)
    ]


def pool_sample(asks: Sequence[Ask]) -> list[Ask]:
    """The samples for a small KV cache: the longest ones, of which the fewest fit into it."""
    longest = sorted(asks, key=lambda ask: (-ask.prompt_tokens, ask.index))[:POOL_SAMPLES]
    return sorted(longest, key=lambda ask: ask.index)
