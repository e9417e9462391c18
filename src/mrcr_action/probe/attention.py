"""The kinds of attention head, each a way to add to a head's score.

A head looks where its score is largest. The score of a key is the dot product of the head's
query with it, divided by √128. It is put together from three kinds of term:

- ``at_distance``, ``nearest`` and ``turn`` score a key by its distance, through RoPE's fast pairs;
- ``match`` compares a group of dimensions of the query's token with what keys ``show``;
- ``favour`` scores what keys show, whoever asks.

``<|bos|>`` is where a head looks when it is to see nothing: distances do not score it, and the
groups that are read are zero (or the neutral +1) there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat

import numpy as np

from mrcr_action.probe import layout as at

Sum = Mapping[int, float]
"""A weighted sum of dimensions of the residual stream: weights by dimension."""
Channels = tuple[int, ...]
"""Some channels of keys or values."""
Kernel = tuple[tuple[int, float, float], ...]
"""Σ amplitude · cos(turn of the pair · distance + phase): (pair, amplitude, phase) for each."""

ROOT = math.sqrt(at.HEAD)
"""What attention divides scores by: ``weight`` w adds w / √128 nats for each agreeing channel."""
OVERRIDE = 8192.0
"""A weight (724 nats) that outdoes all distance terms together."""
HASH_WEIGHT = 32.0
"""For comparing hashes: 136 nats between equal and unrelated ones, each flip costs 5.7."""

AT_DISTANCE = (64.0, 32.0, 24.0, 16.0, *repeat(12.0, 10))
"""Nats for each fast pair; at least 13 nats between the wanted distance and any other up to
131,072 tokens, which is more than bfloat16's cosines can blur."""

# Kernels that fall with distance, by at least 1 between any key within reach and any that is
# `resolution` tokens further. Coefficients of a linear program: the least total amplitude under
# these constraints, for distances up to 2^18.
NEAR_KERNEL: Kernel = (
    (5, 1.13, 1.429),
    (6, 6.85, 0.546),
    (7, 11.67, 0.137),
    (8, 9.23, 0.0),
    (9, 8.26, 0.032),
    (10, 8.46, 0.347),
    (11, 6.81, 0.0),
    (12, 4.36, 0.0),
    (13, 6.38, 0.0),
)
NEAR_REACH, NEAR_RESOLUTION = 480, 24
FAR_KERNEL: Kernel = (
    (8, 0.27, 1.234),
    (9, 3.29, 1.571),
    (10, 18.47, 0.17),
    (11, 7.13, 0.0),
    (12, 10.4, 0.0),
    (13, 12.82, 0.0),
)
FAR_REACH, FAR_RESOLUTION = 8800, 440
NEARER = 24.0
"""Nats by which a kernel's fall of 1 is felt."""


def kernel_score(kernel: Kernel, distance: float) -> float:
    """Value of a kernel at a distance in tokens."""
    return sum(a * math.cos(at.TURN[pair] * distance + phase) for pair, a, phase in kernel)


class Attention:
    """The attention matrices of one layer, rows by channel, and the channels still free.

    Two heads ask; they share the keys and the values. ``heads`` fill the queries and the output.
    """

    def __init__(self) -> None:
        self.query = np.zeros((at.HEADS * at.HEAD, at.HIDDEN))
        self.key = np.zeros((at.HEAD, at.HIDDEN))
        self.value = np.zeros((at.HEAD, at.HIDDEN))
        self.output = np.zeros((at.HIDDEN, at.HEADS * at.HEAD))
        self.heads = (Head(self, 0), Head(self, at.HEAD))
        self._free_keys = iter(at.SLOW)
        self._free_values = iter(range(at.HEAD))
        # Every key but <|bos|> can be told by its distance.
        for pair in at.FAST:
            self.key[pair, at.ONE] = 1
            self.key[pair, at.BOS] = -1

    def show(self, *features: int | Sum) -> Channels:
        """Put dimensions, or sums of them, into key channels.

        Raises:
            ValueError: more than 80 channels are shown.
        """
        return tuple(_fill(self.key, self._free_keys, feature) for feature in features)

    def carry(self, *features: int | Sum) -> Channels:
        """Put dimensions, or sums of them, into value channels.

        Raises:
            ValueError: more than 128 channels are carried.
        """
        return tuple(_fill(self.value, self._free_values, feature) for feature in features)


def _fill(matrix: at.Matrix, free: Iterator[int], feature: int | Sum) -> int:
    channel = at.claim(free, "attention channel")
    for dim, weight in ({feature: 1.0} if isinstance(feature, int) else feature).items():
        matrix[channel, dim] = weight
    return channel


class Head:
    """One query head of a layer; ``first`` is its first query channel."""

    def __init__(self, attention: Attention, first: int) -> None:
        self._attention = attention
        self._first = first

    def turn(self, pair: int, nats: float, phase: float) -> None:
        """Score keys by nats · cos(turn of the pair · distance + phase)."""
        x, y = self._first + pair, self._first + pair + at.HEAD // 2
        self._attention.query[x, at.ONE] += nats * ROOT * math.cos(phase)
        self._attention.query[y, at.ONE] += nats * ROOT * math.sin(phase)

    def at_distance(self, distance: int) -> None:
        """Look at the token exactly so many tokens back."""
        for pair, nats in zip(at.FAST, AT_DISTANCE, strict=True):
            self.turn(pair, nats, -distance * at.TURN[pair])

    def nearest(self, kernel: Kernel) -> None:
        """Prefer the nearest of the keys that other terms leave in."""
        for pair, amplitude, phase in kernel:
            self.turn(pair, amplitude * NEARER, phase)

    def match(
        self, shown: Channels, dims: at.Dims, weight: float, *, signs: Iterable[float] = repeat(1.0)
    ) -> None:
        """Score keys by weight / √128 · Σ sign · (the query's dimension) · (the key's channel)."""
        for channel, dim, sign in zip(shown, dims, signs, strict=False):
            self._attention.query[self._first + channel, dim] += weight * sign

    def favour(self, shown: Channels, weight: float) -> None:
        """Score keys by weight / √128 · (the sum of their channels), for every query."""
        self.match(shown, (at.ONE,) * len(shown), weight)

    def write(
        self, carried: Channels, dims: Sequence[int], *, weights: Iterable[float] = repeat(1.0)
    ) -> None:
        """Add what the head sees in some channels to as many dimensions, weighted."""
        for channel, dim, weight in zip(carried, dims, weights, strict=False):
            self._attention.output[dim, self._first + channel] += weight
