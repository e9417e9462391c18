"""What a fault is: an engine that does one thing wrong."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine_faults.request import Request

Tensor = Any
"""A tensor of torch, which only vLLM's own environment has."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another request of the same step."""

    request: Request
    row: Tensor
    """Its row of the block table, as it should be."""


@dataclass(kw_only=True)
class Fault:
    """The healthy engine. A fault overrides the methods of what it breaks, and calls `struck`.

    Fields without an underscore are its parameters. Every method sees one engine step.
    """

    _struck: Callable[[Request], None] = field(default=lambda _request: None, repr=False)
    _random: random.Random = field(default_factory=lambda: random.Random(0), repr=False)

    def struck(self, *requests: Request) -> None:
        """Say which requests were really computed wrongly.

        A fault that never struck is told apart so from one that nobody saw.
        """
        for request in requests:
            self._struck(request)

    def read_blocks(self, row: Tensor, request: Request, others: Sequence[Neighbour]) -> None:
        """Edit the block-table row that a request reads from; what it writes to stays right."""

    def positions(self, positions: Tensor, request: Request) -> Tensor:
        """The positions by which a request's queries and keys are rotated."""
        return positions

    def stored(
        self, key: Tensor, value: Tensor, slots: Tensor, requests: Sequence[Request]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """What is written to the KV cache, and where: slot -1 is nowhere."""
        return key, value, slots

    def attention(self, scale: float, requests: Sequence[Request]) -> dict[str, Any]:
        """Attributes of the attention layer to change for one call."""
        return {}

    def attended(self, output: Tensor, requests: Sequence[Request]) -> None:
        """Edit what attention gives."""

    def logits(self, logits: Tensor, requests: Sequence[Request]) -> None:
        """Edit the logits, a row for each request."""

    def forgets_to_evict(self) -> bool:
        """Whether a block that is taken for something else stays in the prefix cache's table."""
        return False

    def overrides(self, method: str) -> bool:
        """Whether it breaks what a method stands for."""
        return getattr(type(self), method) is not getattr(Fault, method)
