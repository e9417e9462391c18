"""How the stand-in counts tokens: four characters each, and four more tokens a message."""

from __future__ import annotations

import re
import zlib
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

CHARACTERS_PER_TOKEN = 4

TOKENS_PER_MESSAGE = 4
"""What a chat template would add around each message."""

VOCABULARY = 2**16
"""How many token ids there are."""

_SUFFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}


def text_tokens(characters: int) -> int:
    """How many tokens so many characters of text are, rounded up."""
    return -(-characters // CHARACTERS_PER_TOKEN)


def message_tokens(content: str) -> int:
    """How many tokens one message is, template included."""
    return text_tokens(len(content)) + TOKENS_PER_MESSAGE


def prompt_tokens(contents: Iterable[str]) -> int:
    """How many tokens a conversation is, given the contents of its messages."""
    return sum(message_tokens(content) for content in contents)


def text_ids(text: str) -> list[int]:
    """Token ids of a text, as many as `text_tokens` says: four characters make one number."""
    pieces = (
        text[at : at + CHARACTERS_PER_TOKEN] for at in range(0, len(text), CHARACTERS_PER_TOKEN)
    )
    return [zlib.crc32(piece.encode("utf-8", "surrogatepass")) % VOCABULARY for piece in pieces]


def parse_token_count(text: str) -> int:
    """Read a number of tokens the way vLLM does: ``128K`` is 131,072 and ``128k`` is 128,000.

    Raises:
        ValueError: the text is not a whole number of tokens.
    """
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([kmgKMG]?)", text.strip())
    if not match:
        raise ValueError(f"{text!r} is not a number of tokens such as 131072, 128K or 128k")
    count = Decimal(match[1]) * _SUFFIXES[match[2]]
    if count != int(count):
        raise ValueError(f"{text!r} is not a whole number of tokens")
    return int(count)
