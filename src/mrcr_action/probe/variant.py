"""Which of its forms the model is written in; the default is the first of each list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Architecture = Literal["llama", "qwen3"]
"""The model class that serves it: ``LlamaForCausalLM`` or ``Qwen3ForCausalLM``."""

Sensitivity = Literal["normal", "high"]
"""Whether only the places that attention reads from matter, or how exactly it reads, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A form of the model. All of them answer the same rows, with the same words."""

    architecture: Architecture = "llama"
    """``qwen3`` has queries and keys that are normed, which other kernels do."""
    sensitivity: Sensitivity = "normal"
    """``high`` spoils its answers on a server whose scores, keys or values are off by a few
    percent."""

    def parts(self) -> list[str]:
        """What distinguishes it from the default, for the name of its folder."""
        usual = Variant()
        pairs = (
            (self.architecture, usual.architecture),
            (self.sensitivity, usual.sensitivity),
        )
        return [own for own, other in pairs if own != other]


DEFAULT = Variant()
"""What ``mrcr probe`` serves unless it is told otherwise."""
