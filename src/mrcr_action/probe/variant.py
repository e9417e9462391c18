"""Which of its forms the model is written in; the default is the first of each list."""

from __future__ import annotations

import itertools
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, get_args

from mrcr_action.probe.layout import SHAPES, Shape

Architecture = Literal["llama", "qwen3"]
"""The model class that serves it: ``LlamaForCausalLM`` or ``Qwen3ForCausalLM``."""

HeadSize = Literal[128, 64]
"""Channels of an attention head."""

Sensitivity = Literal["normal", "high"]
"""Whether only the places that attention reads from matter, or how exactly it reads, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A form of the model. All of them answer the same rows, with the same words.

    Raises:
        ValueError: there is no such form.
    """

    architecture: Architecture = "llama"
    """``qwen3`` has queries and keys that are normed, which other kernels do."""
    head_size: HeadSize = 128
    """With 64, RoPE turns 28 channels of a head, each query head has its own keys and values, and
    identities are compared by 16 bits of their hashes instead of 48."""
    sensitivity: Sensitivity = "normal"
    """``high`` spoils its answers on a server whose scores, keys or values are off by a few
    percent."""

    def __post_init__(self) -> None:
        if self.architecture == "qwen3" and self.head_size == 64:  # noqa: PLR2004 - its name
            raise ValueError("a qwen3 needs heads of 128: 64 channels leave none for its norms")

    @property
    def shape(self) -> Shape:
        """What the size of its heads decides."""
        return SHAPES[self.head_size]

    def parts(self) -> list[str]:
        """What distinguishes it from the default, for the name of its folder."""
        usual = Variant()
        pairs = (
            (self.architecture, usual.architecture),
            (self.head_size, usual.head_size),
            (self.sensitivity, usual.sensitivity),
        )
        return [str(own) for own, other in pairs if own != other]


DEFAULT = Variant()
"""What ``mrcr probe`` serves unless it is told otherwise."""


def forms(name: str) -> dict[str, Variant]:
    """All forms by what they are called: the model's name, and behind it what differs.

    Args:
        name: of the default form, such as ``probe``; others are ``probe-qwen3-high`` or so.
    """
    found = {}
    of_each = get_args(Architecture), get_args(HeadSize), get_args(Sensitivity)
    for architecture, head_size, sensitivity in itertools.product(*of_each):
        with suppress(ValueError):  # There is no such form.
            form = Variant(architecture=architecture, head_size=head_size, sensitivity=sensitivity)
            found["-".join([name, *form.parts()])] = form
    return found
