"""Faults between requests that are computed together: one request alone is answered rightly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine_faults.fault import Fault, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine_faults.fault import Neighbour
    from engine_faults.request import Request


@dataclass(kw_only=True)
class CrossedBlock(Fault):
    """Now and then, for one step, an entry of the block table is another request's."""

    chance: float = 0.01

    def read_blocks(self, row: Tensor, request: Request, others: Sequence[Neighbour]) -> None:
        if others and self._random.random() < self.chance:
            index = self._random.randrange(request.blocks)
            row[index] = self._random.choice(others).row[index]
            self.struck(request)


@dataclass(kw_only=True)
class CrossedRow(Fault):
    """Now and then, for one step, the whole row of the block table is another request's."""

    chance: float = 0.005

    def read_blocks(self, row: Tensor, request: Request, others: Sequence[Neighbour]) -> None:
        if others and self._random.random() < self.chance:
            row.copy_(self._random.choice(others).row)
            self.struck(request)


@dataclass(kw_only=True)
class CrossedLogits(Fault):
    """Now and then the rows of logits are one request off."""

    chance: float = 0.01

    def logits(self, logits: Tensor, requests: Sequence[Request]) -> None:
        if len(requests) > 1 and self._random.random() < self.chance:
            logits.copy_(logits.roll(1, 0))
            self.struck(*requests)


@dataclass(kw_only=True)
class MixedBatch(Fault):
    """A request that decodes in the step in which another's prompt is computed misses the block
    before its last one."""

    def read_blocks(self, row: Tensor, request: Request, others: Sequence[Neighbour]) -> None:
        is_mixed = any(other.request.is_prefill for other in others)
        if is_mixed and not request.is_prefill and request.blocks > 1:
            row[request.blocks - 2] = 0
            self.struck(request)
