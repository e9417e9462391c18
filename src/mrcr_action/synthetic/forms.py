"""The form of each format: how it opens, which blocks follow and how it closes."""

from __future__ import annotations

from dataclasses import dataclass

from mrcr_action.synthetic.blocks import (
    Block,
    abroad,
    bullets,
    cheer,
    chorus,
    clue,
    code,
    dialogue,
    heading,
    ingredients,
    paragraph,
    pledge,
    quote,
    refrain,
    rule,
    sentence,
    stanza,
    steps,
    table,
    verse,
)


@dataclass(frozen=True)
class Form:
    """How a format is built: templates at both ends, blocks in between."""

    openings: tuple[str, ...]
    blocks: tuple[Block, ...]
    closings: tuple[str, ...]
    percent: int
    """Its usual size, of the mean over all formats: a riddle is shorter than an essay."""


FORMS = {
    "poem": Form(
        ("**{Adj} {Nouns}**", "# {Topic} {place}", "*for {name}, {time}*", "{Topic}!"),
        (stanza, stanza, stanza, refrain, refrain, abroad),
        (
            "and that was all the {noun} knew.",
            "— {adj}, {adj}, done.",
            "{topic}: {how}, {time}.",
            "Good night, {nouns}. 🌙",
        ),
        percent=65,
    ),
    "essay": Form(
        (
            "# {Topic}, considered {how}",
            "# {Topic} and the {adj} {noun}",
            "**Abstract.** {Remark}.",
            "# On {nouns}, {nouns} and {topic}",
        ),
        (paragraph, paragraph, paragraph, heading, quote, bullets, table),
        (
            "In conclusion, {remark}.",
            "So, {how}, ends the case for {topic}.",
            "*{Remark}*, and there it rests.",
            "What remains is a {adj} {noun}.",
        ),
        percent=145,
    ),
    "riddle": Form(
        (
            "The {being} asks {time}:",
            "**A riddle from {town}**",
            "{emoji} Guess, {name}!",
            "Neither {noun} nor {being} am I.",
        ),
        (clue, clue, clue, stanza, sentence, refrain, cheer),
        (
            "What am I? ||A {noun}, of course, {how}.||",
            "*(Answer: {topic}, {did_to} by {nouns})*",
            "Who am I, {place}?",
            "Name me and win {n} {nouns}. {emoji}",
        ),
        percent=35,
    ),
    "email": Form(
        (
            "Subject: {Topic} {place}\n\nDear {name},",
            "Subject: Re: {nouns}\n\nHello {name} and {name},",
            "Subject: {emoji} {Adj} news on {topic}\n\nHi all,",
            "To: {name}\nCc: {nouns}\n\nGood morning!",
        ),
        (paragraph, paragraph, paragraph, bullets, steps, table, quote),
        (
            "Kindly yours,  \n{Name}\n\nP.S. {Remark}.",
            "Best, {name}  \n*{being}, {town}*",
            "Thanks {how},\n\n{Name} {emoji}",
            "Until {month}!  \n— {name}",
        ),
        percent=90,
    ),
    "song": Form(
        (
            "🎵 *{Nouns} {place}* (in {n}/8, {how})",
            "# “{Topic}, {Topic}”",
            "[Intro: {noun}, {adj} {noun}]",
            "*{Name} counts in: {n}, {n}…*",
        ),
        (verse, verse, chorus, chorus, cheer, abroad),
        ("*(fade out {how})*", "[Outro: {nouns}]", "La la, {topic}… 🎶", "*{Remark}* (x{n})"),
        percent=75,
    ),
    "story": Form(
        (
            "Once, {time}, a {adj} {being} found {topic} {place}.",
            "# The {Being} of {Town}",
            "{Name} had {n} {nouns} and no {noun}.",
            "It began {time}, when {name} {did_to} a {noun}.",
        ),
        (paragraph, paragraph, paragraph, dialogue, dialogue, rule, abroad),
        (
            "And the {noun}? It {did}, {how}.",
            "**The end.** {emoji}",
            "{Name} never spoke of {topic} again.",
            "Some {nouns} say it {did} {time}.",
        ),
        percent=135,
    ),
    "blog post": Form(
        (
            "# {emoji} {n} things the {nouns} taught me about {topic}",
            "# {Topic}: a {adj} guide",
            "*Posted {time} by {name}*",
            "# I {did_to} {topic} for {n} days. It {did}. {emoji}",
        ),
        (paragraph, paragraph, heading, heading, bullets, code, table, cheer),
        (
            "Tell me below: is your {noun} {adj} too? {emoji}",
            "*Tags: {nouns}, {adj}, {noun}*",
            "Next week: {nouns} {place}!",
            "{emoji} Subscribe, or {do_to} a {noun}.",
        ),
        percent=145,
    ),
    "news article": Form(
        (
            "**{Town}, {n} {month}** — The {being} {did_to} {topic} {time}, witnesses said.",
            "# {Nouns} {did_to} {place}",
            "**BREAKING:** {topic} {did} {place}",
            "{TOWN} ({name}) – {N} {nouns} were {did_to} {time}.",
        ),
        (paragraph, paragraph, paragraph, quote, table, heading),
        (
            "*{Name} reports from {town}. The {noun} declined to comment.*",
            "The {being} could not be reached.",
            "*Corrected {time}: the {nouns} were {adj}.*",
            "More on {topic}: page {n}.",
        ),
        percent=115,
    ),
    "speech": Form(
        (
            "Friends, neighbours, {nouns} of {town}!",
            "Dear {name}, honoured {nouns},",
            "*(taps the {noun})* Good evening!",
            "{Topic}. Let me say it again, {how}: {topic}.",
        ),
        (paragraph, paragraph, pledge, refrain, dialogue, rule),
        (
            "To {topic}! To the {adj} {noun}! Thank you. {emoji}",
            "*(The {nouns} applaud {how}.)*",
            "{Town}, I am yours.",
            "And now, {nouns} for everybody!",
        ),
        percent=115,
    ),
    "recipe": Form(
        (
            "## {Adj} {noun} with {topic}\n\nServes {n} {nouns}.",
            "# {Name}'s {adj} {nouns}\n\n⏱️ {n} minutes",
            "*From {town}, {time}*",
            "**You need** {topic}, a {noun} and patience:",
        ),
        (ingredients, steps, steps, paragraph, sentence, table, code),
        (
            "Serve {place}, {time}. {emoji}",
            "Keeps until {month}.",
            "**Tip:** {remark}.",
            "Goes with {nouns}, {how}.",
        ),
        percent=95,
    ),
}
"""One form for each of `mrcr_action.synthetic.topics.FORMATS`."""
