"""Faults of prefix-cache hits: nothing is wrong with a prompt that is computed in full."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine_faults.fault import Fault, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine_faults.fault import Neighbour
    from engine_faults.request import Request


@dataclass(kw_only=True)
class HitStaleBlock(Fault):
    """One block of a hit, drawn for each request, is another block of the same hit."""

    _drawn: dict[str, int] = field(default_factory=dict, repr=False)

    def read_blocks(self, row: Tensor, request: Request, others: Sequence[Neighbour]) -> None:
        blocks = request.hit // request.block
        if blocks:
            wrong = self._drawn.setdefault(request.id, self._random.randrange(blocks))
            row[wrong] = row[(wrong + 1) % blocks] if blocks > 1 else 0
            self.struck(request)


@dataclass(kw_only=True)
class HitTail(Fault):
    """The last block of a hit was counted as cached, but was never filled."""

    def read_blocks(self, row: Tensor, request: Request, others: Sequence[Neighbour]) -> None:
        if request.hit:
            row[request.hit // request.block - 1] = 0
            self.struck(request)


@dataclass(kw_only=True)
class HitHead(Fault):
    """The first block of a hit is read from where another request's begins, or from nowhere."""

    def read_blocks(self, row: Tensor, request: Request, others: Sequence[Neighbour]) -> None:
        if request.hit:
            row[0] = others[0].row[0] if others else 0
            self.struck(request)


@dataclass(kw_only=True)
class HitPosition(Fault):
    """Positions of all that comes after a hit are off by so many."""

    by: int = 1

    def positions(self, positions: Tensor, request: Request) -> Tensor:
        if not request.hit:
            return positions
        self.struck(request)
        return positions + self.by


@dataclass(kw_only=True)
class HitUnwritten(Fault):
    """What is computed after a hit is not stored in the first step: its own keys get lost."""

    def stored(
        self, key: Tensor, value: Tensor, slots: Tensor, requests: Sequence[Request]
    ) -> tuple[Tensor, Tensor, Tensor]:
        hit = [r for r in requests if r.hit and r.is_first_step]
        if hit:
            slots = slots.clone()
            for request in hit:
                slots[request.begin] = -1
                self.struck(request)
        return key, value, slots


@dataclass(kw_only=True)
class EvictedEntry(Fault):
    """A block that is evicted keeps its entry, and a later request hits it with other text in it.

    It needs a KV cache that is full, and acts where blocks are handed out; there no single
    request is struck.
    """

    def forgets_to_evict(self) -> bool:
        return True
