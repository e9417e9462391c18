"""Means and counts of a run's buckets. Pure; no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.result import Bucket, Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def buckets_of(records: Sequence[Record], quotas: Mapping[int, int]) -> tuple[Bucket, ...]:
    """The bucket of all samples, then one per needle count.

    Args:
        records: finished asks, in the order of the plan (the order decides a mean's last bit).
        quotas: samples wanted, by needle count.
    """
    found = [_bucket("all", None, records, sum(quotas.values()))]
    for n, wanted in quotas.items():
        found.append(_bucket(f"n{n}", n, [r for r in records if r.n_needles == n], wanted))
    return tuple(found)


def _bucket(name: str, n_needles: int | None, records: Sequence[Record], wanted: int) -> Bucket:
    outcomes = [r.outcome for r in records]
    grades = [r.grade for r in records if r.grade is not None]
    return Bucket(
        name=name,
        n_needles=n_needles,
        wanted=wanted,
        asked=len(records),
        scored=outcomes.count("scored"),
        truncated=outcomes.count("truncated"),
        rejected=outcomes.count("rejected"),
        failed=outcomes.count("failed"),
        match_ratio_openai=mean([g.match_ratio_openai for g in grades]),
        match_ratio_vllm=mean([g.match_ratio_vllm for g in grades]),
        prefix_hit_rate=mean([float(g.nonce_hit) for g in grades]),
        exact_rate=mean([float(g.exact) for g in grades]),
    )


def mean(values: Sequence[float]) -> float | None:
    """Arithmetic mean, summed as numpy does, so that it equals vLLM's to the last bit."""
    import numpy as np

    return float(np.array(values).mean()) if values else None
