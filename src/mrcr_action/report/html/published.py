"""Scores that others published, for orientation only: second-hand, with what they hold for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from mrcr_action.config.keys import Protocol

NOISE_FLOOR = {2: 0.51, 4: 0.27, 8: 0.15}
"""By needle count: about what a model scores by the openai protocol that repeats any needle, at
random."""

BEFORE = "before the dataset's correction"
AFTER = "after the dataset's correction"
UNSTATED = "version not stated"


@dataclass(frozen=True, slots=True)
class Score:
    """One published mean."""

    model: str
    n_needles: int
    length: str
    ratio: float
    data: str
    protocol: Protocol = "openai"


SCORES = (
    Score("GPT-4.1", 2, "128K", 0.572, BEFORE),
    Score("GPT-4.1", 2, "256K", 0.562, BEFORE),
    Score("GPT-4.1", 2, "1M", 0.463, BEFORE),
    Score("GPT-4.1-mini", 2, "128K", 0.472, BEFORE),
    Score("GPT-4.1-mini", 2, "256K", 0.455, BEFORE),
    Score("GPT-4.1-nano", 2, "128K", 0.366, BEFORE),
    Score("GPT-4.1-nano", 2, "256K", 0.226, BEFORE),
    Score("GPT-5", 2, "128K", 0.952, BEFORE),
    Score("GPT-5", 2, "256K", 0.868, BEFORE),
    Score("GPT-5.2", 8, "4K-8K", 0.982, AFTER),
    Score("GPT-5.2", 8, "32K-64K", 0.920, AFTER),
    Score("GPT-5.2", 8, "64K-128K", 0.856, AFTER),
    Score("Qwen3-0.6B", 2, "16K-33K", 0.342, UNSTATED, "vllm"),
    Score("Qwen3-0.6B", 4, "16K-33K", 0.167, UNSTATED, "vllm"),
    Score("Qwen3-0.6B", 8, "16K-33K", 0.126, UNSTATED, "vllm"),
)


def published(protocol: str, needles: Collection[int]) -> list[tuple[str, ...]]:
    """A header, then the scores of a protocol for some needle counts."""
    rows = [
        (score.model, str(score.n_needles), score.length, score.data, f"{score.ratio:.3f}")
        for score in SCORES
        if score.protocol == protocol and score.n_needles in needles
    ]
    return [("model", "needles", "length", "data", "ratio"), *rows]
