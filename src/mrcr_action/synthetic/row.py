"""One synthetic row being built: the preamble, needles among fillers, and the question."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mrcr_action.errors import UsageError
from mrcr_action.sample import NONCE_LENGTH
from mrcr_action.synthetic.forms import FORMS
from mrcr_action.synthetic.grammar import Dice
from mrcr_action.synthetic.preamble import another, preamble
from mrcr_action.synthetic.prose import SHORTEST_FORM, aside, piece, reluctance
from mrcr_action.synthetic.scripts import SCRIPTS, Script
from mrcr_action.synthetic.topics import FORMATS, TOPICS
from mrcr_action.synthetic.turns import draw_nonce, question, request
from mrcr_action.tokens import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.synthetic.spec import SyntheticSpec

DATE_ADDED = "01-02-2026"
"""``date_added`` of every synthetic row: a fixed day, so that equal seeds give equal bytes."""

# Enters every seed: raise it when a change of the grammar or of the shape is meant, so that rows
# of two versions are never mistaken for each other by their seed alone.
_VERSION = "mrcr-synthetic-2"

# What the real set shows: characters of its preamble, and the mean of its pieces.
_PREAMBLE_CHARS = 15_000
_MEAN_CHARS = 1_800
# Of this prose. Real pieces have some 4.9; nothing depends on it but the first guess of a size.
_CHARS_PER_TOKEN = 3.8
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
# Tokens that no sentence of the grammar exceeds.
_LONG_SENTENCE = 45
# Percent of the fillers that are answered by a refusal or a question.
_RELUCTANT = 4


@dataclass
class _Pair:
    """A request and its reply."""

    kind: str
    topic: str
    reply: str


@dataclass
class Row:
    """A row being built: what it has used of the tokens it may have."""

    spec: SyntheticSpec
    used: int = field(default=0, init=False)
    seen: set[str] = field(default_factory=set, init=False)
    """Replies so far; none occurs twice, so each needle differs from all other pieces."""

    def __post_init__(self) -> None:
        spec = self.spec
        cell = (
            *(_VERSION, spec.seed, spec.n_needles, spec.bin.low, spec.bin.high),
            *(spec.hostile, spec.non_latin, spec.exact),
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
        chars = min(_PREAMBLE_CHARS, self.target * 4 // 5)
        opening = preamble(dice, self.kind, self.topic, chars=chars)
        nonce = draw_nonce(dice)
        while nonce in opening:
            nonce = draw_nonce(dice)
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
        if high not in self.spec.bin:
            high -= 1  # 4,096 belongs to the dataset's first bin, not to the one below
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

    def _size(self, kind: str, mean: int) -> int:
        """The characters of a piece: the usual ones of its format and up to 70 % more or less.

        Of the real mean that is some 160 to the longest of a piece, as in the real set.
        """
        usual = mean * FORMS[kind].percent // 100
        spread = self.dice.between(-70, 70) + self.dice.between(-70, 70)
        return usual * (200 + spread) // 200

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
                self.kind, self.topic, self._size(self.kind, mean), left // shares - asked
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
            kind, topic = another(self.dice, self.kind, self.topic)
            asked = count(request(kind, topic))
            most = self.target - self.used - asked
            reply, tokens = self._reply(kind, topic, self._size(kind, mean), most, filler=True)
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
            fillers.append(_Pair(*another(self.dice, self.kind, self.topic), reply="So"))
            self.used += count(request(fillers[0].kind, fillers[0].topic)) + 1
        last = fillers[-1]
        self.seen.discard(last.reply)
        lacking = self.target - self.used
        while lacking > _LONG_SENTENCE:
            longer = f"{last.reply} {aside(self.dice, last.kind, last.topic)}"
            lacking -= count(longer) - count(last.reply)
            last.reply = longer
        # A short word after a space is a token of its own, whatever stands before it.
        words = [self.dice.pick(_ONE_TOKEN_WORDS) for _ in range(lacking)]
        last.reply = " ".join((last.reply, *words))
        self.used = self.target - min(lacking, 0)
        self.seen.add(last.reply)

    def _reply(
        self, kind: str, topic: str, chars: int, most: int, *, filler: bool = False
    ) -> tuple[str, int]:
        """A reply not seen before and its tokens: at most ``most`` where a short line has that."""
        chars = min(chars, int(most * _CHARS_PER_TOKEN))
        while True:
            if filler and chars >= SHORTEST_FORM and self.dice.chance(_RELUCTANT):
                text = reluctance(self.dice, kind, topic)
            else:
                text = piece(
                    self.dice,
                    kind,
                    topic,
                    chars=chars,
                    hostile=self.spec.hostile,
                    script=self._script(),
                )
            tokens = count(text)
            if text not in self.seen and (tokens <= most or chars <= 0):
                self.seen.add(text)
                return text, tokens
            # Each refusal asks for less, down to a single line, which is short enough or nothing.
            chars = chars * 4 // 5 - 2 if tokens > most else chars

    def _script(self) -> Script | None:
        """One of the other scripts for the share of the pieces that is asked for."""
        return self.dice.pick(SCRIPTS) if self.dice.chance(self.spec.non_latin) else None


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
