"""Faults of chunked prefill and of the edges of blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine_faults.fault import Fault, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine_faults.fault import Neighbour
    from engine_faults.request import Request


@dataclass(kw_only=True)
class ChunkMissBlock(Fault):
    """A chunk after the first does not see the last full block before it."""

    def read_blocks(self, row: Tensor, request: Request, others: Sequence[Neighbour]) -> None:
        later = request.is_prefill and not request.is_first_step
        if later and request.context >= request.block:
            row[request.context // request.block - 1] = 0
            self.struck(request)


@dataclass(kw_only=True)
class ChunkDropTokens(Fault):
    """The last tokens of every chunk but the final one are never stored."""

    tokens: int = 1

    def stored(
        self, key: Tensor, value: Tensor, slots: Tensor, requests: Sequence[Request]
    ) -> tuple[Tensor, Tensor, Tensor]:
        cut = [r for r in requests if r.is_prefill and r.length < r.prompt]
        if cut:
            slots = slots.clone()
            for request in cut:
                slots[max(request.begin, request.end - self.tokens) : request.end] = -1
                self.struck(request)
        return key, value, slots


@dataclass(kw_only=True)
class ChunkPosition(Fault):
    """Positions of every chunk after the first begin too late."""

    by: int = 1

    def positions(self, positions: Tensor, request: Request) -> Tensor:
        if not request.is_prefill or request.is_first_step:
            return positions
        self.struck(request)
        return positions + self.by


@dataclass(kw_only=True)
class FullBlock(Fault):
    """In the decode step that fills a block, that block is not read: too few are counted."""

    def read_blocks(self, row: Tensor, request: Request, others: Sequence[Neighbour]) -> None:
        if not request.is_prefill and request.length % request.block == 0:
            row[request.length // request.block - 1] = 0
            self.struck(request)
