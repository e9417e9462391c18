"""Rows for the probe, of which a token is a byte: 0.3K to 8K tokens, or longer ones.

They have the dataset's columns and order of turns, hardly a preamble, and needles of a line or two:
a CPU takes long for every token of an answer. What the probe cannot read (docs/probe.md) is not in
them.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from mrcr_action.synthetic import question, request
from mrcr_action.synthetic.grammar import Dice
from mrcr_action.synthetic.prose import piece
from mrcr_action.synthetic.topics import FORMATS, TOPICS
from mrcr_action.synthetic.turns import draw_nonce

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZES = (
    *(300, 2200, 4300, 800, 2400, 4700, 650, 2600),
    *(5200, 1100, 2300, 7700, 1400, 2900, 4400, 1700),
)
"""Bytes of the conversation, or what its needles take; such that each bin of lengths has some."""

USUAL_LONGEST = 8192
"""Tokens up to which rows are made where nothing else is asked for."""

PARTS = (5, 6, 7, 8)
"""Of each doubling beyond that: lengths in eighths of its end."""

NEEDLES = (24, 72)
"""Bytes of a needle, least and most; a single sentence may be longer."""

FILLERS = (60, 200)
"""Bytes of any other piece."""

MOST_ALIKE = 8
"""Equal requests in a row: the probe reads more of them, of which it can be asked for so many."""

_PAIR = 4
"""Tokens that the chat template adds to a request and its reply."""

_QUESTION = 140
"""Tokens, about, of all the rest."""


def rows(
    longest: int = USUAL_LONGEST, *, name: str = "probe", fillers: tuple[int, int] = FILLERS
) -> Iterator[dict[str, Any]]:
    """As many of each needle count as there are sizes.

    Args:
        longest: tokens that a prompt has at most, about.
        name: of the set; another one has other text.
        fillers: bytes of a piece that is no needle, least and most.
    """
    for n_needles in (2, 4, 8):
        for index, size in enumerate(sizes(longest)):
            yield row(Dice(name, n_needles, index), n_needles, size, index % n_needles, fillers)


def sizes(longest: int) -> list[int]:
    """Bytes of the rows, up to a length."""
    found = [size for size in SIZES if size <= longest]
    end = 2 * USUAL_LONGEST
    while end <= longest:
        found += [end * part // 8 - _QUESTION for part in PARTS]
        end *= 2
    return found


def row(
    dice: Dice, n_needles: int, size: int, wanted: int, sizes_of_fillers: tuple[int, int]
) -> dict[str, Any]:
    """One row.

    Args:
        dice: decide the text.
        n_needles: identical requests.
        size: bytes of the conversation, about.
        wanted: which of the needles is asked for, from 0.
        sizes_of_fillers: bytes of the other pieces, least and most.
    """
    asked = (dice.pick(FORMATS), dice.pick(TOPICS))
    least, most = sizes_of_fillers
    pairs: list[tuple[str, str, str]] = []
    while len(pairs) < n_needles:
        needle = (*asked, _piece(dice, *asked, NEEDLES))
        if needle not in pairs:
            pairs.append(needle)
    fillers: list[tuple[str, str, str]] = []
    told: Counter[tuple[str, str]] = Counter()
    while (left := size - _size([*pairs, *fillers])) > least:
        # They differ from what is asked for in one word only.
        kind, topic = dice.pick(FORMATS), dice.pick(TOPICS)
        other = (kind, asked[1]) if dice.chance(50) else (asked[0], topic)
        if other != asked and told[other] < MOST_ALIKE:
            told[other] += 1
            fillers.append((*other, _piece(dice, *other, (least, min(most, left)))))
    places = sorted(_sample(dice, len(pairs) + len(fillers), n_needles))
    rest = iter(fillers)
    needles = dict(zip(places, pairs, strict=True))
    turns = [needles.get(at) or next(rest) for at in range(len(pairs) + len(fillers))]
    nonce = draw_nonce(dice)
    messages = [{"role": "user", "content": "Hello."}]
    for kind, topic, text in turns:
        messages += [
            {"role": "user", "content": request(kind, topic)},
            {"role": "assistant", "content": text},
        ]
    messages.append({"role": "user", "content": question(nonce, wanted + 1, *asked)})
    return {
        "prompt": json.dumps(messages),
        "answer": nonce + pairs[wanted][2],
        "random_string_to_prepend": nonce,
        "n_needles": n_needles,
        "desired_msg_index": 1 + 2 * places[wanted],
        "total_messages": len(messages),
        "n_chars": sum(len(message["content"]) for message in messages),
        "date_added": "11-30-2026",
    }


def _piece(dice: Dice, kind: str, topic: str, sizes: tuple[int, int]) -> str:
    return piece(dice, kind, topic, chars=dice.between(*sizes))


def _size(pairs: list[tuple[str, str, str]]) -> int:
    return (
        sum(len(request(kind, topic)) + len(text) + _PAIR for kind, topic, text in pairs)
        + _QUESTION
    )


def _sample(dice: Dice, total: int, wanted: int) -> list[int]:
    left = list(range(total))
    return [left.pop(dice.below(len(left))) for _ in range(wanted)]
