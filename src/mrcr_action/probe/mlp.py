"""The kinds of MLP unit: products of bits, tests for a code, ramps and snaps.

A unit adds silu(gate) · up to some dimensions, where gate and up are weighted sums of dimensions.
silu(z) = z / (1 + e^−z) is z above 16 and 0 below −16, in every dtype. All weights are such that
sums of exact ±1 stay exact.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from mrcr_action.probe import layout as at

if TYPE_CHECKING:
    from mrcr_action.probe.attention import Sum

SURE = 16.0
"""Gate that silu passes unchanged; its negative is blocked."""
NEVER = -4096.0
"""Gate that stays blocked whatever else is added."""


class Mlp:
    """The MLP matrices of one layer, and the units still free."""

    def __init__(self) -> None:
        self.gate = np.zeros((at.INTERMEDIATE, at.HIDDEN))
        self.up = np.zeros((at.INTERMEDIATE, at.HIDDEN))
        self.down = np.zeros((at.HIDDEN, at.INTERMEDIATE))
        self._free = iter(range(at.INTERMEDIATE))

    def unit(self, *, gate: Sum, up: Sum, down: Sum) -> None:
        """Add silu(gate) · up, times each weight of ``down``, to its dimension.

        Raises:
            ValueError: the layer has no unit left.
        """
        unit = at.claim(self._free, "MLP unit")
        for dim, weight in gate.items():
            self.gate[unit, dim] = weight
        for dim, weight in up.items():
            self.up[unit, dim] = weight
        for dim, weight in down.items():
            self.down[dim, unit] = weight

    def add(self, amount: float, dims: at.Dims, *, but_bos: bool = False) -> None:
        """Add a constant, at every token or at every one but ``<|bos|>``."""
        gate = {at.ONE: SURE, at.BOS: -SURE} if but_bos else {at.ONE: SURE}
        self.unit(gate=gate, up={at.ONE: 1}, down=dict.fromkeys(dims, amount / SURE))

    def move(self, src: int, dst: int, *, where: Sum) -> None:
        """Add a dimension to another, where the sum ``where`` is 1 and not where it is 0."""
        gate = {dim: SURE * weight for dim, weight in where.items()}
        self.unit(gate=gate, up={src: 1}, down={dst: 1 / SURE})

    def multiply(self, dims: at.Dims, factors: at.Dims) -> None:
        """Multiply ±1 dimensions by ±1 factors, and set the factors to 0."""
        for dim, factor in zip(dims, factors, strict=True):
            # dim · factor = dim + |dim| · (factor − 1) for dim = +1, and likewise for −1.
            down = {dim: 1 / SURE}
            self.unit(gate={dim: SURE}, up={factor: 1, at.ONE: -1}, down=down)
            self.unit(gate={dim: -SURE}, up={factor: -1, at.ONE: 1}, down=down)
            self.clear(factor)

    def clear(self, dim: int) -> None:
        """Set a dimension to 0."""
        self.unit(gate={at.ONE: SURE}, up={dim: 1}, down={dim: -1 / SURE})

    def detect(self, test: Sum, outs: at.Dims) -> None:
        """Add 1 where a sum of −1, 0 and +1 reaches its maximum; its steps must be 2 or more."""
        most = sum(abs(weight) for weight in test.values())
        self.add_where({**test, at.ONE: 1 - most}, dict.fromkeys(outs, 1.0))

    def add_where(self, where: Sum, amounts: Sum) -> None:
        """Add amounts where the sum ``where`` is 1, and nothing where it is 0, or −1 or less."""
        gate = {dim: SURE * weight for dim, weight in where.items()}
        down = {dim: amount / SURE for dim, amount in amounts.items()}
        self.unit(gate=gate, up={at.ONE: 1}, down=down)

    def step(self, src: int, *, low: float, high: float, out: int, height: float = 1.0) -> None:
        """Add ``height`` where ``src`` is ``high`` or more, nothing where it is ``low`` or less.

        Raises:
            ValueError: the ramp does not fit between the two with weights that bfloat16 holds.
        """
        self._ramp(src, 1, at_least=(low, high), out=out, height=height)

    def outside(self, src: int, *, centre: float, within: float, beyond: float, out: int) -> None:
        """Add 1 where ``src`` is ``beyond`` or more from a centre, nothing where ``within``.

        Raises:
            ValueError: the ramp does not fit between the two with weights that bfloat16 holds.
        """
        for sign in (1, -1):
            low, high = sign * centre + within, sign * centre + beyond
            self._ramp(src, sign, at_least=(low, high), out=out, height=1.0)

    def _ramp(
        self, src: int, sign: int, *, at_least: tuple[float, float], out: int, height: float
    ) -> None:
        low, high = at_least
        # The ramp is 2 · 8 / slope wide: 40 % of the gap, to the nearest power of two.
        slope = 2.0 ** round(math.log2(SURE / (0.4 * (high - low))))
        middle = round((low + high) / 2 * slope / 8) * 8
        held = abs(middle) + 8 <= 8 * 2**8  # bfloat16 has 8 bits, and these are multiples of 8
        if not (held and low < (middle - 8) / slope < (middle + 8) / slope < high):
            raise ValueError(f"no exact ramp between {low} and {high}")
        for end, up in ((8, 1), (-8, -1)):
            self.unit(
                gate={src: sign * slope, at.ONE: end - middle},
                up={at.ONE: 1},
                down={out: up * height / SURE},
            )

    def snap(self, src: at.Dims, dst: at.Dims) -> None:
        """Add sign(src), to 6 %, where src is ±1/4 or more; 0 where it is 0 and at ``<|bos|>``."""
        for s, d in zip(src, dst, strict=True):
            self._two_ramps(s, d, slope=128)
        self.add(-1, dst, but_bos=True)

    def sharpen(self, dims: at.Dims) -> None:
        """Replace ±0.9 to ±1.4 by exactly ±1, and leave exact zeros."""
        for dim in dims:
            # 160 x + 16 and 160 x − 16 lie between the same powers of two, so that both are
            # rounded alike and their difference is exact.
            self._two_ramps(dim, dim, slope=160)
            self.clear(dim)
        self.add(-1, dims, but_bos=True)

    def _two_ramps(self, src: int, dst: int, *, slope: float) -> None:
        """Add 0, 1 or 2 where src is clearly negative, 0, or clearly positive; 0 at ``<|bos|>``."""
        for end, sign in ((SURE, 1), (-SURE, -1)):
            self.unit(
                gate={src: slope, at.ONE: end, at.BOS: NEVER},
                up={at.ONE: 1},
                down={dst: sign / SURE},
            )
