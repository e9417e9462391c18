"""The turns whose wording the dataset fixes: a request, the question at the end, its nonce."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.sample import NONCE_LENGTH

if TYPE_CHECKING:
    from mrcr_action.synthetic.grammar import Dice

_ALPHANUMERIC = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_SUFFIXES = {1: "st", 2: "nd", 3: "rd"}
_TEENS = range(11, 14)


def request(kind: str, topic: str) -> str:
    """The turn that asks for a piece; the article is always ``a``, as in the dataset."""
    return f"write a {kind} about {topic}"


def question(nonce: str, position: int, kind: str, topic: str) -> str:
    """The last turn; ``position`` counts from 1."""
    return (
        f"Prepend {nonce} to the {ordinal(position)} (1 indexed) {kind} about {topic}. "
        "Do not include any other text in your response."
    )


def ordinal(position: int) -> str:
    """1st, 2nd, 3rd, 4th … 11th, 12th, 13th … 21st."""
    suffix = "th" if position % 100 in _TEENS else _SUFFIXES.get(position % 10, "th")
    return f"{position}{suffix}"


def draw_nonce(dice: Dice) -> str:
    """Ten alphanumerics, a digit among the inner ones: so no word of the pieces holds them."""
    while True:
        drawn = "".join(dice.pick(_ALPHANUMERIC) for _ in range(NONCE_LENGTH))
        if not drawn[1:-1].isalpha() and not drawn.isdigit():
            return drawn
