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

END_WEIGHT: Final = 1024.0
"""For both keys, over all others."""
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


def show_starts(head: Head, shape: Shape, *, contents_first: bool = False) -> Starts:
    """Show what tells a segment's ``<|assistant|>`` from all others.

    With ``contents_first``, the two flags are in channels that turn less than 10^-10 in any
    context, where they score a ``<|bos|>`` 131,072 tokens away as one nearby, to 10^-6. In the
    first channels they differ by 0.016 nats.
    """

    def contents() -> tuple[Channels, Channels]:
        return head.show(*at.SEGMENT_HASH[: shape.hash_bits]), head.show(*at.SEGMENT_ORDINAL)

    def flags() -> tuple[Channels, Channels]:
        return head.show({at.ASSISTANT: 1, at.BOS: 1}), head.show(at.BOS)

    if contents_first:
        (hashes, ordinals), (ends, bos) = contents(), flags()
    else:
        (ends, bos), (hashes, ordinals) = flags(), contents()
    return Starts(ends, bos, hashes, ordinals)


def weigh_starts(head: Head, shape: Shape, shown: Starts) -> None:
    """Give both keys ``start_score`` and 1024 more."""
    head.favour(shown.ends, END_WEIGHT)
    head.favour(shown.bos, start_score(shape))
    head.match(shown.hashes, at.SEGMENT_HASH, shape.hash_weight)
    head.match(shown.ordinals, at.SEGMENT_ORDINAL, ORDINAL_WEIGHT)


def start_score(shape: Shape) -> float:
    """Raw score of an equal hash and an equal ordinal."""
    return shape.hash_score + ORDINAL_WEIGHT * wording.ORDINALS
