"""Other questions about one conversation: its turns from the first to the last.

A question looks at one place of a context, and what is wrong elsewhere stays unseen. Once a long
conversation has been read, each further question about it costs its answer and hardly any prefill:
asked for turns spread over all of it, a server shows where in a context it is blind.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from mrcr_action.daemon_thread import in_daemon_thread
from mrcr_action.rounds import Round
from mrcr_action.sample import Message
from mrcr_action.synthetic.turns import ordinal

if TYPE_CHECKING:
    from collections.abc import Callable

    from mrcr_action.config import RunConfig
    from mrcr_action.data.shards import Shards
    from mrcr_action.plan import Plan
    from mrcr_action.sample import Sample

QUESTION = re.compile(
    r"(Prepend \S+ to the )\d+(?:st|nd|rd|th)( \(1 indexed\) ).+"
    r"(\. Do not include any other text in your response\.)",
    re.DOTALL,
)
"""The dataset's last turn."""

REQUEST = re.compile(r"write an? (.+)", re.DOTALL | re.IGNORECASE)
"""The dataset's other turns of the user."""

MOST_ALIKE = 8
"""The last of several equal requests that is asked for, as in the dataset."""

LONGER = 64
"""Tokens by which the question about another turn may be longer."""

SPARE = 1.3
"""How many more tokens than its share of the prompt's an answer may take."""


async def with_sweep(
    plan: Plan,
    config: RunConfig,
    shards: Shards,
    *,
    cannot_read: Callable[[Sample], str | None] | None = None,
) -> Plan:
    """A plan with other questions about its longest sample.

    Args:
        plan: has it.
        config: how many to ask, and how long an answer may get.
        shards: have its text.
        cannot_read: tells why the model cannot answer a question, as far as that is known of it.

    Raises:
        DataError: the row cannot be read.
    """
    fitting = [a for a in plan.samples if a.prompt_tokens + LONGER <= plan.max_prompt_tokens]
    if not fitting:
        told = "The sweep was left out: no sample leaves room for a question that is longer."
        return plan.noted(told)
    longest = max(fitting, key=lambda ask: (ask.prompt_tokens, -ask.index))
    sample = await in_daemon_thread(lambda: shards.load(longest.shard, longest.row))
    room = config.max_tokens * sample.n_chars / (SPARE * max(1, longest.prompt_tokens))
    turns = [t for t in turns_of(sample) if _length(sample, t) <= room]
    if cannot_read is not None:
        turns = [t for t in turns if not cannot_read(asked_for(sample, t))]
    turns = spread(sample, turns, config.sweep)
    if len(turns) < config.sweep:
        told = (
            f"Only {len(turns)} of {config.sweep} other turns of the longest sample can be asked"
            " for: the others are worded otherwise, or their replies are longer than max_tokens"
            f"{', or the probe cannot read them' if cannot_read else ''}."
        )
        plan = plan.noted(told)
    if not turns:
        return plan
    round_ = Round(
        name="sweep",
        kind="sweep",
        concurrency=config.concurrencies[0],
        stage=plan.next_stage,
    )
    asks = [
        msgspec.structs.replace(
            longest,
            index=len(plan.asks) + at,
            pass_name=round_.name,
            follows=None,
            turn=turn,
            estimated=True,
        )
        for at, turn in enumerate(turns)
    ]
    return msgspec.structs.replace(plan, asks=(*plan.asks, *asks), rounds=(*plan.rounds, round_))


def turns_of(sample: Sample) -> list[int]:
    """Messages, by index, whose replies can be asked for, but for the one that the row asks for."""
    messages = sample.messages
    if not QUESTION.fullmatch(messages[-1].content):
        return []
    seen: Counter[str] = Counter()
    found = []
    for at, (message, reply) in enumerate(itertools.pairwise(messages)):
        if message.role != "user" or reply.role != "assistant":
            continue
        seen[message.content] += 1
        if (
            at != sample.desired_msg_index
            and seen[message.content] <= MOST_ALIKE
            and REQUEST.fullmatch(message.content)
        ):
            found.append(at)
    return found


def spread(sample: Sample, turns: list[int], count: int) -> list[int]:
    """So many of some turns, as evenly over the conversation's characters as there are any."""
    ends: list[int] = []
    total = 0
    for message in sample.messages:
        total += len(message.content)
        ends.append(total)
    left, found = list(turns), []
    parts = min(count, len(turns))
    for part in range(parts):
        place = (part + 0.5) / parts * total
        nearest = min(left, key=lambda turn: abs(ends[turn] - place))
        left.remove(nearest)
        found.append(nearest)
    return sorted(found)


def asked_for(sample: Sample, turn: int) -> Sample:
    """The same conversation with the question for another reply.

    Args:
        sample: a row.
        turn: one of `turns_of` it.
    """
    wanted = sample.messages[turn].content
    request, question = REQUEST.fullmatch(wanted), QUESTION.fullmatch(sample.messages[-1].content)
    assert request is not None
    assert question is not None
    position = sum(message.content == wanted for message in sample.messages[: turn + 1])
    before, between, after = question.groups()
    text = f"{before}{ordinal(position)}{between}{request[1]}{after}"
    return replace(
        sample,
        messages=(*sample.messages[:-1], Message("user", text)),
        answer=sample.nonce + sample.messages[turn + 1].content,
        desired_msg_index=turn,
        n_chars=sample.n_chars + len(text) - len(sample.messages[-1].content),
    )


def _length(sample: Sample, turn: int) -> int:
    """Characters of the answer."""
    return len(sample.nonce) + len(sample.messages[turn + 1].content)
