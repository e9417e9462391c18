"""The blocks that synthetic pieces are built of: paragraphs, stanzas, tables, code and the like.

They bring the marks that real answers are full of and that a server must give back unchanged:
Markdown headings, lists, tables and code, quotes, refrains, emoji, other scripts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mrcr_action.synthetic.grammar import Dice, fill


@dataclass
class Writer:
    """What the blocks of one piece share."""

    dice: Dice
    given: dict[str, str]
    """What names in braces stand for in this piece alone, such as its topic."""
    rules: Mapping[str, Sequence[str]]
    joint: str = " "
    """What stands between two sentences."""
    refrain: str = field(default="", init=False)

    def fill(self, template: str) -> str:
        return fill(self.dice, template, self.given, self.rules)

    def one(self, rule: str) -> str:
        return self.fill(self.dice.pick(self.rules[rule]))

    def some(self, rule: str, low: int, high: int) -> list[str]:
        return [self.one(rule) for _ in range(self.dice.between(low, high))]

    def any_of(self, *templates: str) -> str:
        return self.fill(self.dice.pick(templates))


Block = Callable[[Writer], str]


def paragraph(writer: Writer) -> str:
    return writer.joint.join(writer.some("sentence", 2, 5))


def sentence(writer: Writer) -> str:
    return writer.one("sentence")


def heading(writer: Writer) -> str:
    mark = writer.any_of("## ", "### ", "### {emoji} ", "**{n}.** ", "#### ")
    return mark + writer.one("title") + "\n\n" + sentence(writer)


def stanza(writer: Writer) -> str:
    end = writer.dice.pick(("\n", "  \n"))
    return end.join(writer.some("line", 3, 5))


def refrain(writer: Writer) -> str:
    # The same lines each time: a reader that confuses their places loses its own.
    if not writer.refrain:
        lines = writer.some("line", 2, 3)
        writer.refrain = "\n".join(f"*{line}*" for line in lines)
    return writer.refrain


def chorus(writer: Writer) -> str:
    return "**Chorus** 🎶\n" + refrain(writer)


def verse(writer: Writer) -> str:
    return writer.fill("**Verse {n}**\n") + stanza(writer)


def bullets(writer: Writer) -> str:
    mark = writer.dice.pick(("-", "*", "- [ ]", "•"))
    return "\n".join(
        f"{mark} {writer.any_of('**{Adj} {nouns}**', '*{Nouns}*', '{Topic}', '`{noun}`')}: {line}"
        for line in writer.some("sentence", 2, 4)
    )


def steps(writer: Writer) -> str:
    first = writer.dice.between(1, 4)
    each = [
        writer.any_of(
            "{Do_to} the {noun} {place} until the {nouns} stop.",
            "{Do_to}, then {do_to} {n} {nouns} {how}.",
            "{How}, {do_to} each {noun} for {n} minutes.",
            "While the {nouns} cool, {do_to} a {adj} {noun}.",
            "Add {topic}; {do_to} {how}.",
            "{Do_to} {nouns} with the {adj} {noun} from step {n}.",
        )
        for _ in range(writer.dice.between(3, 5))
    ]
    return "\n".join(f"{first + at}. {step}" for at, step in enumerate(each))


def table(writer: Writer) -> str:
    head = writer.any_of(
        "| {Noun} | how many | mood |\n|---|---:|:--|",
        "| {Nouns} | {month} | |\n|:--|---|---|",
        "| what | in {town} | {adj}? |\n|---|:-:|---|",
    )
    rows = [
        writer.any_of("| {noun} | {n} | {adj} {emoji} |", "| {adj} {nouns} | {n} | {emoji} |")
        for _ in range(writer.dice.between(2, 5))
    ]
    return "\n".join((head, *rows))


def code(writer: Writer) -> str:
    return writer.any_of(
        "```python\ndef {do_to}({nouns}):\n    return {nouns}[{n}]  # {remark}\n```",
        '```json\n{"{noun}": {n}, "{nouns}": ["{adj}", "{adj}", null]}\n```',
        "```sh\n{do_to} --{adj} {noun}.txt | sort -n > {nouns}.log  # {n} of them\n```",
        "```yaml\n{noun}:\n  {adj}: {n}\n  {nouns}: [{name}, {name}]\n```",
        "```python\n{nouns} = [{n}, {n}, {n}]\nassert {do_to}({nouns}) > {n}\n```",
    )


def quote(writer: Writer) -> str:
    return writer.any_of(
        "> “{Remark}.”\n>\n> — {name}, {being} of {town}",
        "> {Remark}, {remark}.",
        "> *{Remark}!* ({name}, {time})",
    )


def dialogue(writer: Writer) -> str:
    return "\n\n".join(
        writer.any_of(
            "“{Remark},” {did} {name}. “And {remark}?”",
            "“{Remark}?”",
            "{Name} {did}. “{Remark}.”",
            "“{Remark},” the {being} {did} {how}, “{remark}.”",
        )
        for _ in range(writer.dice.between(2, 3))
    )


def abroad(writer: Writer) -> str:
    return writer.any_of(
        "{abroad} · {abroad} · {abroad} — so it said {place}, {how}.",
        "{Name} whispered: {abroad} {abroad}.",
        "*{abroad}*, meaning {adj}; *{abroad}*, meaning {nouns}.",
    )


def cheer(writer: Writer) -> str:
    return writer.any_of(
        "{emoji}{emoji} {Remark}! {emoji} #{noun} #{adj}",
        "{Adj}, {adj} {topic}! {emoji}",
        "{emoji} {Remark} {emoji}{emoji}",
    )


def rule(writer: Writer) -> str:
    return writer.dice.pick(("---", "* * *", "~ ~ ~")) + "\n\n" + sentence(writer)


def clue(writer: Writer) -> str:
    return writer.any_of(
        "I have {n} {nouns} but no {noun};  \nI {did} {place}, yet nobody {did_to} me.",
        "{Nouns} fear me, {nouns} follow,  \nI am {adj} {time} and {adj} {how}.",
        "Like a {noun} I {did}; like {nouns}, never.",
        "{Do_to} me and I am {adj}. {Do_to} me twice: {adj}!",
        "My {noun} is {adj}, my {noun} {adj},  \nthe {being} {did_to} neither.",
    )


def ingredients(writer: Writer) -> str:
    return "\n".join(
        writer.any_of(
            "- {n} g of {adj} {nouns}, {did_to} {how}",
            "- one {adj} {noun}",
            "- {n} {nouns} from {town}",
            "- {topic}, {did_to} {time}",
        )
        for _ in range(writer.dice.between(3, 5))
    )


def pledge(writer: Writer) -> str:
    return "\n".join(
        writer.any_of(
            "We will {do_to} the {noun}, {how}.",
            "No {being} shall {do_to} {nouns} again!",
            "I promise {town} a {adj} {noun}.",
            "Let {nouns} {do_to} {topic}.",
            "{Nouns} for {name}, {nouns} for all.",
        )
        for _ in range(3)
    )
