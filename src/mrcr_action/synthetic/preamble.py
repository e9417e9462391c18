"""The first turn of a synthetic row: two other conversations, each answered correctly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.synthetic.prose import piece
from mrcr_action.synthetic.topics import FORMATS, TOPICS
from mrcr_action.synthetic.turns import draw_nonce, question, request

if TYPE_CHECKING:
    from mrcr_action.synthetic.grammar import Dice

_OPENING = (
    "Here are some examples of conversations succeeded by a follow-up question answered correctly:"
)
# Percent of the demonstrations that ask for the same as the conversation does.
_DECOYS = 25


def preamble(dice: Dice, kind: str, topic: str, *, chars: int) -> str:
    """Two demonstrations in some ``chars`` characters.

    ``kind`` and ``topic`` are what the conversation asks for. Some demonstrations ask for the
    same: a reader that takes the examples for the conversation counts these as well.
    """
    each = [_demonstration(dice, kind, topic, chars=chars // 2 - 60) for _ in range(2)]
    return "\n\n".join((_OPENING, *each))


def another(dice: Dice, kind: str, topic: str) -> tuple[str, str]:
    """Another format and topic, which shares one of them two times in three."""
    other_kind, other_topic = kind, topic
    same = dice.pick(("format", "topic", "neither"))
    while other_kind == kind and same != "format":
        other_kind = dice.pick(FORMATS)
    while other_topic == topic and same != "topic":
        other_topic = dice.pick(TOPICS)
    return other_kind, other_topic


def _demonstration(dice: Dice, decoy_kind: str, decoy_topic: str, *, chars: int) -> str:
    """A conversation in one text, of about ``chars`` characters, answered correctly."""
    nonce = draw_nonce(dice)
    pairs = max(1, min(5, (chars - 220) // 150))
    kind, topic = dice.pick(FORMATS), dice.pick(TOPICS)
    if pairs > 1 and dice.chance(_DECOYS):
        kind, topic = decoy_kind, decoy_topic
    size = max(16, (chars - 220) // (pairs + 1) - 50)
    turns, replies = [], []
    for at in range(pairs):
        # Its own needles at the even places, decoys between them.
        is_needle = at % 2 == 0
        asked = (kind, topic) if is_needle else another(dice, kind, topic)
        reply = piece(dice, *asked, chars=size)
        turns += [f"User: {request(*asked)}", f"Assistant: {reply}"]
        if is_needle:
            replies.append(reply)
    position = dice.below(len(replies))
    turns += [
        f"User: {question(nonce, position + 1, kind, topic)}",
        f"Assistant: {nonce}{replies[position]}",
    ]
    return "\n\n".join(("======EXAMPLE======", *turns, "======END EXAMPLE======"))
