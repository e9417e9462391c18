"""Words added to the first turn of a conversation, so that its prompt ends where it shall. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.sample import Message

INTRODUCTION = "\n\nThe letters that follow have no meaning:"

LETTERS = "abcdefghijklmnopqrstuvwxyz"
"""One after the other, with a blank before each: in most vocabularies a token of its own, so that
the prompt's length can be set to the token."""


def padded(messages: Sequence[Message], words: int) -> tuple[Message, ...]:
    """A conversation with so many words more at the end of its first turn; 0 changes nothing."""
    if not words:
        return tuple(messages)
    first, *rest = messages
    return (replace(first, content=first.content + filler(words)), *rest)


def filler(words: int) -> str:
    """The text that is added."""
    return INTRODUCTION + "".join(f" {LETTERS[at % len(LETTERS)]}" for at in range(words))
