"""A decoder layer while it is being filled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.probe.attention import Attention
from mrcr_action.probe.mlp import Mlp

if TYPE_CHECKING:
    from mrcr_action.probe.layout import Shape


class Layer:
    """One decoder layer: attention, then an MLP that sees what the attention added."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.attention = Attention(shape)
        self.mlp = Mlp()
        self.heads = self.attention.heads
