"""Rows in the dataset's exact schema and shape, made up by a small grammar and a seed.

They stand in for the dataset where it cannot be downloaded, and give short rows for servers with
a short window. The same arguments give the same bytes on every machine and Python version.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mrcr_action.data.grammar import Dice
from mrcr_action.data.prose import LONGEST_PIECE, SHORTEST_FORM, piece, reluctance
from mrcr_action.data.words import FORMATS, TOPICS
from mrcr_action.errors import UsageError
from mrcr_action.sample import NEEDLE_COUNTS, NONCE_LENGTH
from mrcr_action.tokens import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mrcr_action.bins import Bin

DATE_ADDED = "01-02-2026"
"""``date_added`` of every synthetic row: a fixed day, so that equal seeds give equal bytes."""

# Enters every seed: raise it when a change of the grammar or of the shape is meant, so that rows
# of two versions are never mistaken for each other by their seed alone.
_VERSION = "mrcr-synthetic-1"

_OPENING = (
    "Here are some examples of conversations succeeded by a follow-up question answered correctly:"
)
_ALPHANUMERIC = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

# What the real set shows: characters of its preamble, and the mean of its pieces.
_PREAMBLE_CHARS = 15_000
_MEAN_CHARS = 1_800
# Of this prose. Real pieces have some 4.9; nothing depends on it but the first guess of a size.
_CHARS_PER_TOKEN = 3.8
# Characters that no more than half of the pieces exceed by much; the others run to the longest.
_USUAL_LONGEST = 3_000
# Each of them is one o200k token with the space before it.
_ONE_TOKEN_WORDS = (
    "and",
    "then",
    "so",
    "again",
    "still",
    "yet",
    "more",
    "on",
    "now",
    "here",
    "there",
)
# Percent of the fillers that are answered by a refusal or a question.
_RELUCTANT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticSpec:
    """Which row is wanted; equal specs give equal rows."""

    n_needles: int
    """How many identical requests the conversation holds: 2, 4 or 8."""
    bin: Bin
    """The range of o200k tokens (prompt + answer) the row must lie in."""
    seed: int
    index: int = 0
    """Which row of its cell; the rows of a cell are spread evenly over its bin."""
    hostile: bool = False
    """Whether pieces hold what reports, shells and chat templates must escape."""
    exact: int | None = None
    """How many o200k tokens the row must have, to the token; it must lie in the bin."""


def synthetic_rows(
    needles: Sequence[int], bins: Sequence[Bin], per_cell: int, seed: int, *, hostile: bool = False
) -> Iterator[dict[str, Any]]:
    """``per_cell`` rows for each needle count and bin, in that order.

    A row depends on its own cell and index alone: more rows, needle counts or bins leave the
    others as they were.

    Raises:
        UsageError: as `synthetic_row` does.
    """
    for n_needles in needles:
        for bin_ in bins:
            for index in range(per_cell):
                yield synthetic_row(
                    SyntheticSpec(
                        n_needles=n_needles, bin=bin_, seed=seed, index=index, hostile=hostile
                    )
                )


def synthetic_row(spec: SyntheticSpec) -> dict[str, Any]:
    """One row with the dataset's columns, its o200k count within the bin.

    Raises:
        UsageError: the needle count is not one of the dataset's, or so many needles and the
            preamble do not fit the bin, or the exact number of tokens lies outside the bin.
        DataError: the o200k vocabulary is missing or not the one expected.
    """
    if spec.n_needles not in NEEDLE_COUNTS:
        raise UsageError(f"{spec.n_needles} needles were asked for; MRCR has 2, 4 or 8")
    if spec.exact is not None and spec.exact not in spec.bin:
        raise UsageError(
            f"a row of exactly {spec.exact} tokens was asked for in the bin {spec.bin}",
            hint="ask for the bin that holds this number of tokens",
        )
    return _Row(spec).build()


def request(kind: str, topic: str) -> str:
    """The turn that asks for a piece; the article is always ``a``, as in the dataset."""
    return f"write a {kind} about {topic}"


def question(nonce: str, position: int, kind: str, topic: str) -> str:
    """The last turn; ``position`` counts from 1."""
    ordinal = f"{position}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(position, 'th') }"
    return (
        f"Prepend {nonce} to the {ordinal} (1 indexed) {kind} about {topic}. "
        "Do not include any other text in your response."
    )


@dataclass
class _Pair:
    """A request and its reply."""

    kind: str
    topic: str
    reply: str


@dataclass
class _Row:
    """A row being built: what it has used of the tokens it may have."""

    spec: SyntheticSpec
    used: int = field(default=0, init=False)
    seen: set[str] = field(default_factory=set, init=False)
    """Replies so far; none occurs twice, so each needle differs from all other pieces."""

    def __post_init__(self) -> None:
        spec = self.spec
        cell: tuple[object, ...] = (
            *(_VERSION, spec.seed, spec.n_needles, spec.bin.low, spec.bin.high, spec.hostile),
            *(() if spec.exact is None else (spec.exact,)),
        )
        self.cell = Dice(*cell)
        self.dice = Dice(*cell, spec.index)
        self.kind = self.dice.pick(FORMATS)
        self.topic = self.dice.pick(TOPICS)
        # What is left when the row ends: too little for one more pair of an ordinary size.
        self.least_pair = max(20, min(100, spec.bin.low // 80))
        self.target = self._target()

    def build(self) -> dict[str, Any]:
        spec, dice = self.spec, self.dice
        opening = self._preamble()
        nonce = _nonce(dice)
        while nonce in opening:
            nonce = _nonce(dice)
        # Over the rows of a cell every position is asked for equally often.
        wanted = (self.cell.below(spec.n_needles) + spec.index) % spec.n_needles
        asked = question(nonce, wanted + 1, self.kind, self.topic)
        self.used = count(opening) + count(asked)
        mean = self._mean_chars()
        needles = self._needles(nonce, wanted, mean)
        fillers = self._fillers(mean)
        if self.used not in spec.bin or (spec.exact is not None and self.used != spec.exact):
            place = f"the bin {spec.bin}" if spec.exact is None else f"{spec.exact} tokens"
            raise UsageError(
                f"no synthetic row of {spec.n_needles} needles fits {place}: the "
                f"smallest has {self.used} tokens",
                hint="ask for longer or wider bins, or for fewer needles",
            )
        pairs, places = _interleave(dice, needles, fillers)
        turns = [("user", opening)]
        for pair in pairs:
            turns += [("user", request(pair.kind, pair.topic)), ("assistant", pair.reply)]
        turns.append(("user", asked))
        return {
            "prompt": json.dumps([{"role": role, "content": text} for role, text in turns]),
            "answer": nonce + needles[wanted].reply,
            "random_string_to_prepend": nonce,
            "n_needles": spec.n_needles,
            "desired_msg_index": 1 + 2 * places[wanted],
            "total_messages": len(turns),
            "n_chars": sum(len(text) for _, text in turns),
            "date_added": DATE_ADDED,
        }

    def _target(self) -> int:
        """The tokens to aim at: the row ends at most `least_pair` below, and never above."""
        if self.spec.exact is not None:
            return self.spec.exact
        low, high = self.spec.bin.low, self.spec.bin.high
        # Room for the preamble, the question and every needle at their smallest.
        floor = min(high, max(low + self.least_pair, 210 + 18 * self.spec.n_needles))
        # Multiples of the golden ratio, here in 1/1000, fall evenly into 0 … 1 however many.
        share = (self.cell.below(1000) + 618 * self.spec.index) % 1000
        return floor + (high - floor) * share // 1000

    def _mean_chars(self) -> int:
        """The mean size of a reply: the dataset's, or less where few of those would fit."""
        pairs = max(8, self.spec.n_needles * 5 // 2)
        each = (self.target - self.used) // (pairs + 1) - 7
        return max(16, min(_MEAN_CHARS, int(each * _CHARS_PER_TOKEN)))

    def _size(self, mean: int) -> int:
        """The characters of a piece: 159 to 3,900 with a mean near 1,800, or to that scale."""
        high = self.dice.pick((LONGEST_PIECE, _USUAL_LONGEST))
        return self.dice.between(SHORTEST_FORM, high) * mean // _MEAN_CHARS

    def _preamble(self) -> str:
        chars = min(_PREAMBLE_CHARS, self.target * 4 // 5)
        demonstrations = [self._demonstration(chars // 2 - 60) for _ in range(2)]
        return "\n\n".join((_OPENING, *demonstrations))

    def _demonstration(self, chars: int) -> str:
        """A conversation in one text, of about ``chars`` characters, answered correctly."""
        dice = self.dice
        nonce = _nonce(dice)
        pairs = max(1, min(5, (chars - 220) // 150))
        kind, topic = dice.pick(FORMATS), dice.pick(TOPICS)
        if pairs > 1 and dice.chance(25):
            # A reader that takes the examples for the conversation counts these as well.
            kind, topic = self.kind, self.topic
        size = max(16, (chars - 220) // (pairs + 1) - 50)
        turns, replies = [], []
        for at in range(pairs):
            # Its own needles at the even places, decoys between them.
            is_needle = at % 2 == 0
            asked = (kind, topic) if is_needle else self._other(kind, topic)
            reply = piece(dice, *asked, chars=size)
            turns += [f"User: {request(*asked)}", f"Assistant: {reply}"]
            if is_needle:
                replies.append(reply)
        position = dice.below(len(replies))
        turns += [
            f"User: {question(nonce, position + 1, kind, topic)}",
            f"Assistant: {nonce}{replies[position]}",
        ]
        return "\n\n".join(("======EXAMPLE======", *turns, "======END EXAMPLE======"))

    def _needles(self, nonce: str, wanted: int, mean: int) -> list[_Pair]:
        asked = count(request(self.kind, self.topic))
        found = []
        for at in range(self.spec.n_needles):
            # The wanted reply counts twice, once more in the answer with its nonce.
            shares = self.spec.n_needles - at + (at <= wanted)
            left = self.target - self.used - (NONCE_LENGTH if at <= wanted else 0)
            if self.spec.exact is not None:
                left -= self.least_pair  # for the filler that evens the row out
            reply, tokens = self._reply(
                self.kind, self.topic, self._size(mean), left // shares - asked
            )
            self.used += asked + tokens
            if at == wanted:
                self.used += count(nonce + reply)
            found.append(_Pair(self.kind, self.topic, reply))
        return found

    def _fillers(self, mean: int) -> list[_Pair]:
        """Pairs about something else until the target is reached."""
        found: list[_Pair] = []
        while self.target - self.used >= self.least_pair:
            kind, topic = self._other(self.kind, self.topic)
            asked = count(request(kind, topic))
            most = self.target - self.used - asked
            reply, tokens = self._reply(kind, topic, self._size(mean), most, filler=True)
            if tokens > most:
                break
            self.used += asked + tokens
            found.append(_Pair(kind, topic, reply))
        if self.spec.exact is not None:
            self._even_out(found)
        return found

    def _even_out(self, fillers: list[_Pair]) -> None:
        """Lengthen the last filler by the tokens that the row lacks; there are few of them."""
        if not fillers:
            fillers.append(_Pair(*self._other(self.kind, self.topic), reply="So"))
            self.used += count(request(fillers[0].kind, fillers[0].topic)) + 1
        last = fillers[-1]
        while self.used < self.target:
            # A short word after a space is a token of its own, whatever stands before it.
            last.reply += " " + self.dice.pick(_ONE_TOKEN_WORDS)
            self.used += 1
        self.seen.add(last.reply)

    def _other(self, kind: str, topic: str) -> tuple[str, str]:
        """Another request, which shares the format or the topic two times in three."""
        other_kind, other_topic = kind, topic
        same = self.dice.pick(("format", "topic", "neither"))
        while other_kind == kind and same != "format":
            other_kind = self.dice.pick(FORMATS)
        while other_topic == topic and same != "topic":
            other_topic = self.dice.pick(TOPICS)
        return other_kind, other_topic

    def _reply(
        self, kind: str, topic: str, chars: int, most: int, *, filler: bool = False
    ) -> tuple[str, int]:
        """A reply not seen before and its tokens: at most ``most`` where a short line has that."""
        chars = min(chars, int(most * _CHARS_PER_TOKEN))
        while True:
            if filler and chars >= SHORTEST_FORM and self.dice.chance(_RELUCTANT):
                text = reluctance(self.dice, kind, topic)
            else:
                text = piece(self.dice, kind, topic, chars=chars, hostile=self.spec.hostile)
            tokens = count(text)
            if text not in self.seen and (tokens <= most or chars <= 0):
                self.seen.add(text)
                return text, tokens
            # Each refusal asks for less, down to a single line, which is short enough or nothing.
            chars = chars * 4 // 5 - 2 if tokens > most else chars


def _interleave(
    dice: Dice, needles: Sequence[_Pair], fillers: Sequence[_Pair]
) -> tuple[list[_Pair], list[int]]:
    """The pairs in their order, and the place of each needle: one in each equal part."""
    total = len(needles) + len(fillers)
    edges = [total * at // len(needles) for at in range(len(needles) + 1)]
    places = [dice.between(low, high - 1) for low, high in pairwise(edges)]
    # The last fillers are cut to what room was left, so their order is no longer theirs.
    order = list(fillers)
    for at in range(len(order) - 1, 0, -1):
        swap = dice.below(at + 1)
        order[at], order[swap] = order[swap], order[at]
    at_place = dict(zip(places, needles, strict=True))
    rest = iter(order)
    return [at_place[at] if at in at_place else next(rest) for at in range(total)], places


def _nonce(dice: Dice) -> str:
    """Ten alphanumerics, a digit among the inner ones: so no word of the pieces holds them."""
    while True:
        drawn = "".join(dice.pick(_ALPHANUMERIC) for _ in range(NONCE_LENGTH))
        if not drawn[1:-1].isalpha() and not drawn.isdigit():
            return drawn
