"""Faults of long contexts: short prompts are answered as they should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine_faults.fault import Fault, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine_faults.fault import Neighbour
    from engine_faults.request import Request


@dataclass(kw_only=True)
class Window(Fault):
    """Attention looks back no further than ``size``, once one request of a batch is past ``over``:
    a kernel that is chosen for the whole batch."""

    size: int = 1024
    over: int = 2048

    def attention(self, scale: float, requests: Sequence[Request]) -> dict[str, Any]:
        if all(request.length <= self.over for request in requests):
            return {}
        self.struck(*(request for request in requests if request.length > self.size))
        return {"sliding_window": self.size}


@dataclass(kw_only=True)
class AliasBeyond(Fault):
    """The index into the block table wraps at ``over`` tokens, and the beginning is read again."""

    over: int = 4096

    def read_blocks(self, row: Tensor, request: Request, others: Sequence[Neighbour]) -> None:
        most = self.over // request.block
        for index in range(most, request.blocks):
            row[index] = row[index % most]
        if request.blocks > most:
            self.struck(request)


@dataclass(kw_only=True)
class DropBlock(Fault):
    """Of contexts past ``over``, one block reads as zeros: the one at ``percent`` of the prompt."""

    over: int = 3000
    percent: int = 50

    def read_blocks(self, row: Tensor, request: Request, others: Sequence[Neighbour]) -> None:
        index = request.prompt * self.percent // 100 // request.block
        if request.prompt > self.over and (index + 1) * request.block <= request.context:
            row[index] = 0
            self.struck(request)


@dataclass(kw_only=True)
class DropMiddle(Fault):
    """Of contexts past ``over``, only the first and the last tokens are read."""

    over: int = 3000
    head: int = 1024
    tail: int = 1024

    def read_blocks(self, row: Tensor, request: Request, others: Sequence[Neighbour]) -> None:
        if request.length > self.over:
            row[self.head // request.block : (request.length - self.tail) // request.block] = 0
            self.struck(request)


@dataclass(kw_only=True)
class LostSplit(Fault):
    """While a context past ``over`` is decoded, one of the parts that the KV cache is split into
    for speed is lost where they are put together."""

    over: int = 3000
    parts: int = 8
    lost: int = 3

    def read_blocks(self, row: Tensor, request: Request, others: Sequence[Neighbour]) -> None:
        if not request.is_prefill and request.length > self.over:
            blocks = request.length // request.block
            row[blocks * self.lost // self.parts : blocks * (self.lost + 1) // self.parts] = 0
            self.struck(request)
