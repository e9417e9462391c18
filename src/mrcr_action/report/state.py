"""What a run comes to for its reader: a conclusion, or that nothing was gated."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mrcr_action.result import Result

STATES = {"fail": "failed", "inconclusive": "inconclusive", "pass": "passed"}
STATES |= {"measured": "measured"}
"""Worst first; what a configuration did."""


NOT_JUDGED = "MRCR measured, not judged yet"
"""Headline of a part of a plan, whose thresholds are those of the whole."""


def is_unjudged(result: Result) -> bool:
    """Whether it is a part of a plan that was asked to its end."""
    return result.verdict.conclusion == "measured"


def state_of(result: Result) -> str:
    """Its conclusion, or ``measured`` for a pass without anything that could have failed."""
    gated = any(
        c.threshold is not None
        or (not c.is_of_threshold and (c.against or c.state in {"pass", "fail"}))
        for c in result.verdict.checks
    )
    conclusion = result.verdict.conclusion
    return "measured" if conclusion == "pass" and not gated else conclusion
