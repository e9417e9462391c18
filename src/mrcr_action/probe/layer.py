"""A decoder layer while it is being filled."""

from __future__ import annotations

from dataclasses import dataclass, field

from mrcr_action.probe.attention import Attention, Head
from mrcr_action.probe.mlp import Mlp


@dataclass(frozen=True, slots=True)
class Layer:
    """One decoder layer: attention, then an MLP that sees what the attention added."""

    attention: Attention = field(default_factory=Attention)
    mlp: Mlp = field(default_factory=Mlp)

    @property
    def heads(self) -> tuple[Head, Head]:
        """The layer's two query heads."""
        return self.attention.heads
