"""The model's shape: what each dimension of the residual stream and each RoPE pair is for.

Nearly every dimension holds −1, 0 or +1, which bfloat16 holds exactly. A layer reads some groups
of dimensions and adds to others; docs/probe.md has the table of who writes what.
"""

from __future__ import annotations

from itertools import count, islice
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from mrcr_action.probe.wording import IDENTITY_STEPS, ORDINALS

if TYPE_CHECKING:
    from collections.abc import Iterator

HIDDEN: Final = 640
HEAD: Final = 128
"""Width of an attention head, which GPU kernels like."""
HEADS: Final = 2
"""Query heads; they share one head of keys and values."""
INTERMEDIATE: Final = 256
"""MLP units a layer."""

# --- RoPE: pair i of channels (i, i + 64) turns by 2^(−80 i / 64) radians a token.
ROPE_THETA: Final = 2.0**80
TURN: Final = tuple(2.0 ** (-80 * i / (HEAD // 2)) for i in range(HEAD // 2))
"""Radians a token by which each pair turns."""
FAST: Final = range(14)
"""Pairs that turn 1 to 2^−16.25 radians a token: they tell distances."""
SLOW: Final = tuple(
    channel for i in reversed(range(24, HEAD // 2)) for channel in (i, i + HEAD // 2)
)
"""Channels of pairs that turn at most 2^−30 radians a token, the slowest first: 80 channels whose
product is that of plain vectors, for comparing contents.

The first 60 turn at most 2^−42.5 radians a token. In 131,072 tokens that is less than float32 can
add to a 1, so that the ±1 in them stay what they are even in a kernel that drops bits instead of
rounding. In the other 20 such a kernel makes them 0.4 % smaller."""
PHASE_PAIRS: Final = (0, 1, 4, 6, 9)
"""Pairs by which an offset within a piece is told from all others up to 8,800 tokens."""

# --- The residual stream.
TOKEN_CODE: Final = 24
PHRASE_CODE: Final = 32
HASH_CODE: Final = 48
COUNT_CODE: Final = 24

Matrix = NDArray[np.float64]
"""A weight matrix while it is being filled; rows are outputs."""
Dims = tuple[int, ...]
"""Some dimensions of the residual stream."""

_dimensions = count()


def _take(width: int) -> Dims:
    return tuple(islice(_dimensions, width))


NORM = _take(2)
"""Two large constants that make every RMSNorm divide by the same power of two (see build.py)."""
(ONE,) = _take(1)
"""1 at every token."""
(BOS,) = _take(1)
"""1 at ``<|bos|>``, where heads look when there is nothing to see."""
(ASSISTANT,) = _take(1)
"""1 at every ``<|assistant|>``."""
TOKEN = _take(TOKEN_CODE)
"""Code of the token itself."""
DIGIT = _take(ORDINALS)
"""One-hot, at the digits 1 to 8."""
PHRASE = _take(PHRASE_CODE)
"""Code of the last 1, 2, 4, then 8 tokens."""
SCRATCH = _take(HASH_CODE + COUNT_CODE)
"""What a doubling layer fetched, until its MLP has multiplied it in."""
HASH = _take(HASH_CODE)
"""Hash of all tokens since the last opening."""
COUNT = _take(COUNT_CODE)
"""Code of how many tokens that are."""
ORDINAL_DIGIT = _take(ORDINALS)
"""``DIGIT`` of the token where the ordinal stands, seen from the end of the question's opening."""
COPIED = _take(TOKEN_CODE)
"""``TOKEN`` of the token ``COPY_DISTANCE`` back."""
OPENED = _take(len(IDENTITY_STEPS) + 1)
"""1 where an opening or an ``<|assistant|>`` lies within the last 1, 2, 4, … 64 tokens."""
(IN_NONCE,) = _take(1)
"""1 at the tokens since the last opening if that was the nonce's."""
(IN_REPLY,) = _take(1)
"""1 at the tokens since the last opening if that was an ``<|assistant|>``."""
ORDINAL = _take(ORDINALS)
"""One-hot, at the tokens since the last opening if that was the question's."""
REQUEST_HASH = _take(HASH_CODE)
"""At an ``<|assistant|>``: the hash of its request's identity."""
REQUEST_ORDINAL = _take(ORDINALS)
"""At an ``<|assistant|>``: how many times that request came before, as a thermometer of ±1."""
WANTED_HASH = _take(HASH_CODE)
"""At the last ``<|assistant|>``: the hash of the question's identity."""
WANTED_ORDINAL = _take(ORDINALS)
"""At the last ``<|assistant|>``: the question's ordinal − 1, as a thermometer of ±1."""
(SHARE,) = _take(1)
"""At an ``<|assistant|>``: n / (n + 8), where its request is the n-th of its kind."""
(NONCE_TURN,) = _take(1)
"""1 where the answer's next token belongs to the nonce."""
FETCHED = _take(2 * (HASH_CODE + ORDINALS))
"""The four groups above of the last ``<|assistant|>``, at every token, roughly ±1."""
(NEAR_RAW,) = _take(1)
(NEAR,) = _take(1)
"""1 where an ``<|assistant|>`` lies within reach of the first hop."""
(INSIDE_RAW,) = _take(1)
(INSIDE,) = _take(1)
"""1 after the first ``<|assistant|>``."""
SEGMENT_HASH = _take(HASH_CODE)
SEGMENT_ORDINAL = _take(ORDINALS)
"""With ``SEGMENT_HASH``: which reply a token belongs to, exactly ±1 (0 outside)."""
SEGMENT_WANTED_HASH = _take(HASH_CODE)
SEGMENT_WANTED_ORDINAL = _take(ORDINALS)
"""With ``SEGMENT_WANTED_HASH``: which reply the question before a token wants."""
PHASE = _take(2 * len(PHASE_PAIRS))
"""Offset since the last ``<|assistant|>``: cosine and sine for each of ``PHASE_PAIRS``."""
OUT = _take(TOKEN_CODE)
"""Code of the next token."""
USED: Final = next(_dimensions)
"""Dimensions in use; the rest, up to ``HIDDEN``, stay zero."""

SEGMENT = SEGMENT_HASH + SEGMENT_ORDINAL + SEGMENT_WANTED_HASH + SEGMENT_WANTED_ORDINAL
"""What ``FETCHED`` becomes once it is exact."""
# The doubling layers have finished with SCRATCH when the two candidates for OUT are found.
NEXT_OF_NONCE = SCRATCH[:TOKEN_CODE]
"""Code of the nonce's next byte."""
NEXT_OF_PIECE = SCRATCH[TOKEN_CODE : 2 * TOKEN_CODE]
"""Code of the piece's next byte."""


def claim(free: Iterator[int], what: str) -> int:
    """Take the next free unit or channel of a layer.

    Raises:
        ValueError: none is left.
    """
    found = next(free, None)
    if found is None:
        raise ValueError(f"the layer has no {what} left")
    return found
