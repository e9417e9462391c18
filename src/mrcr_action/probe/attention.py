"""The kinds of attention head, each a way to add to a head's score.

A head looks where its score is largest. The score of a key is the dot product of the head's
query with it, divided by the root of the head's size, √128. It is put together from three kinds
of term:

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
Move = tuple["int | Sum", at.Dims]
"""Something to carry, and the dimensions that it is added to."""
Channels = tuple[int, ...]
"""Some channels of keys or values."""
Kernel = tuple[tuple[int, float, float], ...]
"""Σ amplitude · cos(turn of the pair · distance + phase): (pair, amplitude, phase) for each."""

OVERRIDE = 8192.0
"""A weight (724 nats or more) that outdoes all distance terms together."""

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

    Two heads ask. They share one head of keys and values, or each has its own. ``heads`` fill the
    queries and the output.
    """

    def __init__(self, shape: at.Shape = at.WIDE) -> None:
        self.shape = shape
        self.query = np.zeros((at.HEADS * shape.head, at.HIDDEN))
        self.key = np.zeros((shape.key_heads * shape.head, at.HIDDEN))
        self.value = np.zeros((shape.key_heads * shape.head, at.HIDDEN))
        self.output = np.zeros((at.HIDDEN, at.HEADS * shape.head))
        sources = [Source(self, n * shape.head) for n in range(shape.key_heads)]
        self.heads = (Head(self, 0, sources[0]), Head(self, shape.head, sources[-1]))

    def split(self, moves: Sequence[Move]) -> list[tuple[Head, list[Move]]]:
        """Give the first head what it can carry, and the second the rest if values are its own."""
        first, second = self.heads
        room = self.shape.head
        parts = [(first, [*moves[:room]]), (second, [*moves[room:]])]
        return [(head, part) for head, part in parts if part]


class Source:
    """The keys and values that one query head or both look at; ``first`` is the first channel."""

    def __init__(self, attention: Attention, first: int) -> None:
        shape = attention.shape
        channels = slice(first, first + shape.head)
        self._keys, self._values = attention.key[channels], attention.value[channels]
        self._free_keys = iter(shape.content)
        self._free_values = iter(range(shape.head))
        # Every key but <|bos|> can be told by its distance.
        for pair in at.FAST:
            self._keys[pair, at.ONE] = 1
            self._keys[pair, at.BOS] = -1

    def show(self, *features: int | Sum) -> Channels:
        """Put dimensions, or sums of them, into key channels.

        Raises:
            ValueError: more are shown than the shape has channels for contents.
        """
        return tuple(_fill(self._keys, self._free_keys, feature) for feature in features)

    def carry(self, *features: int | Sum) -> Channels:
        """Put dimensions, or sums of them, into value channels.

        Raises:
            ValueError: more are carried than a head has channels.
        """
        return tuple(_fill(self._values, self._free_values, feature) for feature in features)


def _fill(matrix: at.Matrix, free: Iterator[int], feature: int | Sum) -> int:
    channel = at.claim(free, "attention channel")
    for dim, weight in ({feature: 1.0} if isinstance(feature, int) else feature).items():
        matrix[channel, dim] = weight
    return channel


class Head:
    """One query head of a layer; ``first`` is its first query channel."""

    def __init__(self, attention: Attention, first: int, source: Source) -> None:
        self._attention = attention
        self._first = first
        self._source = source
        self.show = source.show
        self.carry = source.carry

    def shares_with(self, other: Head) -> bool:
        """Whether what one of them shows and carries is there for the other, too."""
        return self._source is other._source

    def turn(self, pair: int, nats: float, phase: float) -> None:
        """Score keys by nats · cos(turn of the pair · distance + phase)."""
        shape = self._attention.shape
        x, y = self._first + pair, self._first + pair + shape.pairs
        self._attention.query[x, at.ONE] += nats * shape.root * math.cos(phase)
        self._attention.query[y, at.ONE] += nats * shape.root * math.sin(phase)

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
        """Score keys by weight / root · Σ sign · (the query's dimension) · (the key's channel)."""
        for channel, dim, sign in zip(shown, dims, signs, strict=False):
            self._attention.query[self._first + channel, dim] += weight * sign

    def favour(self, shown: Channels, weight: float) -> None:
        """Score keys by weight / root · (the sum of their channels), for every query."""
        self.match(shown, (at.ONE,) * len(shown), weight)

    def write(
        self, carried: Channels, dims: Sequence[int], *, weights: Iterable[float] = repeat(1.0)
    ) -> None:
        """Add what the head sees in some channels to as many dimensions, weighted."""
        for channel, dim, weight in zip(carried, dims, weights, strict=False):
            self._attention.output[dim, self._first + channel] += weight

    def move(self, moves: Iterable[Move]) -> None:
        """Carry features, and add what the head sees of each to some dimensions."""
        for feature, dims in moves:
            self.write(self.carry(feature) * len(dims), dims)
