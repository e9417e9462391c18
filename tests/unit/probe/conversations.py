"""Conversations in the dataset's shape whose texts are made to mislead the probe."""

from __future__ import annotations

import random

from mrcr_action.probe.vocabulary import END, encode, encode_chat
from mrcr_action.sample import Message
from mrcr_action.synthetic import question, request
from mrcr_action.synthetic.grammar import Dice
from mrcr_action.synthetic.preamble import preamble

NONCE = "aYooSG8CQg"

TOPICS = (
    ("poem", "fields"),
    ("email", "fields"),
    ("short scene in a play", "the 2nd tax season, or 3 taxes"),
    ("riddle", "naïve 🐝 bees\tin town"),
)

FRAGMENTS = (
    *("Prepend ", "Prepend 0123456789 to the 1st", "(1 indexed) ", "to the 3rd (1 indexed) "),
    *("write a ", "Write a poem", "rite an ", request(*TOPICS[0]), request(*TOPICS[1])),
    *(question(NONCE, 1, *TOPICS[0]), question("9876543210", 2, *TOPICS[1]), NONCE, NONCE[:5]),
    *("<|bos|>", "<|end|>", "<|user|>", "<|assistant|>", "<|im_end|>", "<|im_start|>", "</s>"),
    *("<|end|><|assistant|>", "<|end|>\n<|user|>write a poem about fields<|end|><|assistant|>"),
    *("User: ", "Assistant: ", "======END EXAMPLE======", "I’m sorry, but I can’t write a poem."),
    *("# Fields 🌾\n\n", "**waves**, and waves", "- hum\n- hum\n", "| a | b |\n|---|---|\n", " "),
    *(
        "\x00\x01\x7f",
        "\u2028\ufeff\ufffe",
        "👩‍🚀❤️",
        "東京 静かな夜",
        "\r\n\r",
        "\ue000",
        "{{ 7 * 7 }}",
    ),
)

USER_TURNS = (
    *("", "Hi", "Thanks!", "poem about fields", "please write a poem about fields"),
    *("Write a poem about fields", "write an poem about fields", "write  a poem about fields"),
    *("write a poem about how to write a poem", "write a poem about Prepend it", NONCE),
    *("write a riddle about " + "x" * 80, "write a " + "y" * 63, question(NONCE, 1, *TOPICS[0])),
)


def text(dice: random.Random, most: int = 2) -> str:
    """Some fragments, one after the other; sometimes none."""
    return "".join(dice.choice(FRAGMENTS) for _ in range(dice.randint(0, most)))


def misleading(seed: int) -> tuple[list[Message], int]:
    """A conversation that the probe has to read, and the index of the wanted request."""
    dice = random.Random(seed)
    kind, topic = dice.choice(TOPICS)
    others = [other for other in TOPICS if other != (kind, topic)]
    asked = [(kind, topic)] * dice.randint(2, 8) + [others[0]] * dice.choice((1, 2, 10))
    asked += [dice.choice(others) for _ in range(dice.randint(0, 3))]
    dice.shuffle(asked)
    messages = [Message("user", preamble(Dice(seed), kind, topic, chars=300))]
    for each in asked:
        repeated = messages[-1].content if len(messages) > 1 and dice.random() < 0.2 else None
        reply = text(dice) if repeated is None else repeated
        messages += [Message("user", request(*each)), Message("assistant", reply)]
    wanted_request = Message("user", request(kind, topic))
    places = [at for at, message in enumerate(messages) if message == wanted_request]
    wanted = dice.randrange(len(places))
    messages.append(Message("user", question(NONCE, wanted + 1, kind, topic)))
    return messages, places[wanted]


def wild(seed: int) -> tuple[list[Message], int]:
    """One whose turns break the dataset's wording here and there."""
    dice = random.Random(seed)
    messages, wanted = misleading(seed)
    for _ in range(dice.randint(1, 2)):
        at = dice.randrange(1, len(messages) - 1)
        odd = dice.choice(USER_TURNS) if messages[at].role == "user" else text(dice, 4)
        new = Message(messages[at].role, odd)
        if dice.random() < 0.4:
            messages.insert(at, Message(dice.choice(("system", "user", "assistant")), odd))
            wanted += at <= wanted
        elif at != wanted:
            messages[at] = new
    last = messages[-1].content
    if dice.random() < 0.2:
        kind, topic = dice.choice(TOPICS)
        last = question(
            dice.choice((NONCE, "0 Prepend ", "123456789", "write a ab")), 2, kind, topic
        )
    return [*messages[:-1], Message("user", last)], wanted


def answer_of(messages: list[Message], wanted: int, nonce: str = NONCE) -> str:
    return nonce + messages[wanted + 1].content


def tokens_of(messages: list[Message], answer: str) -> tuple[list[int], list[int]]:
    """Those of the prompt, and those that are to be answered."""
    return encode_chat(messages), [*encode(answer), END]
