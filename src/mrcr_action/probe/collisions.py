"""Which rows a model cannot read because two identities have the same hash.

Keys show ``hash_bits`` of an identity's hash. Of R other requests in a conversation, one is taken
for the wanted one with a chance of about R / 2^bits, and one for the answer's own segment with the
same chance: for R = 100, 0.3 % with 16 bits, 10^-12 with 48.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.probe import wording
from mrcr_action.probe.codes import sequence_code, tables
from mrcr_action.probe.vocabulary import encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.probe.codes import Codes
    from mrcr_action.probe.layout import Shape

REACH = 2 ** len(wording.IDENTITY_STEPS)
"""Tokens that a hash covers at most, the last one of the opening included."""
OPENINGS = (*wording.REQUEST_OPENINGS, wording.NONCE_OPENING, wording.QUESTION_OPENING)


def rivals(asked: Sequence[str], shape: Shape) -> list[str]:
    """Requests that the model takes for the wanted one, or for the question, though they differ.

    ``asked`` are the user's messages of a conversation, the question last. None is taken so where
    the model can read the conversation.
    """
    *requests, question = asked
    # What the question asks for ends so far before the <|assistant|>, a request two tokens before.
    rest = wording.QUESTION_DISTANCE - wording.REQUEST_DISTANCE
    others = [ids for ids in (identity(question[:-rest]), identity(question)) if ids]
    codes = [shown(ids, shape) for ids in others]
    found: list[str] = []
    for text in dict.fromkeys(requests):
        ids = identity(text)
        if ids and any(
            ids[1:] != other[1:] and shown(ids, shape) == code
            for other, code in zip(others, codes, strict=True)
        ):
            found.append(text)
    return found


def identity(text: str) -> list[int]:
    """The tokens that the hash at the last of a message covers; none without an opening.

    They begin with the last token of the opening, which is the same for all.
    """
    ends = [found + len(o) - 1 for o in OPENINGS if (found := text.rfind(o)) >= 0]
    return encode(text[max(ends) :])[-REACH:] if ends else []


def shown(ids: Sequence[int], shape: Shape) -> list[int]:
    """What keys show of the hash of some tokens."""
    code: Codes = sequence_code(tables().hash, ids)
    return [int(bit) for bit in code[: shape.hash_bits]]
