"""Faults of the positions by which queries and keys are rotated (RoPE)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine_faults.fault import Fault, Tensor

if TYPE_CHECKING:
    from engine_faults.request import Request


@dataclass(kw_only=True)
class PositionClamp(Fault):
    """Positions stop growing: the table of angles is too short."""

    most: int = 4096

    def positions(self, positions: Tensor, request: Request) -> Tensor:
        if request.length <= self.most:
            return positions
        self.struck(request)
        return positions.clamp(max=self.most - 1)


@dataclass(kw_only=True)
class PositionWrap(Fault):
    """Positions begin again at 0."""

    most: int = 4096

    def positions(self, positions: Tensor, request: Request) -> Tensor:
        if request.length <= self.most:
            return positions
        self.struck(request)
        return positions % self.most


@dataclass(kw_only=True)
class PositionDecode(Fault):
    """Every decode step is off by so many positions; the prompt is right."""

    by: int = 1

    def positions(self, positions: Tensor, request: Request) -> Tensor:
        if request.is_prefill:
            return positions
        self.struck(request)
        return positions + self.by


@dataclass(kw_only=True)
class PositionShift(Fault):
    """All positions are off by as many; that is no fault, because only differences count."""

    by: int = 1

    def positions(self, positions: Tensor, request: Request) -> Tensor:
        self.struck(request)
        return positions + self.by
