"""What the probe cannot read, so that a wrong answer to it is no fault of the server. Pure.

The probe has no understanding of a question: it compares bytes at fixed distances. This module
follows what its layers do with a conversation, and where that leads to another reply than the
wanted one, or to none, it says why. No reason quotes the conversation.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from mrcr_action.probe.attention import FAR_REACH
from mrcr_action.probe.build import DEFAULT_MAX_LEN
from mrcr_action.probe.vocabulary import MARK
from mrcr_action.probe.wording import (
    COPY_DISTANCE,
    IDENTITY_STEPS,
    NONCE_OPENING,
    ORDINALS,
    QUESTION_ENDING,
    QUESTION_OPENING,
    REQUEST_OPENINGS,
)
from mrcr_action.sample import NONCE_LENGTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.sample import Message, Sample

LONGEST_IDENTITY: Final = sum(IDENTITY_STEPS)
"""Bytes of what is asked for: the hash of an identity covers these and the blank before them."""

LONGEST_PIECE: Final = FAR_REACH
"""Bytes of the wanted piece: further from its beginning, a token does not know its segment."""

SHORTEST_REQUEST: Final = COPY_DISTANCE - len(("<user>", "<end>"))
"""Bytes of a turn that a reply follows. A piece is read so far behind its bytes that without these
its end would lie in the next segment."""

_QUESTION: Final = re.compile(
    re.escape(NONCE_OPENING)
    + r"(.{1,99}?) to the ([0-9]{1,9})(?:st|nd|rd|th) \(1 indexed\) (.+)"
    + re.escape(QUESTION_ENDING),
    re.DOTALL,
)
_OPENINGS: Final = (*REQUEST_OPENINGS, NONCE_OPENING, QUESTION_OPENING)


def cannot_read(sample: Sample, *, max_tokens: int) -> str | None:
    """Why the probe cannot answer a row in so many tokens; None if it can."""
    if len(sample.answer.encode()) + 1 > max_tokens:
        return f"the answer is longer than max_tokens, which is {max_tokens:,}"
    return unreadable(sample.messages, sample.desired_msg_index)


def unreadable(messages: Sequence[Message], wanted: int) -> str | None:
    """Why the probe would not answer a conversation with the nonce and the wanted reply.

    Args:
        messages: the conversation; its last turn is the question.
        wanted: index of the request whose reply is wanted, with a reply after it.

    Returns:
        The reason; None if it answers word for word.
    """
    return (
        _unasked(messages[-1].content)
        or _unfound(messages, wanted)
        or _uncopied(messages[wanted + 1].content)
        or _misshapen(messages)
    )


def _unasked(text: str) -> str | None:
    """Why a question is not understood."""
    question = _QUESTION.fullmatch(text)
    if question is None:
        return "the question is not worded as the dataset's"
    nonce, ordinal, identity = question.groups()
    if len(nonce.encode()) != NONCE_LENGTH:
        return f"the nonce has not {NONCE_LENGTH} bytes"
    if not 1 <= int(ordinal) <= ORDINALS or len(ordinal) > 1:
        return f"the question asks for one before the 1st or after the {ORDINALS}th"
    if len(identity.encode()) > LONGEST_IDENTITY:
        return f"what is asked for has more than {LONGEST_IDENTITY} bytes"
    if _ends_of_openings(text) != [len(NONCE_OPENING), question.start(3)]:
        return "the question holds words with which another question or a request begins"
    return None


def _unfound(messages: Sequence[Message], wanted: int) -> str | None:
    """Why the reply that a question asks for is not found, or another one is."""
    question = _QUESTION.fullmatch(messages[-1].content)
    assert question is not None
    asked = f" {question[3]}".encode()
    places = [
        at
        for at, (request, reply) in enumerate(pairwise(messages))
        if reply.role == "assistant" and _identity(request.content) == asked
    ]
    if wanted not in places:
        return "the question does not ask for the wanted reply in the words of its request"
    if places.index(wanted) + 1 != int(question[2]):
        return "more or fewer requests than those of the same words count as the same"
    return None


def _uncopied(piece: str) -> str | None:
    """Why a reply that is found is not copied to its end."""
    if len(piece.encode()) > LONGEST_PIECE:
        return f"the wanted reply has more than {LONGEST_PIECE:,} bytes"
    if piece.endswith("\ufffd"):
        # Servers send no text that ends in this mark, since it may be half a character.
        return "the wanted reply ends with U+FFFD, which servers hold back"
    return None


def _misshapen(messages: Sequence[Message]) -> str | None:
    """Why a conversation as a whole is not seen as it is."""
    if any(MARK in message.content for message in messages):
        return "a message holds the text of a special token of the probe"
    if 2 + sum(len(message.content.encode()) + 2 for message in messages) > DEFAULT_MAX_LEN:
        return f"the prompt has more than {DEFAULT_MAX_LEN:,} tokens"
    if messages[0].role == "assistant":
        return "the conversation begins with a reply"
    for before, reply in pairwise(messages):
        if reply.role == "assistant" and len(before.content.encode()) < SHORTEST_REQUEST:
            return f"a reply follows on a turn of fewer than {SHORTEST_REQUEST} bytes"
        if reply.role == before.role == "assistant":
            return "a reply follows on a reply"
    return None


def _identity(text: str) -> bytes:
    """What the hash of a request is made of: the blank before its identity, and that.

    Without an opening within reach it is the last bytes; nothing where the text has fewer, since
    with the tokens before it no question is its equal.
    """
    openings = _ends_of_openings(text)
    tail = text[openings[-1] - 1 if openings else 0 :].encode()
    if not openings and len(tail) <= LONGEST_IDENTITY:
        return b""
    return tail[-1 - LONGEST_IDENTITY :]


def _ends_of_openings(text: str) -> list[int]:
    """Where the phrases end after which an identity or a nonce begins."""
    return sorted(
        match.end() for opening in _OPENINGS for match in re.finditer(re.escape(opening), text)
    )
