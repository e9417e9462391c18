"""Which piece of the conversation a text comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrcr_action.diagnosis.edits import COMPARED, alike, common
from mrcr_action.diagnosis.evidence import Likeness, Place, Source, Wanted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.sample import Message, Sample

MATCHED = 0.6
"""From this ratio on, a text is a copy. Replies on one topic have 0.2 to 0.3."""

COPIED = 0.5
"""From this share on of pieces that stand in a message, a text is of that message."""

SHINGLE = 16
"""Characters of the pieces by which messages are told apart."""

LEAST_CHARS = 48
"""A shorter text could stand anywhere."""

OPENING = 32
"""Characters of a common beginning that are no chance."""


@dataclass(frozen=True, slots=True)
class Needle:
    """A reply to one of the identical requests."""

    ordinal: int
    """Which one, from 1."""
    turn: int
    """Message that it is, by its index from 0."""
    text: str


def needles_of(sample: Sample) -> tuple[Needle, ...]:
    """The replies to all requests that are worded like the wanted one, in their order."""
    messages, wanted = sample.messages, sample.desired_msg_index
    request = messages[wanted].content
    turns = [
        at + 1
        for at, message in enumerate(messages[:-1])
        if at == wanted or (message.role == "user" and message.content == request)
    ]
    return tuple(
        Needle(ordinal, turn, messages[turn].content) for ordinal, turn in enumerate(turns, start=1)
    )


def wanted_of(sample: Sample, prompt_tokens: int | None) -> Wanted:
    """The needle that a sample asks for, and where in the prompt it lies.

    Args:
        sample: the row, as it was asked.
        prompt_tokens: length of the prompt in the server's tokens.
    """
    turn = sample.desired_msg_index + 1
    needles = needles_of(sample)
    start = place_of(sample.messages, turn, 0, prompt_tokens)
    before, total = _chars_before(sample.messages, turn)
    return Wanted(
        ordinal=[needle.turn for needle in needles].index(turn) + 1,
        of=len(needles),
        turn=turn,
        depth=round(before / max(1, total), 4),
        token=start.token,
        distance=None
        if prompt_tokens is None or start.token is None
        else prompt_tokens - start.token,
    )


def place_of(messages: Sequence[Message], turn: int, char: int, prompt_tokens: int | None) -> Place:
    """A character of the prompt, with about which token it is in."""
    before, total = _chars_before(messages, turn)
    token = None
    if prompt_tokens is not None:
        token = round(prompt_tokens * (before + char) / max(1, total))
    return Place(turn=turn, char=char, token=token)


def likenesses(text: str, needles: Sequence[Needle]) -> tuple[Likeness, ...]:
    """How much a text is like each needle."""
    return tuple(
        Likeness(ordinal=needle.ordinal, ratio=round(alike(text, needle.text), 4))
        for needle in needles
    )


def sibling_of(
    text: str, needles: Sequence[Needle], ratios: Sequence[Likeness]
) -> tuple[Needle, float] | None:
    """The needle that a text is a copy of, or the beginning of, with its ratio; None for none.

    Args:
        text: behind the nonce.
        needles: those that it could be.
        ratios: to each of them.
    """
    if not needles:
        return None
    best, ratio = max(
        zip(needles, (likeness.ratio for likeness in ratios), strict=True), key=lambda pair: pair[1]
    )
    if ratio >= MATCHED:
        return best, ratio
    begun = [
        (needle, likeness.ratio)
        for needle, likeness in zip(needles, ratios, strict=True)
        if len(text) >= OPENING and common(text, needle.text) >= len(text) * 0.9
    ]
    return begun[0] if begun else None


def source_of(text: str, messages: Sequence[Message], needles: Sequence[Needle]) -> Source | None:
    """The message that most of a text stands in word for word; None where there is none.

    Every message is cut into pieces, and those that stand in the text are counted: that takes some
    10 ms for a million characters, against minutes for a match ratio with each.
    """
    text = text[:COMPARED]
    if len(text) < LEAST_CHARS:
        return None
    known = {text[at : at + SHINGLE] for at in range(len(text) - SHINGLE + 1)}
    best, most = 0, 0
    for turn, message in enumerate(messages):
        content = message.content
        pieces = [content[at : at + SHINGLE] for at in range(0, len(content), SHINGLE)]
        found = len(known.intersection(pieces))
        if found > most:
            best, most = turn, found
    share = min(1.0, most * SHINGLE / len(text))
    if share < COPIED:
        return None
    ordinal = next((needle.ordinal for needle in needles if needle.turn == best), None)
    ratio = round(alike(text, messages[best].content), 4)
    return Source(turn=best, ordinal=ordinal, ratio=ratio, share=round(share, 2))


def _chars_before(messages: Sequence[Message], turn: int) -> tuple[int, int]:
    """Characters before a message, and of all."""
    lengths = [len(message.content) for message in messages]
    return sum(lengths[:turn]), sum(lengths)
