"""The chat template: which conversations it takes, and what it adds to them."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any

from mrcr_action.standin.body import BadRequest
from mrcr_action.standin.tokens import CHARACTERS_PER_TOKEN, text_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mrcr_action.standin.reader import Turn

_PRIVATE_USE = 0xE000
"""The first of the characters that Unicode leaves to private use."""

_PADDING = "\uffff"
"""Fills the last token of a text; Unicode assigns it to nothing."""


def require_alternation(turns: Sequence[Turn]) -> None:
    """Refuse what a strict template refuses, in the usual words.

    Raises:
        BadRequest: behind an optional system turn, the roles are not user, assistant, user, ….
    """
    roles = [turn.role for turn in turns]
    if roles[0] == "system":
        del roles[0]
    if any(role != ("assistant" if i % 2 else "user") for i, role in enumerate(roles)):
        raise BadRequest("Conversation roles must alternate user/assistant/user/assistant/...")


def rendered(turns: Iterable[Turn], kwargs: Any) -> str:
    """A conversation as one text in which each token takes exactly four characters.

    There are as many tokens as `prompt_tokens` says. Slices of it can be compared and hashed many
    times faster than lists of ids.

    Args:
        turns: the conversation; each role has a token of its own.
        kwargs: ``chat_template_kwargs``; others make another token in every message.
    """
    begin = _special("start") + _special(json.dumps(kwargs, sort_keys=True))
    end = _special("end")
    parts: list[str] = []
    for turn in turns:
        padding = _PADDING * (-len(turn.content) % CHARACTERS_PER_TOKEN)
        parts += [begin, _special(turn.role), turn.content, padding, end]
    return "".join(parts)


def rendered_ids(turns: Iterable[Turn], kwargs: Any) -> list[int]:
    """Token ids of a conversation, as many as `prompt_tokens` says."""
    return text_ids(rendered(turns, kwargs))


def _special(name: str) -> str:
    """A token that no text holds, unless it uses the same characters for private use."""
    checksum = zlib.crc32(name.encode("utf-8", "surrogatepass"))
    return "".join(chr(_PRIVATE_USE + byte) for byte in checksum.to_bytes(4, "big"))
