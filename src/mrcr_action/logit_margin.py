"""Answers whose tokens led the second best by less than ``min_logit_margin``. Pure.

A model whose lead is known shows arithmetic that is slightly off before any answer changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.result import Check

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.config import RunConfig
    from mrcr_action.result import Record

NAME = "logit margin"
"""Of the check."""


def margin_checks(records: Sequence[Record], config: RunConfig) -> list[Check]:
    """Compare the least lead of all answers, in whatever round, with what is needed.

    Empty without ``min_logit_margin``, and where no answer tells; `unknown_margin` says so then.
    """
    needed = config.min_logit_margin
    told = [r.logit_margin for r in records if r.logit_margin is not None]
    if needed is None or not told:
        return []
    least, low = min(told), sum(margin < needed for margin in told)
    message = f"{NAME}: {least:.2f} nats, {needed:g} are needed"
    if low:
        message = (
            f"{NAME}: a token of {low} of {len(told)} answers led the second best by less than"
            f" {needed:g} nats, one by {least:.2f}"
        )
    return [
        Check(
            bucket=NAME,
            state="fail" if low else "pass",
            message=message,
            measured=least,
            samples=len(told),
            is_of_margin=True,
        )
    ]


def unknown_margin(records: Sequence[Record], config: RunConfig) -> list[str]:
    """A sentence where the lead should have been checked and some answers do not tell it."""
    answered = [record for record in records if record.grade is not None]
    silent = sum(record.logit_margin is None for record in answered)
    if config.min_logit_margin is None or not silent:
        return []
    told = (
        f"The logit margin of {silent} of {len(answered)} answers could not be checked: the server"
        " gives no log-probabilities of two tokens (logprobs, top_logprobs)."
    )
    return [told]
