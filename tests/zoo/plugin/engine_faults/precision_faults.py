"""Faults of precision: the right numbers, but not quite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine_faults.fault import Fault, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine_faults.request import Request


@dataclass(kw_only=True)
class RoundedCache(Fault):
    """Keys and values are rounded to so many bits, with a scale for each token and head."""

    bits: int = 4

    def stored(
        self, key: Tensor, value: Tensor, slots: Tensor, requests: Sequence[Request]
    ) -> tuple[Tensor, Tensor, Tensor]:
        self.struck(*requests)
        return self._rounded(key), self._rounded(value), slots

    def _rounded(self, tensor: Tensor) -> Tensor:
        steps = 2 ** (self.bits - 1) - 1
        scale = tensor.abs().amax(-1, keepdim=True).clamp(min=1e-30) / steps
        return (tensor / scale).round() * scale


@dataclass(kw_only=True)
class ScaledCache(Fault):
    """What is read back is the multiple of what was stored: a scale that is out of date."""

    key: float = 1.0
    value: float = 1.0

    def stored(
        self, key: Tensor, value: Tensor, slots: Tensor, requests: Sequence[Request]
    ) -> tuple[Tensor, Tensor, Tensor]:
        self.struck(*requests)
        return key * self.key, value * self.value, slots


@dataclass(kw_only=True)
class SoftmaxScale(Fault):
    """Attention's scale is off by a factor, as with a wrong head size or a lost YaRN factor."""

    factor: float = 0.9

    def attention(self, scale: float, requests: Sequence[Request]) -> dict[str, Any]:
        self.struck(*requests)
        return {"scale": scale * self.factor}


@dataclass(kw_only=True)
class RoundedBatch(Fault):
    """Batches of ``least`` requests or more take a kernel that keeps ``bits`` bits of a number."""

    least: int = 2
    bits: int = 4

    def attended(self, output: Tensor, requests: Sequence[Request]) -> None:
        if len(requests) >= self.least:
            mantissa, exponent = output.frexp()
            steps = 2**self.bits
            output.copy_(((mantissa * steps).round() / steps).ldexp(exponent))
            self.struck(*requests)


@dataclass(kw_only=True)
class NoisyLogits(Fault):
    """Every logit has noise of that standard deviation."""

    deviation: float = 1.0

    def logits(self, logits: Tensor, requests: Sequence[Request]) -> None:
        logits.add_(logits.clone().normal_(std=self.deviation))
        self.struck(*requests)
