"""A server that only counts, and choices made with it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from tests.unit.handmade import number_of

from mrcr_action import tokens
from mrcr_action.choice import Choice
from mrcr_action.client import ModelEntry
from mrcr_action.config import RunConfig
from mrcr_action.template import Preflight

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from mrcr_action.client import ApiError, Client
    from mrcr_action.plan import Plan
    from mrcr_action.sample import Message

MODEL = ModelEntry("m", "org/m", None)


def as_o200k(messages: Sequence[Message]) -> int:
    """Counts as o200k does, and 5 tokens more for each message."""
    return sum(_size(message.content) + 5 for message in messages)


def as_bytes(messages: Sequence[Message]) -> int:
    """Counts bytes, about five times as many tokens as o200k."""
    return sum(len(message.content.encode()) + 5 for message in messages)


def as_quarters(messages: Sequence[Message]) -> int:
    """Counts four characters as a token, which varies from row to row against o200k."""
    return sum(len(message.content) // 4 + 5 for message in messages)


@dataclass
class Counter:
    """A server of which /tokenize alone is asked; rows as `tests.unit.handmade` makes them."""

    measure: Callable[[Sequence[Message]], int] = as_o200k
    error: ApiError | None = None
    after: int = 0
    """Questions answered before the error."""
    counted: list[tuple[int, int]] = field(default_factory=list)
    """Needle count and number of every row counted."""
    kwargs: list[Mapping[str, Any]] = field(default_factory=list)
    running: int = 0
    most: int = 0

    async def count_tokens(
        self, model: str, messages: Sequence[Message], *, template_kwargs: Mapping[str, Any]
    ) -> int:
        assert model == MODEL.id
        self.kwargs.append(template_kwargs)
        if self.error is not None and len(self.kwargs) > self.after:
            raise self.error
        if len(messages) == 1:
            return 1
        row = number_of(messages)
        self.running += 1
        self.most = max(self.most, self.running)
        # Later rows sooner, so that answers do not come in the order of the questions.
        await asyncio.sleep(0.002 / (row[1] + 1))
        self.running -= 1
        self.counted.append(row)
        return self.measure(messages)


def config_of(dataset: Path, **keys: Any) -> RunConfig:
    """A configuration of the openai protocol."""
    return RunConfig(**{"protocol": "openai", "needles": (2,), "dataset": str(dataset), **keys})


def seen(fingerprint: str = "f1", per_message: float | None = 5.0) -> Preflight:
    """What a preflight may have shown."""
    return Preflight(
        two_user_turns=True,
        merged=False,
        thinks=None,
        overhead_tokens=20,
        tokens_per_message=per_message,
        fingerprint=fingerprint,
        notes=(),
    )


def chosen(
    config: RunConfig,
    *,
    limit: int = 1_000_000,
    server: Counter | None = None,
    told: list[tuple[int, int]] | None = None,
    preflight: Preflight | None = None,
    model: ModelEntry = MODEL,
    choice: Choice | None = None,
) -> Plan:
    """The plan for a server, by default one that counts as o200k does."""

    def progress(done: int, wanted: int) -> None:
        if told is not None:
            told.append((done, wanted))

    return asyncio.run(
        (choice or Choice(config)).choose(
            limit=limit,
            client=cast("Client", server or Counter()),
            model=model,
            seen=preflight,
            progress=progress,
        )
    )


def picks(plan: Plan) -> set[tuple[str, int]]:
    """The rows of a plan."""
    return {(ask.shard, ask.row) for ask in plan.asks}


def by_cell(plan: Plan) -> dict[str, int]:
    """Rows planned, of every cell that has any."""
    return {cell.name: cell.planned for cell in plan.cells if cell.planned}


@cache
def _size(text: str) -> int:
    return tokens.count(text)
