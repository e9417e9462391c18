"""The table of buckets that the console and the summary both show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.gate import threshold_of

if TYPE_CHECKING:
    from mrcr_action.result import Bucket, Result

HEADER: tuple[str, ...] = (
    *("bucket", "verdict", "ratio", "threshold"),
    *("openai", "vllm", "nonce", "exact", "graded", "lost"),
)
"""Column titles; ``ratio`` is the gated protocol's."""

MARKS = {"pass": "✓ pass", "fail": "✗ FAIL", "inconclusive": "? unclear"}
MARKS |= {"measured": "· measured"}
"""Words and signs, so that no table depends on colour."""


def bucket_title(bucket: Bucket) -> str:
    """How a person calls a bucket."""
    return "all samples" if bucket.n_needles is None else f"{bucket.n_needles} needles"


def rows_of(result: Result) -> list[tuple[str, ...]]:
    """One row a bucket, in the columns of `HEADER`; every cell is made here, none is foreign."""
    states = {check.bucket: check.state for check in result.verdict.checks}
    rows: list[tuple[str, ...]] = []
    for bucket in result.buckets:
        threshold = threshold_of(bucket, result.config)
        limit = "–" if threshold is None else f"{threshold:.4f} − {result.config.tolerance:.4f}"
        rows.append(
            (
                bucket_title(bucket),
                MARKS[states[bucket.name]],
                number(bucket.match_ratio(result.config.protocol)),
                limit,
                number(bucket.match_ratio_openai),
                number(bucket.match_ratio_vllm),
                number(bucket.prefix_hit_rate),
                number(bucket.exact_rate),
                f"{bucket.graded}/{bucket.wanted}",
                lost(bucket),
            )
        )
    return rows


def number(value: float | None) -> str:
    """A ratio with four decimals, or a dash."""
    return "–" if value is None else f"{value:.4f}"


def lost(bucket: Bucket) -> str:
    """What gave no evidence, and what was cut, in words."""
    parts = [
        f"{count} {word}"
        for count, word in (
            (bucket.failed, "failed"),
            (bucket.rejected, "refused"),
            (bucket.truncated, "truncated"),
        )
        if count
    ]
    return ", ".join(parts) or "0"


def tested(result: Result) -> str:
    """One line about what was asked: lengths, protocol, model, data."""
    parts = [f"protocol {result.config.protocol}"]
    if result.plan is not None and result.plan.asks:
        lengths = [ask.prompt_tokens for ask in result.plan.asks]
        parts.append(f"prompts of {min(lengths):,} to {max(lengths):,} tokens")
        parts.append(f"limit {result.plan.max_prompt_tokens:,}")
    if result.server.max_model_len:
        parts.append(f"window {result.server.max_model_len:,}")
    return ", ".join(parts)
