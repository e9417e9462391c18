"""How clearly positions are told apart, with RoPE's tables as a server rounds them.

A forward pass over 131,072 tokens is out of reach for numpy. The scores by which heads choose a
position are not: they are sums over a few pairs of channels, Σ nats · cos(turn · distance + phase).
What rounding adds to such a sum is bounded here over every position of a query and of a key.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mrcr_action.probe import layout as at
from mrcr_action.probe.attention import AT_DISTANCE, NEARER
from mrcr_action.probe.reference import rounded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.probe.attention import Kernel
    from mrcr_action.probe.checkpoint import Dtype
    from mrcr_action.probe.reference import Array

Positions: TypeAlias = NDArray[np.int64] | slice
"""Some positions of a context, or all."""

ROOT = at.WIDE.root
PHASE_NATS = 1 / 4
"""As in layers.offset_phase."""
PHASE_GAIN = 8.0
PHASE_WEIGHT = 1024.0
"""As in layers.copy."""


@dataclass(frozen=True)
class Table:
    """Cosines and sines of all positions up to a length, positions × pairs."""

    cos: Array
    sin: Array
    dtype: Dtype

    def keys(self) -> Array:
        """Keys that hold (1, 0) in each pair, positions × 2 pairs."""
        return np.concatenate([self.cos, self.sin], axis=1)

    def queries(
        self, positions: Positions, nats: Sequence[float], phases: Sequence[float]
    ) -> Array:
        """Queries that score keys by Σ nats · cos(turn · distance + phase), positions × 2 pairs.

        Products are rounded, too, as they are by kernels that compute in the model's dtype.
        """
        a, b = (
            rounded((np.array(nats) * ROOT * f(np.array(phases))).astype(np.float32), self.dtype)
            for f in (np.cos, np.sin)
        )
        cos, sin = self.cos[positions], self.sin[positions]
        ac, bs, bc, as_ = (
            rounded(x * y, self.dtype) for x, y in ((a, cos), (b, sin), (b, cos), (a, sin))
        )
        turned = rounded(ac - bs, self.dtype), rounded(bc + as_, self.dtype)
        return np.concatenate(turned, axis=1)


@lru_cache(maxsize=4)
def table(length: int, pairs: tuple[int, ...], dtype: Dtype) -> Table:
    """The table of vLLM: angles are products in float32, then what they give is rounded."""
    turn = np.array([at.TURN[pair] for pair in pairs], np.float32)
    angles = np.outer(np.arange(length, dtype=np.float32), turn).astype(np.float64)
    cos, sin = (rounded(f(angles).astype(np.float32), dtype) for f in (np.cos, np.sin))
    return Table(cos, sin, dtype)


def distance_margin(length: int, distance: int, dtype: Dtype) -> float:
    """Least lead in nats, at any position, of the key at a distance over any other key.

    ``length`` is that of the context in tokens.
    """
    terms = tuple(
        (pair, nats, -distance * at.TURN[pair])
        for pair, nats in zip(at.FAST, AT_DISTANCE, strict=True)
    )
    score = _exact(length, terms)
    wanted = float(score[distance])
    score[distance] = -np.inf
    return wanted - float(score.max()) - 2 * _rounding(length, terms, dtype)


def kernel_margin(length: int, kernel: Kernel, reach: int, resolution: int, dtype: Dtype) -> float:
    """Least lead in nats, at any position, of any key within reach over any further one.

    Further by ``resolution`` tokens or more.
    """
    terms = tuple((pair, amplitude * NEARER, phase) for pair, amplitude, phase in kernel)
    score = _exact(length, terms)
    further = np.maximum.accumulate(score[::-1])[::-1]
    falls = score[: reach + 1] - further[resolution : reach + 1 + resolution]
    return float(falls.min()) - 2 * _rounding(length, terms, dtype)


def offset_margin(
    length: int,
    *,
    piece: int,
    answer: int,
    size: int,
    offsets: Sequence[int],
    dtype: Dtype,
) -> float:
    """Least lead in nats of the key at a query's own offset over the others of a piece.

    Args:
        length: of the context in tokens.
        piece: where the piece starts.
        answer: where the answer starts.
        size: of the piece, in tokens.
        offsets: of the queries.
        dtype: what the server computes in.
    """
    made = table(length, at.PHASE_PAIRS, dtype)
    keys = _phases(made, piece, np.arange(size))
    phases = _phases(made, answer, np.array(offsets))
    queries = rounded(phases * PHASE_WEIGHT, dtype)
    score = queries @ keys.T / ROOT
    own = score[np.arange(len(offsets)), list(offsets)].copy()
    score[np.arange(len(offsets)), list(offsets)] = -np.inf
    return float((own - score.max(axis=1)).min())


def _exact(length: int, terms: Kernel) -> NDArray[np.float64]:
    """Scores in nats by distance, without any rounding."""
    distance = np.arange(length, dtype=np.float64)
    found = np.zeros(length)
    for pair, nats, phase in terms:
        found += nats * np.cos(at.TURN[pair] * distance + phase)
    return found


def _rounding(length: int, terms: Kernel, dtype: Dtype) -> float:
    """The most that a score can be off by, in nats: of the worst query and the worst key."""
    pairs, nats, phases = zip(*terms, strict=True)
    made = table(length, pairs, dtype)
    angles = np.outer(np.arange(length, dtype=np.float64), [at.TURN[pair] for pair in pairs])
    keys = made.cos + 1j * made.sin - np.exp(1j * angles)
    a, b = np.split(made.queries(slice(None), nats, phases) / ROOT, 2, axis=1)
    queries = a + 1j * b - np.array(nats) * np.exp(1j * (angles + np.array(phases)))
    of_keys = (np.abs(keys) * np.array(nats)).sum(axis=1).max()
    # A key is 1 long, to 1 %.
    return float(of_keys + 1.01 * np.abs(queries).sum(axis=1).max())


def _phases(made: Table, start: int, offsets: NDArray[np.int64]) -> Array:
    """PHASE at some offsets from a segment's start, as layers.offset_phase finds it."""
    pairs = len(at.PHASE_PAIRS)
    key = made.keys()[start].reshape(2, pairs)
    found = []
    for quarter in (0, 1):
        nats, phases = [PHASE_NATS] * pairs, [-quarter * math.pi / 2] * pairs
        queries = made.queries(start + offsets, nats, phases).reshape(-1, 2, pairs)
        score = (queries * key).sum(axis=1) / ROOT
        seen = rounded(np.tanh(score / 2).astype(np.float32), made.dtype)
        found.append(rounded(seen * np.float32(PHASE_GAIN), made.dtype))
    return np.concatenate(found, axis=1)
