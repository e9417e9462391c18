"""How far each token of an answer led the second best one, from a stream's log-probabilities."""

from __future__ import annotations

from typing import Any

FARTHEST = 1e6
"""Beyond it, no number is a log-probability; servers write −9,999 for one of zero."""


def least_margin(logprobs: Any) -> float | None:
    """The least lead, in nats, of the tokens that one event of a stream brings.

    Args:
        logprobs: a choice's field of that name, whatever the server put there: of each token its
            own log-probability, and those of the best ones (``top_logprobs``).

    Returns:
        Negative where a token was sampled that was not the best; None where no second one is told.
    """
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    leads = [_lead(token) for token in content] if isinstance(content, list) else []
    return min((lead for lead in leads if lead is not None), default=None)


def _lead(token: Any) -> float | None:
    if not isinstance(token, dict) or not isinstance(token.get("top_logprobs"), list):
        return None
    own = _number(token.get("logprob"))
    best = [_number(top.get("logprob")) for top in token["top_logprobs"] if isinstance(top, dict)]
    others = [number for number in best if number is not None]
    if own is None:
        return None
    # The best ones hold the token itself, told by its number: texts of two tokens can be the same.
    if own in others:
        others.remove(own)
    return own - max(others) if others else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if -FARTHEST < value < FARTHEST else None
