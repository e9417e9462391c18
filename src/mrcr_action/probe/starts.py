"""Heads that weigh a segment's own ``<|assistant|>`` against ``<|bos|>``.

Both get the same score, and every other key far less, until a layer favours one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mrcr_action.probe import layout as at
from mrcr_action.probe import wording

if TYPE_CHECKING:
    from mrcr_action.probe.attention import Channels, Head
    from mrcr_action.probe.layout import Shape

ORDINAL_WEIGHT: Final = 128.0
"""For comparing ordinals: a flip costs 23 nats or more."""


@dataclass(frozen=True, slots=True)
class Starts:
    """The key channels that such heads look at."""

    ends: Channels
    """1 at either key."""
    bos: Channels
    hashes: Channels
    ordinals: Channels


def show_starts(head: Head, shape: Shape) -> Starts:
    """Show what tells a segment's ``<|assistant|>`` from all others."""
    return Starts(
        ends=head.show({at.ASSISTANT: 1, at.BOS: 1}),
        bos=head.show(at.BOS),
        hashes=head.show(*at.SEGMENT_HASH[: shape.hash_bits]),
        ordinals=head.show(*at.SEGMENT_ORDINAL),
    )


def weigh_starts(head: Head, shape: Shape, shown: Starts) -> None:
    """Give both keys ``start_score`` and 1024 more."""
    head.favour(shown.ends, 1024.0)
    head.favour(shown.bos, start_score(shape))
    head.match(shown.hashes, at.SEGMENT_HASH, shape.hash_weight)
    head.match(shown.ordinals, at.SEGMENT_ORDINAL, ORDINAL_WEIGHT)


def start_score(shape: Shape) -> float:
    """Raw score of an equal hash and an equal ordinal."""
    return shape.hash_score + ORDINAL_WEIGHT * wording.ORDINALS
