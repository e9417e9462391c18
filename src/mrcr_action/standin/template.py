"""The chat template: which conversations it takes, and what it adds to them."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any

from mrcr_action.standin.chat import BadRequest
from mrcr_action.standin.tokens import VOCABULARY, text_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mrcr_action.standin.reader import Turn


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


def rendered_ids(turns: Iterable[Turn], kwargs: Any) -> list[int]:
    """Token ids of a conversation, as many as `prompt_tokens` says.

    Args:
        turns: the conversation; each role has a token of its own.
        kwargs: ``chat_template_kwargs``; others make another token in every message.
    """
    template = _id(json.dumps(kwargs, sort_keys=True))
    ids: list[int] = []
    for turn in turns:
        ids += [_id("start"), template, _id(turn.role), *text_ids(turn.content), _id("end")]
    return ids


def _id(text: str) -> int:
    return zlib.crc32(text.encode()) % VOCABULARY
