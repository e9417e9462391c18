"""A small conversation whose every piece is unlike the others."""

from __future__ import annotations

import random

from mrcr_action.sample import Message, Sample, SampleId

NONCE = "aB3dE6gH9k"
REQUEST = "write a poem about tapirs"
_CONSONANTS, _VOWELS = "bcdfghklmnprstvz", "aeiou"


def prose(seed: int, chars: int = 400) -> str:
    """Made-up words, other ones for each seed."""
    draw = random.Random(seed)
    words: list[str] = []
    while sum(map(len, words)) + len(words) < chars + 10:
        syllables = draw.randint(1, 4)
        words.append(
            "".join(draw.choice(_CONSONANTS) + draw.choice(_VOWELS) for _ in range(syllables))
        )
    return " ".join(words)[:chars]


def sample(*, wanted: int = 2, needles: int = 4, chars: int = 400) -> Sample:
    """A row in which each needle is followed by a distractor."""
    messages = [Message("user", "Here is an example of how it goes.")]
    turns = []
    for ordinal in range(1, needles + 1):
        turns.append(len(messages))
        messages += [Message("user", REQUEST), Message("assistant", prose(ordinal, chars))]
        messages += [
            Message("user", f"write a story about lamp {ordinal}"),
            Message("assistant", prose(100 + ordinal, chars)),
        ]
    question = f"Prepend {NONCE} to the {wanted}th (1 indexed) poem about tapirs."
    messages.append(Message("user", question))
    where = turns[wanted - 1]
    return Sample(
        id=SampleId("2needle/2needle_0.parquet", 0, "0" * 64),
        messages=tuple(messages),
        answer=NONCE + messages[where + 1].content,
        nonce=NONCE,
        n_needles=needles,
        desired_msg_index=where,
        n_chars=sum(len(message.content) for message in messages),
    )
