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
    hashes: Channels
    ordinals: Channels
    as_hashes: Channels
    """At ``<|bos|>`` as much as equal hashes come to."""
    as_ordinals: Channels


def show_starts(head: Head, shape: Shape) -> Starts:
    """Show what tells a segment's ``<|assistant|>`` from all others.

    ``<|bos|>`` must weigh as much as a match to the last bit, and kernels may round a query after
    they scaled it: so its weight is that of the match, of a key as large as the match is long.
    """
    return Starts(
        ends=head.show({at.ASSISTANT: 1, at.BOS: 1}),
        as_hashes=head.show({at.BOS: shape.hash_bits}),
        as_ordinals=head.show({at.BOS: wording.ORDINALS}),
        hashes=head.show(*at.SEGMENT_HASH[: shape.hash_bits]),
        ordinals=head.show(*at.SEGMENT_ORDINAL),
    )


def weigh_starts(head: Head, shape: Shape, shown: Starts) -> None:
    """Give both keys the score of equal hashes and equal ordinals, and 1024 more."""
    head.favour(shown.ends, END_WEIGHT)
    head.favour(shown.as_hashes, shape.hash_weight)
    head.favour(shown.as_ordinals, ORDINAL_WEIGHT)
    head.match(shown.hashes, at.SEGMENT_HASH, shape.hash_weight)
    head.match(shown.ordinals, at.SEGMENT_ORDINAL, ORDINAL_WEIGHT)
