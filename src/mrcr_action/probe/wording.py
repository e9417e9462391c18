"""The fixed phrases of an MRCR conversation; everything between them may be any text.

A conversation is rendered as::

    <|bos|><|user|>PREAMBLE<|end|>
    <|user|>write a poem about fields<|end|><|assistant|>PIECE<|end|>      (many of these)
    <|user|>Prepend NONCE to the 2nd (1 indexed) poem about fields. Do not …<|end|><|assistant|>

and answered with ``NONCE PIECE <|end|>``. What follows ``write a `` and ``(1 indexed) `` is the
*identity* of a request and of the question: they are equal exactly where the question asks for
one of those requests.
"""

from __future__ import annotations

from mrcr_action.probe.vocabulary import ASSISTANT, END, encode
from mrcr_action.sample import NONCE_LENGTH

PHRASE = 8
"""Tokens that a phrase has; the first layers give each run of so many tokens a code."""

REQUEST_OPENINGS = ("write a ", "Write a ", "rite an ")
"""A request's identity starts after one of these."""
NONCE_OPENING = "Prepend "
"""The nonce starts after this."""
QUESTION_OPENING = "ndexed) "
"""The question's identity starts after this, the end of ``(1 indexed) ``."""
QUESTION_ENDING = ". Do not include any other text in your response."
"""The question's identity ends before this."""

REQUEST_DISTANCE = len((END, ASSISTANT))
"""Tokens from an ``<|assistant|>`` back to the last byte of its request's identity."""
QUESTION_DISTANCE = len((*encode(QUESTION_ENDING), END, ASSISTANT))
"""Tokens from the last ``<|assistant|>`` back to the last byte of the question's identity."""
ORDINAL_DISTANCE = len(encode("2nd (1 indexed) ")) - 1
"""Tokens from the end of the question's opening back to the digit of its ordinal."""
COPY_DISTANCE = NONCE_LENGTH - 1
"""How far a piece's byte lies behind the offset at which the answer needs it.

The answer's token at offset n after its ``<|assistant|>`` is predicted one token earlier and
sits behind the nonce, so it is the piece's token at offset n − 9 after *its* ``<|assistant|>``.
"""

ORDINALS = 8
"""Largest ordinal, from 1; MRCR has at most 8 needles."""
IDENTITY_STEPS = (1, 2, 4, 8, 16, 32)
"""Distances by which the hash of an identity doubles its reach: at most 63 bytes in all."""
