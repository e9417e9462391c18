"""Servers that compute attention imprecisely, for ``reference.forward``: what is to be seen.

docs/probe-precision.md says which of them each sensitivity sees, ``benchmarks/probe.py`` measures
it, and the tests hold it to that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from mrcr_action.probe.reference import Server

if TYPE_CHECKING:
    from mrcr_action.probe.reference import Array, Cached


def floats(*, fraction: int, least: int, most: float) -> Cached:
    """Rounding to a float format, nearest even, saturating.

    Args:
        fraction: bits behind the point.
        least: exponent of the least normal number.
        most: the largest number.
    """

    def cached(x: Array) -> Array:
        _, exponent = np.frexp(np.abs(x))
        step = np.exp2(np.maximum(exponent - 1, least) - fraction)
        found: Array = np.clip(np.rint(x / step) * step, -most, most).astype(np.float32)
        return found

    return cached


def integers(bits: int) -> Cached:
    """Rounding to integers of so many bits, with one scale for a layer: that of its largest."""
    most = 2 ** (bits - 1) - 1

    def cached(x: Array) -> Array:
        step = float(np.abs(x).max()) / most or 1.0
        found: Array = (np.rint(x / step) * step).astype(np.float32)
        return found

    return cached


def times(factor: float) -> Cached:
    """A wrong scale of the cache."""
    return lambda x: x * np.float32(factor)


E4M3: Final = floats(fraction=3, least=-6, most=448.0)
"""The fp8 format that caches use by default."""
E5M2: Final = floats(fraction=2, least=-14, most=57344.0)

FAULTS: Final[dict[str, Server]] = {
    "fp8 e4m3 cache": Server(keys=E4M3, values=E4M3),
    "fp8 e4m3 keys": Server(keys=E4M3),
    "fp8 e4m3 values": Server(values=E4M3),
    "fp8 e5m2 cache": Server(keys=E5M2, values=E5M2),
    "8-bit integers, one scale": Server(keys=integers(8), values=integers(8)),
    "8-bit integers, keys alone": Server(keys=integers(8)),
    "8-bit integers, values alone": Server(values=integers(8)),
    "4-bit integers, one scale": Server(keys=integers(4), values=integers(4)),
    **{f"keys × {a}": Server(keys=times(a)) for a in (0.9, 0.95, 0.97, 1.03)},
    **{f"values × {a}": Server(values=times(a)) for a in (0.9, 0.95, 0.97, 1.03)},
    **{f"softmax scale × {a}": Server(scale=a) for a in (0.5, 0.9, 0.95, 0.97, 1.03)},
    "scores in bfloat16": Server(scores="bfloat16"),
}
"""By name: what is wrong, in every layer."""
