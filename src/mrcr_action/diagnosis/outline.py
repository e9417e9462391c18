"""A conversation without its words: who says how much, and which turns are the needles.

It is kept with every response, so that a report can draw where in its prompt things stand. However
many turns there are (a million tokens have thousands), it has at most `MOST` pieces: what lies
between two needles is told in runs of several turns then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.diagnosis.attribution import needles_of
from mrcr_action.diagnosis.evidence import Piece, Speaker

if TYPE_CHECKING:
    from mrcr_action.sample import Message, Role, Sample

MOST = 48
"""Pieces of an outline, of a row that has as many needles as the dataset's have."""

SPEAKERS: dict[Role, Speaker] = {"system": "s", "user": "u", "assistant": "a"}


def outline_of(sample: Sample) -> tuple[Piece, ...]:
    """The turns of a row in their order; needles and the question, its last turn, are never merged.

    Takes some microseconds a turn: contents are measured, not read.
    """
    ordinals = {needle.turn: needle.ordinal for needle in needles_of(sample)}
    last = len(sample.messages) - 1
    # Each run between two needles may have one piece more than its share.
    room = max(1, MOST - 2 * (len(ordinals) + 1))
    longest = 1 if last < MOST else -(-last // room)
    found: list[Piece] = []
    run: list[Message] = []
    for turn, message in enumerate(sample.messages):
        if turn in ordinals or turn == last:
            found += _merged(run)
            found.append(_piece([message], ordinals.get(turn)))
            run = []
            continue
        run.append(message)
        if len(run) == longest:
            found += _merged(run)
            run = []
    return tuple(found)


def _merged(run: list[Message]) -> list[Piece]:
    return [_piece(run, None)] if run else []


def _piece(run: list[Message], needle: int | None) -> Piece:
    roles = {message.role for message in run}
    speaker = SPEAKERS[run[0].role] if len(roles) == 1 else "m"
    chars = sum(len(message.content) for message in run)
    return Piece(speaker=speaker, chars=chars, turns=len(run), needle=needle)
