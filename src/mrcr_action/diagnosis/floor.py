"""What a sample would score with any of its needles, at random. No more than that shows nothing."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from mrcr_action.diagnosis.attribution import needles_of
from mrcr_action.diagnosis.evidence import Floor
from mrcr_action.grade import openai_ratio, vllm_ratio

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mrcr_action.result import Record
    from mrcr_action.sample import Sample

LONGEST = 65_536
"""Characters of a sample's needles above which nobody waits for the openai ratio of each."""


def floor_of(sample: Sample) -> Floor | None:
    """The mean ratio of every needle behind the right nonce; None for very long ones.

    With one needle, or identical ones, it is 1 by the openai protocol: there is none to mistake.
    Takes some 10 ms.
    """
    texts = tuple(needle.text for needle in needles_of(sample))
    if sum(map(len, texts)) > LONGEST:
        return None
    return _floor(sample.answer, sample.nonce, texts)


@lru_cache(maxsize=64)  # a pass over the same samples may follow at once
def _floor(answer: str, nonce: str, texts: tuple[str, ...]) -> Floor:
    replies = [nonce + text for text in texts]
    return Floor(
        openai=round(sum(openai_ratio(r, answer, nonce) for r in replies) / len(replies), 4),
        vllm=round(sum(vllm_ratio(r, answer, nonce) for r in replies) / len(replies), 4),
    )


def mean_floors(records: Iterable[Record], protocol: str) -> dict[int, float]:
    """By needle count, the mean over the graded samples of which it is known."""
    found: dict[int, list[float]] = {}
    for record in records:
        diagnosis = record.diagnosis
        if record.grade is None or diagnosis is None or diagnosis.wanted is None:
            continue
        floor = diagnosis.wanted.floor
        if floor is not None:
            found.setdefault(record.n_needles, []).append(floor.of(protocol))
    return {needles: sum(of) / len(of) for needles, of in sorted(found.items())}
