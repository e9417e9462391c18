"""What Qwen3 has and Llama does not: an RMSNorm of every query and key, ahead of RoPE.

The norm divides a head's 128 channels by their root mean square, which would differ from token
to token. Two channels that nothing else uses hold a large constant c, so that the root mean
square is √(2 c² / 128) = c / 8, a power of two, whatever the other channels hold. The norm's
weight is 0 for those two, and for all others what undoes the division.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from mrcr_action.probe import layout as at

CONSTANT_CHANNELS: Final = at.WIDE.content[-2:]
"""The pair of channels that is claimed last."""

QUERY_CONSTANT: Final = 2.0**15
"""The largest power of two that float16 holds."""
QUERY_SHRUNK: Final = 2.0**-6
"""What a query's other channels are multiplied by ahead of the norm: the largest, of 2^16, then
change the root mean square by less than 2^-11, and the least stay apart in float16."""
KEY_CONSTANT: Final = 2.0**13
"""A key's other channels are about ±1: they change the root mean square by less than 2^-19, and
the gauges' one large number by 2^-15, for all keys alike."""
TRADED: Final = 2.0**4
"""Keys are so much larger than a Llama's and queries so much smaller, which leaves scores as they
are: float16 could not hold a query's gain otherwise."""


@dataclass(frozen=True, slots=True)
class Normed:
    """A projection and the norm behind it, as a checkpoint has them."""

    projection: at.Matrix
    """Rows by channel, one head after another."""
    gain: at.Matrix
    """The norm's weight by channel, the same for every head."""


def normed_query(query: at.Matrix) -> Normed:
    """The queries of a layer whose norm leaves them as they are, but for ``TRADED``.

    Raises:
        ValueError: one of the two channels is in use.
    """
    return _normed(query, QUERY_CONSTANT, QUERY_SHRUNK, 1 / TRADED)


def normed_key(key: at.Matrix) -> Normed:
    """The keys of a layer whose norm leaves them as they are, but for ``TRADED``.

    Raises:
        ValueError: one of the two channels is in use.
    """
    return _normed(key, KEY_CONSTANT, 1.0, TRADED)


def _normed(matrix: at.Matrix, constant: float, shrunk: float, wanted: float) -> Normed:
    projection = matrix * shrunk
    for head in range(0, len(matrix), at.WIDE.head):
        rows = projection[head : head + at.WIDE.head]
        if rows[list(CONSTANT_CHANNELS)].any():
            raise ValueError("a channel of the norm's constants is in use")
        rows[list(CONSTANT_CHANNELS), at.ONE] = constant
    gain = np.full(at.WIDE.head, constant / 8 / shrunk * wanted)
    gain[list(CONSTANT_CHANNELS)] = 0
    return Normed(projection, gain)
