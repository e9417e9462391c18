"""Prompts that end where a server's bookkeeping may be off by one.

A prompt is read in chunks and kept in blocks. What lies at the end of one can get lost, and that
shows only where it matters for the answer: in the question, when the prompt ends just past such an
end, or in the wanted needle, when it lies across one. Few prompts do by chance. So the first turn
of some samples is padded with words that mean nothing until they do, and each is asked alone, since
neighbours in a batch would shift the chunks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from mrcr_action.choice.fit import messages_of
from mrcr_action.client import Rejected
from mrcr_action.daemon_thread import in_daemon_thread
from mrcr_action.request import template_kwargs
from mrcr_action.rounds import Round, chain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.client import Client
    from mrcr_action.config import RunConfig
    from mrcr_action.data.shards import Shards
    from mrcr_action.plan import Ask, Plan
    from mrcr_action.result import CacheInfo
    from mrcr_action.rounds import Kind
    from mrcr_action.sample import Message, Sample

PAST = (4, 24)
"""Tokens that a prompt reaches past the end of a block or chunk, at least and at most: most of the
question lies before that end then, and something is left to read behind it."""

ASSUMED_BLOCK = 16
ASSUMED_CHUNKS = (8192, 2048)
"""Tokens where the server does not tell. A multiple of the larger is one of most others in use."""

TRIALS = 6
"""How often the server counts a padded prompt before a sample is given up."""

_PROBED = (1, 65)
"""Words by which it is learnt how many tokens a word has."""


@dataclass(frozen=True, kw_only=True)
class Boundaries:
    """What it takes to pad samples for one server."""

    config: RunConfig
    client: Client
    model: str
    shards: Shards
    _counts: dict[tuple[int, int], int] = field(default_factory=dict)
    """Tokens of a sample, by its place in the plan, with so many words."""

    async def add(self, plan: Plan, cache: CacheInfo) -> Plan:
        """A plan with its boundary rounds.

        Args:
            plan: its samples are padded.
            cache: what the server tells of its blocks and chunks.

        Raises:
            ApiError: the server is in trouble.
            DataError: a row cannot be read.
        """
        if plan.counted_by != "server":
            return plan.noted("Boundaries were left out: without /tokenize no prompt can be fit.")
        block = cache.block_size or ASSUMED_BLOCK
        chunk, plan = _chunk(plan, cache)
        kinds: tuple[tuple[Kind, int, tuple[Kind, ...]], ...] = (
            ("block", block, ("block", "block warm")),
            ("chunk", chunk, ("chunk",)),
            ("straddle", chunk, ("straddle",)),
        )
        for kind, size, names in kinds:
            stage = plan.next_stage
            rounds = [Round(name=n, kind=n, concurrency=1, stage=stage) for n in names]
            asks = list(plan.asks)
            for ask in _spread(plan.samples):
                if sum(a.pass_name == kind for a in asks) == self.config.boundaries:
                    break
                if padded := await self._padded(ask, kind, size, plan.max_prompt_tokens):
                    asks += chain(padded, rounds, len(asks))
            found = sum(ask.pass_name == kind for ask in asks)
            if found:
                plan = msgspec.structs.replace(
                    plan, asks=tuple(asks), rounds=(*plan.rounds, *rounds)
                )
            if found < self.config.boundaries:
                told = (
                    f"Only {found} of {self.config.boundaries} samples could be padded for the"
                    f" round {kind} ({size:,} tokens): there are no more, or they get too long."
                )
                plan = plan.noted(told)
        return plan

    async def _padded(self, ask: Ask, kind: Kind, size: int, limit: int) -> Ask | None:
        """A sample padded so that it, or its needle, ends where it shall; None if it cannot."""
        try:
            return await self._fit(ask, kind, size, limit)
        except Rejected:
            return None  # too long to be counted, or its start alone is nothing for the template

    async def _fit(self, ask: Ask, kind: Kind, size: int, limit: int) -> Ask | None:
        sample = await in_daemon_thread(lambda: self.shards.load(ask.shard, ask.row))
        few, many = [await self._count(ask, sample, words) for words in _PROBED]
        per_word = (many - few) / (_PROBED[1] - _PROBED[0])
        if per_word <= 0:
            return None
        if kind == "straddle":
            plain = await self._count(ask, sample, 0)
            middle, reach = await self._needle(sample)
            # The needle moves with the end of the prompt.
            offset, slack = plain - middle, max(1, reach)
            target = _next(few - offset + 1, size) - 1 + offset
        else:
            low, high = PAST[0], min(PAST[1], size - 1)
            offset, slack = (low + high) // 2, (high - low) // 2
            target = _next(few - offset, size) + offset
        words = _PROBED[0] + round((target - few) / per_word)
        for _ in range(TRIALS):
            if target > limit:
                break
            count = await self._count(ask, sample, words)
            if abs(count - target) <= slack and count <= limit:
                return msgspec.structs.replace(
                    ask, prompt_tokens=count, estimated=False, padding=words
                )
            step = round((target - count) / per_word) or (1 if count < target else -1)
            words = max(1, words + step)
        return None

    async def _needle(self, sample: Sample) -> tuple[int, int]:
        """Where the wanted needle's middle lies, in tokens from the start, and a third of it."""
        messages = messages_of(sample, self.config)
        shift = len(sample.messages) - len(messages)  # leading turns that were merged
        at = sample.desired_msg_index - shift + 1
        start = await self._tokens(messages[:at])
        end = await self._tokens(messages[: at + 1])
        return (start + end) // 2, (end - start) // 3

    async def _count(self, ask: Ask, sample: Sample, words: int) -> int:
        key = (ask.index, words)
        if key not in self._counts:
            messages = messages_of(sample, self.config, padding=words)
            self._counts[key] = await self._tokens(messages)
        return self._counts[key]

    async def _tokens(self, messages: Sequence[Message]) -> int:
        return await self.client.count_tokens(
            self.model, messages, template_kwargs=template_kwargs(self.config)
        )


def _chunk(plan: Plan, cache: CacheInfo) -> tuple[int, Plan]:
    """Tokens of a chunk of the prefill, and the plan with a note where they were assumed."""
    if cache.prefill_chunk:
        return cache.prefill_chunk, plan
    # With room for three of them, the samples that are longest hold one end at least.
    room = plan.max_prompt_tokens
    size = next((size for size in ASSUMED_CHUNKS if room >= 3 * size), ASSUMED_CHUNKS[-1])
    told = (
        "The server does not tell the size of its prefill chunks (--max-num-batched-tokens);"
        f" {size:,} tokens were assumed for the rounds chunk and straddle."
    )
    return size, plan.noted(told)


def _spread(asks: Sequence[Ask]) -> list[Ask]:
    """Samples such that the first few are of all lengths: the middle one, the quarters, and on."""
    by_length = sorted(asks, key=lambda ask: (ask.prompt_tokens, ask.index))
    found: dict[int, Ask] = {}
    parts = 2
    while len(found) < len(by_length):
        for at in range(1, parts, 2):
            ask = by_length[len(by_length) * at // parts]
            found.setdefault(ask.index, ask)
        if parts > 4 * len(by_length):
            found |= {ask.index: ask for ask in by_length if ask.index not in found}
        parts *= 2
    return list(found.values())


def _next(least: int, size: int) -> int:
    """The first multiple of a size, above 0, that is no less."""
    return max(1, -(-least // size)) * size
