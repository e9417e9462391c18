"""What is known of one response: its form, and what that was seen by. A part of every record."""

from __future__ import annotations

from typing import Literal

import msgspec

Form = Literal[
    "exact",
    "near copy",
    "wrong needle",
    "distractor",
    "no nonce",
    "other nonce",
    "nonce not first",
    "truncated",
    "stopped early",
    "ran on",
    "garbled",
    "degenerate",
    "refusal",
    "empty",
    "cut",
    "unrelated",
    "rejected",
    "failed",
]
"""What a response is (docs/diagnosis.md).

exact: the answer. near copy: it, with edits. wrong needle: the reply to another of the identical
requests. distractor: another piece of the conversation. no nonce, other nonce, nonce not first: the
wanted text or nearly, and only its beginning is at fault. truncated: cut at max_tokens. stopped
early: it ended by itself within the answer. ran on: the answer, and more. garbled: right up to some
character, unrelated from there on. degenerate: one piece over and over, or no text. refusal: it
declines. empty: nothing. cut: ended here, by ``cut_without_nonce``. unrelated: none of these.
rejected, failed: there is no response.
"""

LOST: frozenset[Form] = frozenset({"rejected", "failed"})
"""Forms without a response."""

Nonce = Literal["first", "absent", "other", "later"]
"""Where the nonce is: in front, nowhere, another one in its place, or behind other text."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A character of the prompt."""

    turn: int
    """Message of the row, by its index from 0."""
    char: int
    """Character of it, from 0."""
    token: int | None = None
    """About which token of the prompt it is in, from 0, by its share of the characters; None where
    nobody counted the prompt."""


class Floor(msgspec.Struct, frozen=True, kw_only=True):
    """What a sample would score by replying with any of its needles, at random.

    The mean over all of them, the wanted one among them, each behind the right nonce.
    """

    openai: float
    vllm: float

    def of(self, protocol: str) -> float:
        """The one of a protocol."""
        return self.openai if protocol == "openai" else self.vllm


Speaker = Literal["s", "u", "a", "m"]
"""Who says something: system, user, assistant, or more than one of them."""


class Piece(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A turn of a conversation, or several in a row, without its words; a list in JSON."""

    speaker: Speaker
    chars: int
    """Length of its contents."""
    turns: int = 1
    needle: int | None = None
    """Which of the identical requests it replies to, from 1; None for other turns."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The needle that was asked for."""

    ordinal: int
    """Which of the identical requests it replies to, from 1."""
    of: int
    """How many of these there are."""
    turn: int
    """Message of the row that it is, by its index from 0."""
    depth: float
    """Share of the conversation's characters before it, 0 to 1."""
    token: int | None = None
    """About where it begins, in tokens of the prompt."""
    distance: int | None = None
    """About how many tokens lie from its beginning to the end of the prompt."""
    floor: Floor | None = None
    """What the sample would score without telling its needles apart; None for a lost request, for
    very long needles, and in documents of before there was one."""

    @property
    def tenth(self) -> int:
        """The tenth of the conversation that it begins in, from 0 to 9."""
        return min(9, int(self.depth * 10))


class FirstWrong(msgspec.Struct, frozen=True, kw_only=True):
    """The first character that is not the answer's, or that is missing."""

    offset: int
    """Characters of the answer, nonce included, that are right before it."""
    place: Place | None = None
    """Where it would have been copied from; None behind the end of the answer."""


class Likeness(msgspec.Struct, frozen=True, kw_only=True):
    """How much a response is like one of the needles."""

    ordinal: int
    """Which one, from 1."""
    ratio: float
    """``SequenceMatcher`` without its junk heuristic, 0 to 1, over the first 8,192 characters."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The piece of the conversation that came back instead."""

    turn: int
    """Message of the row, by its index from 0."""
    ordinal: int | None = None
    """Which needle it is, from 1; None for no needle."""
    ratio: float
    """As in `Likeness`, of the response, or of its unrelated end, to the message."""
    share: float | None = None
    """About how much of that stands in the message word for word; None where the ratio was enough
    to tell."""


class Repeat(msgspec.Struct, frozen=True, kw_only=True):
    """What a response says over and over, up to its end."""

    text: str
    """Once, its first 40 characters."""
    period: int
    """Its length in characters."""
    times: int
    offset: int
    """Character of the response at which it begins."""


class Excerpt(msgspec.Struct, frozen=True, kw_only=True):
    """Both texts around the first wrong character; foreign text, never to be shown as it is."""

    offset: int
    """Character at which both begin, from 0."""
    wanted: str
    returned: str


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a response is, with the evidence for it."""

    form: Form
    wanted: Wanted | None = None
    """None where the sample was never read."""
    nonce: Nonce = "first"
    lead: int = 0
    """Characters before the nonce, or before the text where the nonce is absent."""
    first_wrong: FirstWrong | None = None
    """None for an exact response, and for none."""
    edits: int | None = None
    """Characters that were inserted, deleted or replaced (Levenshtein's distance) in the text
    behind the nonce, of a copy of the wanted text; None for others and for too many to count."""
    ratio: float | None = None
    """How much that text is like the wanted one, as in `Likeness`; None where it was not compared.
    """
    siblings: tuple[Likeness, ...] = ()
    """The same for the other needles, in their order."""
    source: Source | None = None
    repeat: Repeat | None = None
    strange: float = 0.0
    """Share of characters that are no text: controls and U+FFFD, which stands for broken UTF-8."""
    excerpt: Excerpt | None = None
