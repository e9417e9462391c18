"""The answer that an MRCR conversation asks for, found by parsing the conversation."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrcr_action.standin.draws import draw
from mrcr_action.standin.tokens import message_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

_QUESTION = re.compile(
    r"Prepend (?P<nonce>\S+) to the (?P<ordinal>\d+)(?:st|nd|rd|th) \(1 indexed\) "
    r"(?P<format>.+?) about (?P<topic>.+)\. "
    r"Do not include any other text in your response\.",
    re.DOTALL,
)
_REQUEST = re.compile(r"[Ww]rite an? (?P<wanted>.+)", re.DOTALL)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_GREETING = "Hello! I am a stand-in, not a model: I can only answer the questions of MRCR."


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the conversation."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Question:
    """What the last user turn asks for."""

    nonce: str
    ordinal: int
    """Which of the identical requests is meant, from 1."""
    format: str
    topic: str

    @property
    def wanted(self) -> str:
        """What stands after ``write a`` in the requests that are meant."""
        return f"{self.format} about {self.topic}"


@dataclass(frozen=True, slots=True)
class Needle:
    """A request and its reply."""

    index: int
    """Which turn of the conversation the request is, from 0; the reply is the next."""
    reply: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply in its two parts: ``nonce + text``."""

    nonce: str
    text: str


def parse_question(content: str) -> Question | None:
    """Read ``Prepend {nonce} to the {k}th (1 indexed) {format} about {topic}. …``, or None."""
    match = _QUESTION.fullmatch(content.strip())
    if match is None:
        return None
    return Question(match["nonce"], int(match["ordinal"]), match["format"], match["topic"])


def asked_question(turns: Sequence[Turn]) -> Question | None:
    """The question of MRCR that the last user turn asks, or None for other talk."""
    last = max((i for i, turn in enumerate(turns) if turn.role == "user"), default=-1)
    return parse_question(turns[last].content) if last >= 0 else None


def find_needles(turns: Sequence[Turn], wanted: str) -> tuple[Needle, ...]:
    """All pairs of turns whose request is ``write a {wanted}`` and nothing else, in order.

    The preamble of a conversation shows other conversations; its requests are decoys. They are
    never found, as they are no turns of their own. Only the first turn may hold a request below
    other text: some templates want the preamble and the first request in one turn.
    """
    found = []
    for index, (turn, reply) in enumerate(itertools.pairwise(turns)):
        if turn.role != "user" or reply.role != "assistant":
            continue
        request = turn.content.strip()
        match = _REQUEST.fullmatch(request if index else request.rpartition("\n\n")[2])
        if match and match["wanted"] == wanted:
            found.append(Needle(index, reply.content))
    return tuple(found)


def read(
    turns: Sequence[Turn],
    *,
    window: int | None = None,
    wrong_needle: bool = False,
    distractor: bool = False,
) -> Answer:
    """Answer the question that the last user turn asks, as well as the faults let it.

    A conversation that does not end in an MRCR question gets a greeting without a nonce.

    Args:
        turns: the whole conversation.
        window: how many tokens before the question can be seen; None for all of them. A wanted
            needle that is not wholly inside is mistaken for the visible one of the same number,
            or else for made-up text.
        wrong_needle: answer with another of the identical requests, the next one around.
        distractor: answer with the first reply to any other request.
    """
    question = asked_question(turns)
    if question is None:
        return Answer("", _GREETING)
    last = max(i for i, turn in enumerate(turns) if turn.role == "user")
    haystack = turns[:last]
    needles = find_needles(haystack, question.wanted)
    position = question.ordinal - 1
    if distractor:
        known = {needle.index + 1 for needle in needles}
        others = (
            turn.content
            for index, turn in enumerate(haystack)
            if turn.role == "assistant" and index not in known
        )
        return Answer(question.nonce, next(others, _made_up(question)))
    if wrong_needle:
        if len(needles) < 2:  # noqa: PLR2004 - there is no other one
            return Answer(question.nonce, _made_up(question))
        position = (position + 1) % len(needles)
    start = 0 if window is None else _first_visible(haystack, window)
    visible = [needle for needle in needles if needle.index >= start]
    if 0 <= position < len(needles) and needles[position] in visible:
        return Answer(question.nonce, needles[position].reply)
    if 0 <= position < len(visible):
        return Answer(question.nonce, visible[position].reply)
    return Answer(question.nonce, _made_up(question))


def garble(text: str) -> str:
    """Replace about every seventh letter or digit by another, the same way each time."""
    garbled = list(text)
    spots = [i for i, character in enumerate(text) if character.isalnum()]
    for nth, spot in enumerate(spots[3::7]):
        substitute = "qzxjkvw"[nth % 7]
        garbled[spot] = substitute if text[spot] != substitute else "y"
    return "".join(garbled)


def edit(text: str, *, places: int, seed: str) -> str:
    """Replace up to so many characters, by letters that were not there, as the seed draws them."""
    edited = list(text)
    for nth in range(places if text else 0):
        spot = int(draw(f"{seed}/place/{nth}") * len(text))
        letters = _LETTERS.replace(text[spot], "")
        edited[spot] = letters[int(draw(f"{seed}/letter/{nth}") * len(letters))]
    return "".join(edited)


def _first_visible(turns: Sequence[Turn], window: int) -> int:
    left = window
    for index in range(len(turns) - 1, -1, -1):
        left -= message_tokens(turns[index].content)
        if left < 0:
            return index + 1
    return 0


def _made_up(question: Question) -> str:
    """Text such as a model writes that has lost the place: on the topic, in no turn."""
    what, topic = question.format, question.topic
    return (
        f"Here is a {what} about {topic}.\n\n"
        f"There is more to say about {topic} than one {what} can hold. Some remember it from "
        "childhood, others meet it late, and most pass it by on an ordinary day without a "
        f"second look. Yet whoever stays with {topic} for a while finds a quiet order in it, "
        "a patience that asks for nothing and gives back more than it was given.\n\n"
        f"So let this {what} end where it began, a little wiser about {topic}."
    )
