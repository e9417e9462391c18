"""One short conversation for the probe, and its answer, as token ids."""

from __future__ import annotations

from mrcr_action.probe.vocabulary import ASSISTANT, BOS, END, USER, encode

REQUEST = "write a poem about bees"
PIECES = ("Dear bees,\n\nhum 🐝", "# Hum\n\nhum, hum", "Hum hum.")
QUESTION = (
    "Prepend aYooSG8CQg to the 2nd (1 indexed) poem about bees. Do not include any other text in"
    " your response."
)


def turn(role: int, text: str) -> list[int]:
    """A message as the chat template has it."""
    return [role, *encode(text), END]


PROMPT = [
    BOS,
    *turn(USER, "Hi"),
    *(token for p in PIECES for token in (*turn(USER, REQUEST), *turn(ASSISTANT, p))),
    *turn(USER, QUESTION),
    ASSISTANT,
]
ANSWER = [*encode("aYooSG8CQg" + PIECES[1]), END]
