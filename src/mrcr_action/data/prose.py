"""Pieces of synthetic prose in the dataset's formats: a poem about fields, an email about horses.

Each format has a form: how it opens, which blocks follow and how it closes. The blocks bring the
marks that real answers are full of and that a server must give back unchanged: Markdown headings,
lists, tables and code, quotes, refrains, emoji, other scripts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mrcr_action.data.grammar import Dice, fill
from mrcr_action.data.words import HOSTILE, RULES

SHORTEST_FORM = 159
"""Characters below which a piece is a few lines without any form; the real set has none such."""

LONGEST_PIECE = 3900
"""Characters of the longest piece, as in the real set."""


def piece(dice: Dice, kind: str, topic: str, *, chars: int, hostile: bool = False) -> str:
    """A piece of the format ``kind``, of at most ``chars`` characters where one line fits them.

    ``hostile`` adds strings that reports, shells and chat templates must escape; they come on top.
    """
    writer = _Writer(dice, {"topic": topic, "format": kind})
    chars = min(chars, LONGEST_PIECE)
    parts = _lines(writer, chars) if chars < SHORTEST_FORM else _formed(writer, FORMS[kind], chars)
    if hostile:
        parts.insert(dice.between(0, len(parts)), writer.fill(dice.pick(HOSTILE)))
    return "\n\n".join(parts)


def reluctance(dice: Dice, kind: str, topic: str) -> str:
    """A reply that refuses the piece or asks back instead, as some of the real ones do."""
    return _Writer(dice, {"topic": topic, "format": kind}).one(dice.pick(("refusal", "asking")))


@dataclass
class _Writer:
    """What the blocks of one piece share."""

    dice: Dice
    given: dict[str, str]
    refrain: str = field(default="", init=False)

    def fill(self, template: str) -> str:
        return fill(self.dice, template, self.given)

    def one(self, rule: str) -> str:
        return self.fill(self.dice.pick(RULES[rule]))

    def some(self, rule: str, low: int, high: int) -> list[str]:
        return [self.one(rule) for _ in range(self.dice.between(low, high))]


Block = Callable[[_Writer], str]


def paragraph(writer: _Writer) -> str:
    return " ".join(writer.some("sentence", 2, 5))


def sentence(writer: _Writer) -> str:
    return writer.one("sentence")


def heading(writer: _Writer) -> str:
    mark = writer.dice.pick(("## ", "### ", "### {emoji} ", "**{n}.** "))
    return writer.fill(mark) + writer.one("title") + "\n\n" + sentence(writer)


def stanza(writer: _Writer) -> str:
    end = writer.dice.pick(("\n", "  \n"))
    return end.join(writer.some("line", 3, 5))


def refrain(writer: _Writer) -> str:
    # The same lines each time: a reader that confuses their places loses its own.
    if not writer.refrain:
        lines = writer.some("line", 2, 3)
        writer.refrain = "\n".join(f"*{line}*" for line in lines)
    return writer.refrain


def chorus(writer: _Writer) -> str:
    return "**Chorus** 🎶\n" + refrain(writer)


def verse(writer: _Writer) -> str:
    return writer.fill("**Verse {n}**\n") + stanza(writer)


def bullets(writer: _Writer) -> str:
    mark = writer.dice.pick(("-", "*", "- [ ]", "•"))
    return "\n".join(
        f"{mark} {writer.fill('**{Adj} {nouns}**')}: {line}"
        for line in writer.some("sentence", 2, 4)
    )


def steps(writer: _Writer) -> str:
    first = writer.dice.between(1, 4)
    return "\n".join(
        writer.fill(f"{first + at}. {{Do_to}} the {{noun}} {{place}} until the {{nouns}} stop.")
        for at in range(writer.dice.between(3, 5))
    )


def table(writer: _Writer) -> str:
    rows = [
        writer.fill("| {noun} | {n} | {adj} {emoji} |") for _ in range(writer.dice.between(2, 5))
    ]
    return "\n".join((writer.fill("| {Noun} | how many | mood |"), "|---|---:|:--|", *rows))


def code(writer: _Writer) -> str:
    return writer.fill(
        writer.dice.pick(
            (
                "```python\ndef {do_to}({nouns}):\n    return {nouns}[{n}]  # {remark}\n```",
                '```json\n{"{noun}": {n}, "{nouns}": ["{adj}", "{adj}", null]}\n```',
                "```sh\n{do_to} --{adj} {noun}.txt | sort -n > {nouns}.log  # {n} of them\n```",
            )
        )
    )


def quote(writer: _Writer) -> str:
    return writer.fill("> “{Remark}.”\n>\n> — {name}, {being} of {town}")


def dialogue(writer: _Writer) -> str:
    return "\n\n".join(
        writer.fill("“{Remark},” {did} {name}. “And {remark}?”")
        for _ in range(writer.dice.between(2, 3))
    )


def abroad(writer: _Writer) -> str:
    return writer.fill("{abroad} · {abroad} · {abroad} — so it said {place}, {how}.")


def cheer(writer: _Writer) -> str:
    return writer.fill("{emoji}{emoji} {Remark}! {emoji} #{noun} #{adj}")


def rule(writer: _Writer) -> str:
    return writer.dice.pick(("---", "* * *", "~ ~ ~")) + "\n\n" + sentence(writer)


def clue(writer: _Writer) -> str:
    return writer.fill(
        "I have {n} {nouns} but no {noun};  \nI {did} {place}, yet nobody {did_to} me."
    )


def ingredients(writer: _Writer) -> str:
    return "\n".join(
        writer.fill("- {n} g of {adj} {nouns}, {did_to} {how}")
        for _ in range(writer.dice.between(3, 5))
    )


def pledge(writer: _Writer) -> str:
    return "\n".join(writer.fill("We will {do_to} the {noun}, {how}.") for _ in range(3))


@dataclass(frozen=True)
class Form:
    """How a format is built: templates at both ends, blocks in between."""

    opening: str
    blocks: tuple[Block, ...]
    closing: str


FORMS = {
    "poem": Form(
        "**{Adj} {Nouns}**",
        (stanza, stanza, stanza, refrain, refrain, abroad),
        "and that was all the {noun} knew.",
    ),
    "essay": Form(
        "# {Topic}, considered {how}",
        (paragraph, paragraph, paragraph, heading, quote, bullets, table),
        "In conclusion, {remark}.",
    ),
    "riddle": Form(
        "The {being} asks {time}:",
        (clue, clue, stanza, sentence, refrain, cheer),
        "What am I? ||A {noun}, of course, {how}.||",
    ),
    "email": Form(
        "Subject: {Topic} {place}\n\nDear {name},",
        (paragraph, paragraph, paragraph, bullets, steps, table, quote),
        "Kindly yours,  \n{Name}\n\nP.S. {Remark}.",
    ),
    "song": Form(
        "🎵 *{Nouns} {place}* (in {n}/8, {how})",
        (verse, verse, chorus, chorus, cheer, abroad),
        "*(fade out {how})*",
    ),
    "story": Form(
        "Once, {time}, a {adj} {being} found {topic} {place}.",
        (paragraph, paragraph, paragraph, dialogue, dialogue, rule, abroad),
        "And the {noun}? It {did}, {how}.",
    ),
    "blog post": Form(
        "# {emoji} {n} things the {nouns} taught me about {topic}",
        (paragraph, paragraph, heading, heading, bullets, code, table, cheer),
        "Tell me below: is your {noun} {adj} too? {emoji}",
    ),
    "news article": Form(
        "**{Town}, {n} {month}** — The {being} {did_to} {topic} {time}, witnesses said.",
        (paragraph, paragraph, paragraph, quote, table, heading),
        "*{Name} reports from {town}. The {noun} declined to comment.*",
    ),
    "speech": Form(
        "Friends, neighbours, {nouns} of {town}!",
        (paragraph, paragraph, pledge, refrain, dialogue, rule),
        "To {topic}! To the {adj} {noun}! Thank you. {emoji}",
    ),
    "recipe": Form(
        "## {Adj} {noun} with {topic}\n\nServes {n} {nouns}.",
        (ingredients, steps, steps, paragraph, sentence, table, code),
        "Serve {place}, {time}. {emoji}",
    ),
}
"""One form for each of `mrcr_action.data.words.FORMATS`."""

# So many blocks in a row may prove too long for what is left before the piece is closed.
_MISSES = 4


def _lines(writer: _Writer, chars: int) -> list[str]:
    text = writer.one("short")
    while len(text) <= chars:
        longer = text + " " + writer.one("short")
        if len(longer) > chars:
            break
        text = longer
    return [text]


def _formed(writer: _Writer, form: Form, chars: int) -> list[str]:
    parts = [writer.fill(form.opening)]
    closing = writer.fill(form.closing)
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
