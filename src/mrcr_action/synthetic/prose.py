"""Pieces of synthetic prose in the formats of the dataset, such as a poem about fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.synthetic.blocks import Writer, sentence
from mrcr_action.synthetic.forms import FORMS, Form
from mrcr_action.synthetic.motifs import rules_for
from mrcr_action.synthetic.words import HOSTILE

if TYPE_CHECKING:
    from mrcr_action.synthetic.grammar import Dice
    from mrcr_action.synthetic.scripts import Script

SHORTEST_FORM = 159
"""Characters below which a piece is a few lines without any form; the real set has none such."""

LONGEST_PIECE = 3890
"""Characters of the longest piece, as in the real set."""

# So many blocks in a row may prove too long for what is left before the piece is closed.
_MISSES = 4


def piece(
    dice: Dice,
    kind: str,
    topic: str,
    *,
    chars: int,
    hostile: bool = False,
    script: Script | None = None,
) -> str:
    """A piece of the format ``kind``, of at most ``chars`` characters where one line fits them.

    ``script`` writes it in another script than Latin, in as many fewer characters as that needs
    for the same text. ``hostile`` adds strings that reports, shells and chat templates must
    escape; they come on top.
    """
    writer = _writer(dice, kind, topic)
    chars = min(chars, LONGEST_PIECE)
    if chars < SHORTEST_FORM:
        parts = _lines(writer, chars)
    elif script is not None:
        foreign = Writer(dice, {"topic": topic}, script.rules, script.joint)
        parts = _formed(foreign, script.form, chars * script.percent // 100)
    else:
        parts = _formed(writer, FORMS[kind], chars)
    if hostile:
        parts.insert(dice.between(0, len(parts)), writer.fill(dice.pick(HOSTILE)))
    return "\n\n".join(parts)


def reluctance(dice: Dice, kind: str, topic: str) -> str:
    """A reply that refuses the piece or asks back instead, as some of the real ones do."""
    return _writer(dice, kind, topic).one(dice.pick(("refusal", "asking")))


def aside(dice: Dice, kind: str, topic: str) -> str:
    """One more sentence for a piece."""
    return sentence(_writer(dice, kind, topic))


def _writer(dice: Dice, kind: str, topic: str) -> Writer:
    return Writer(dice, {"topic": topic, "format": kind}, rules_for(topic))


def _lines(writer: Writer, chars: int) -> list[str]:
    text = writer.one("short")
    while len(text) <= chars:
        longer = text + " " + writer.one("short")
        if len(longer) > chars:
            break
        text = longer
    return [text]


def _formed(writer: Writer, form: Form, chars: int) -> list[str]:
    parts = [writer.any_of(*form.openings)]
    closing = writer.any_of(*form.closings)
    left = chars - len(parts[0]) - len(closing) - 2
    misses = 0
    while misses < _MISSES:
        # The first block that does not fit is followed by single sentences, which are shorter.
        block = writer.dice.pick(form.blocks) if misses == 0 else sentence
        text = block(writer)
        if len(text) + 2 > left:
            misses += 1
            continue
        parts.append(text)
        left -= len(text) + 2
    return [*parts, closing] if left >= 0 else _lines(writer, chars)
