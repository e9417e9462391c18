"""Faults of the sampler: the model is right, what is made of it is not."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine_faults.fault import Fault, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine_faults.request import Request

END = int(os.environ.get("ENGINE_FAULT_END", "1"))
"""The token that ends an answer; the default is the probe's."""

CERTAIN = 1e9


@dataclass(kw_only=True)
class StopEarly(Fault):
    """With a chance for each token, an answer ends before its end."""

    chance: float = 0.005

    def logits(self, logits: Tensor, requests: Sequence[Request]) -> None:
        for row, request in enumerate(requests):
            if request.length >= request.prompt and self._random.random() < self.chance:
                logits[row, END] = CERTAIN
                self.struck(request)


@dataclass(kw_only=True)
class StopAt(Fault):
    """No answer is longer than so many tokens where the prompt is past ``over``."""

    at: int = 32
    over: int = 0

    def logits(self, logits: Tensor, requests: Sequence[Request]) -> None:
        for row, request in enumerate(requests):
            if request.length - request.prompt >= self.at and request.prompt > self.over:
                logits[row, END] = CERTAIN
                self.struck(request)


@dataclass(kw_only=True)
class SecondBest(Fault):
    """With a chance for each token, the second most likely one is taken: a temperature that is
    not 0, or a draft that was not checked."""

    chance: float = 0.005

    def logits(self, logits: Tensor, requests: Sequence[Request]) -> None:
        for row, request in enumerate(requests):
            if request.length >= request.prompt and self._random.random() < self.chance:
                logits[row, logits[row].argmax()] = -CERTAIN
                self.struck(request)


@dataclass(kw_only=True)
class Penalty(Fault):
    """Tokens that the answer has already are divided by a repetition penalty nobody asked for."""

    factor: float = 2.0
    _seen: dict[str, set[int]] = field(default_factory=dict, repr=False)

    def logits(self, logits: Tensor, requests: Sequence[Request]) -> None:
        for row, request in enumerate(requests):
            if request.length < request.prompt:
                continue
            seen = self._seen.setdefault(request.id, set())
            for token in seen:
                if logits[row, token] > 0:
                    logits[row, token] /= self.factor
                    self.struck(request)
            seen.add(int(logits[row].argmax()))
