"""What is seen of a model's chat template before a run, and the one way to get around a strict one.

Every row of MRCR begins with two user turns, which templates such as Mistral's refuse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mrcr_action.sample import Message

if TYPE_CHECKING:
    from collections.abc import Sequence


class Preflight(msgspec.Struct, frozen=True, kw_only=True):
    """What a tiny conversation showed of the chat template before the samples were asked."""

    two_user_turns: bool | None
    """Whether the template takes two user turns in a row; None: could not be seen."""
    merged: bool
    """Whether the first two turns of every row are merged: scores are then not comparable."""
    thinks: bool | None
    """Whether the model thinks although ``enable_thinking`` is false; None: could not be seen, or
    it was not asked not to."""
    overhead_tokens: int | None
    """Tokens that the template adds to the tiny conversation of four messages (merged: three);
    below 0 when it leaves text out. None: the server has no /tokenize."""
    tokens_per_message: float | None
    """Tokens that one more message costs beyond its content. None: the server has no /tokenize."""
    fingerprint: str
    """SHA-256, in hex, of the tokens that the tiny conversation becomes: changes with the tokenizer
    and with the template as the run calls it, so also from day to day where a template tells the
    date. Empty where the server does not tell the tokens."""
    notes: tuple[str, ...]
    """Sentences for every report."""


def merge_leading_user_turns(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The conversation with its turns 0 and 1 joined by a blank line, if both are the user's."""
    roles = [message.role for message in messages[:2]]
    if roles != ["user", "user"]:
        return tuple(messages)
    first, second = messages[:2]
    return (Message("user", f"{first.content}\n\n{second.content}"), *messages[2:])
