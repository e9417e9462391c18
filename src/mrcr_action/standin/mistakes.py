"""Answers that go wrong in other ways than by a few characters."""

from __future__ import annotations

from mrcr_action.standin.draws import draw
from mrcr_action.standin.tokens import CHARACTERS_PER_TOKEN

REFUSAL = "I'm sorry, but I can't help with that."

FURTHER = "\n\nLet me know if you would like another one, or any changes to this one."
"""What a model adds that does not stop."""

_ELSEWHERE = (
    " whereupon the harbour master closed his ledger, weighed two brass keys in one palm and walked"
    " out past the drying nets. Nobody had asked about Thursday. Under the arch a fiddler tuned"
    " three strings, left the fourth alone, and counted coins by touch until the ferry bell rang."
)
"""Of no conversation."""

_PIECE = " and so on"
_TIMES = 60

_ALPHANUMERIC = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def derailed(text: str, tokens: int) -> str:
    """A text that is right for so many tokens, and then another one."""
    return text[: tokens * CHARACTERS_PER_TOKEN] + _ELSEWHERE


def looped(text: str, tokens: int) -> str:
    """A text that is right for so many tokens, and then says one thing over and over."""
    return text[: tokens * CHARACTERS_PER_TOKEN] + _PIECE * _TIMES


def other_nonce(nonce: str) -> str:
    """As many letters and digits, always the same ones for one nonce, each unlike its own."""
    found = []
    for at, own in enumerate(nonce):
        letters = _ALPHANUMERIC.replace(own, "")
        found.append(letters[int(draw(f"nonce/{nonce}/{at}") * len(letters))])
    return "".join(found)
