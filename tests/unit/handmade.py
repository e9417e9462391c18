"""Rows made by hand: of exactly so many tokens, in no time, to whatever length is wanted."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from mrcr_action import tokens
from mrcr_action.data.writer import write_parquet

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from mrcr_action.sample import Message

WORDS = (" lamp", " river", " stone", " in", " window", " paper")
"""One o200k token each, of different lengths, so that rows differ in characters per token."""


def row(n_needles: int, number: int, size: int, *, word: str = WORDS[0]) -> dict[str, Any]:
    """A row of exactly ``size`` o200k tokens, prompt and answer, with every invariant kept.

    Args:
        n_needles: identical requests.
        number: told by the nonce, see `number_of`.
        size: at least some 40 tokens, and 20 more a needle.
        word: one of `WORDS`, which fills the row.
    """
    nonce = f"{n_needles:02}{number:08}"
    filler = size - _size(_turns(n_needles, nonce, 0, word), nonce)
    assert filler >= 0, f"{size} tokens are too few for {n_needles} needles"
    turns = _turns(n_needles, nonce, filler, word)
    return {
        "prompt": json.dumps(turns),
        "answer": nonce + turns[2]["content"],
        "random_string_to_prepend": nonce,
        "n_needles": n_needles,
        "desired_msg_index": 1,
        "total_messages": len(turns),
        "n_chars": sum(len(turn["content"]) for turn in turns),
        "date_added": "12-01-2025",
    }


def number_of(messages: Iterable[Message]) -> tuple[int, int]:
    """Needle count and number of the row that a conversation belongs to; zeros for others."""
    nonce = list(messages)[-1].content.split()[1]
    return (int(nonce[:2]), int(nonce[2:])) if nonce.isdecimal() else (0, 0)


def write_rows(folder: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """Write a dataset of these rows; those of a needle count go to its two shards in turn."""
    write_parquet(rows, folder)
    return folder


def _turns(n_needles: int, nonce: str, filler: int, word: str) -> list[dict[str, str]]:
    turns = [{"role": "user", "content": "Examples:" + word * filler}]
    for _ in range(n_needles):
        turns.append({"role": "user", "content": "write a poem about lamps"})
        turns.append({"role": "assistant", "content": "A lamp is lit; the night is long."})
    question = f"Prepend {nonce} to the 1st (1 indexed) poem about lamps."
    return [*turns, {"role": "user", "content": question}]


def _size(turns: list[dict[str, str]], nonce: str) -> int:
    texts = [*(turn["content"] for turn in turns), nonce + turns[2]["content"]]
    return sum(map(_count, texts))


@cache
def _count(text: str) -> int:
    return tokens.count(text)
