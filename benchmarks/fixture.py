# ruff: noqa: INP001, S311, PLR2004, SIM905 - a script, not a package; its texts are no secrets
"""Writes shards like those of openai/mrcr, for measuring: sizes, layout and texture are theirs.

A shard has 400 rows with some 390 MB of prompts, in ONE row group, as pandas and pyarrow write it
by default. Every row keeps the dataset's invariants, so that the project's own code reads it. Each
shard holds all eight bins, in blocks (in the real files, a shard holds four bins, a hundred rows of
each). Texts are poems, posts and stories of 159 to 3,890 characters out of the commoner words of
o200k's vocabulary: a token has as many characters as in the real ones (4.9), and snappy makes as
much of them (264 MB of a shard; a real one has 266.5 MB, all six 1.4 GB of 2.3). They are drawn
from a pool far larger than the 64 KB in which snappy looks for repetitions.

``.venv/bin/python benchmarks/fixture.py FOLDER`` writes what is not there yet.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import string
import sys
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrcr_action.bins import BINS, Bin
from mrcr_action.tokens import count, read_vocabulary, vocabulary_path

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARDS = tuple(f"{n}needle/{n}needle_{part}.parquet" for part in range(2) for n in (2, 4, 8))
"""In the order in which they are written when fewer than six are asked for."""

KINDS = ("poem", "essay", "riddle", "email", "song", "story", "blog post", "news article", "speech")
BLOCKS = (5, 2, 6, 3, 0, 1, 4, 7)
"""Bins in the order of their blocks: those of the real first shard, then those of the second."""

POOL = 4_000
"""Different pieces: 7 MB, a hundred times the 64 KB in which snappy looks for repetitions."""

VERSION = 1
"""Raised when shards written before are no longer good enough."""

LEXICON = 8_000
FLAT = 5.0
STEEP = 1.0

_EMOJI = ("🌾", "✨", "🐎", "🌙", "🎉", "🚀", "❤️", "🍂")
_WORD = re.compile(rb" [a-z]{4,11}")
_COMMON = (
    "the of and to a in that is was it for with as on his by at from but not or which an are they"
    " their her its were be this had have one we all there who"
).split()


def fixture(
    folder: Path, *, shards: int = 1, rows: int = 400, seed: int = 1, scale: float = 1.0
) -> list[Path]:
    """See that shards lie in a folder, and return their paths.

    Args:
        folder: where; made if need be. Shards of the same arguments that are there are kept.
        shards: how many of the six.
        rows: of each shard; a multiple of 8 has the same number in each bin.
        seed: another one gives other texts.
        scale: of the rows' lengths; at less than 1 the bins are no longer the dataset's.
    """
    wanted = {"version": VERSION, "rows": rows, "seed": seed, "scale": scale}
    paths = []
    texts: Texts | None = None
    for shard in SHARDS[:shards]:
        path = folder / shard
        paths.append(path)
        made = path.with_suffix(".made.json")
        if path.is_file() and made.is_file() and json.loads(made.read_text()) == wanted:
            continue
        texts = texts or Texts(seed)
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, list(_rows(texts, shard, rows, seed, scale)))
        made.write_text(json.dumps(wanted))
    return paths


@dataclass(frozen=True)
class Piece:
    """A reply."""

    text: str
    json: str


class Texts:
    """The pool of pieces, and requests for them."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(f"texts/{seed}")
        # A vocabulary of byte pairs is sorted by frequency, more or less.
        words = [w[1:].decode() for w in read_vocabulary(vocabulary_path()) if _WORD.fullmatch(w)]
        self._words = _COMMON + [w for w in words if w not in _COMMON][:LEXICON]
        self._weights = list(accumulate(1 / (at + FLAT) ** STEEP for at in range(len(self._words))))
        self.topics = self._words[200:638]
        self.pieces: list[Piece] = []
        seen = set()
        while len(self.pieces) < POOL:
            text = self._piece()
            if text not in seen:
                seen.add(text)
                self.pieces.append(Piece(text, json.dumps(text)))
        sample = self.pieces[:200]
        self.chars_per_token = sum(len(p.text) for p in sample) / sum(count(p.text) for p in sample)
        self.mean_chars = sum(len(p.text) for p in self.pieces) / POOL

    def _piece(self) -> str:
        dice = self._dice
        size = min(3_890, max(159, round(dice.gauss(1_800, 700))))
        write = dice.choice((self._poem, self._post, self._story))
        parts = [write(first=True)]
        length = len(parts[0])
        while length < size:
            parts.append(write(first=False))
            length += len(parts[-1]) + 2
        return "\n\n".join(parts)[:size].rstrip()

    def _some(self, low: int, high: int) -> str:
        words = self._dice.choices(
            self._words, cum_weights=self._weights, k=self._dice.randint(low, high)
        )
        return " ".join(words).capitalize()

    def _poem(self, *, first: bool) -> str:
        if first:
            return f"**{self._some(2, 4).title()}**"
        return ",  \n".join(self._some(5, 8) for _ in range(4)) + "."

    def _post(self, *, first: bool) -> str:
        emoji = self._dice.choice(_EMOJI)
        if first:
            return f"# {emoji} {self._some(3, 6).title()} {emoji}"
        if self._dice.random() < 0.4:
            return "\n".join(f"- **{self._some(1, 3)}:** {self._some(7, 14)}." for _ in range(3))
        return self._story(first=False) + (f" {emoji}" if self._dice.random() < 0.5 else "")

    def _story(self, *, first: bool) -> str:
        if first:
            return f"### {self._some(2, 5).title()}"
        dice = self._dice
        sentences = [self._some(7, 18) + dice.choice((".", ".", ".", "!", "?")) for _ in range(4)]
        if dice.random() < 0.3:
            sentences.append(f'"{self._some(3, 8)}," she said.')
        return " ".join(sentences)


def _rows(texts: Texts, shard: str, rows: int, seed: int, scale: float) -> Iterator[dict[str, Any]]:
    n_needles = int(shard.partition("needle")[0])
    for index in range(rows):
        bin_ = BINS[BLOCKS[index * len(BLOCKS) // rows]]
        yield _row(texts, random.Random(f"{seed}/{shard}/{index}"), n_needles, bin_, scale)


def _row(
    texts: Texts, dice: random.Random, n_needles: int, bin_: Bin, scale: float
) -> dict[str, Any]:
    """A row that has about as many tokens as one drawn from the bin at random."""
    tokens = dice.uniform(bin_.low * 1.03, bin_.high * 0.97)
    chars = round(tokens * texts.chars_per_token * scale)
    kind, topic = dice.choice(KINDS), dice.choice(texts.topics)
    nonce = "".join(dice.choices(string.ascii_letters + string.digits, k=10))
    opening = _opening(texts, dice)
    replies = max(n_needles + 1, round((chars - len(opening)) / (texts.mean_chars + 26)))
    places = sorted(dice.sample(range(replies), n_needles))
    wanted = dice.randrange(n_needles)
    # All different, as long as the pool has that many: needles must differ in any case.
    needles = dict(zip(places, dice.sample(texts.pieces, n_needles), strict=True))
    fillers = dice.choices(texts.pieces, k=replies)
    messages = [_message("user", json.dumps(opening))]
    size = len(opening)
    for at in range(replies):
        piece = needles.get(at, fillers[at])
        request = f"write a {kind} about {topic}"
        if at not in needles:
            other = (kind, topic)
            while other == (kind, topic):
                other = (dice.choice(KINDS), dice.choice(texts.topics))
            request = f"write a {other[0]} about {other[1]}"
        messages += [_message("user", f'"{request}"'), _message("assistant", piece.json)]
        size += len(request) + len(piece.text)
    question = (
        f"Prepend {nonce} to the {_ordinal(wanted + 1)} (1 indexed) {kind} about {topic}. Do not"
        " include any other text in your response."
    )
    messages.append(_message("user", json.dumps(question)))
    return {
        "prompt": f"[{', '.join(messages)}]",
        "answer": nonce + needles[places[wanted]].text,
        "random_string_to_prepend": nonce,
        "n_needles": n_needles,
        "desired_msg_index": 1 + 2 * places[wanted],
        "total_messages": len(messages),
        "n_chars": size + len(question),
        "date_added": "04-12-2025",
    }


def _opening(texts: Texts, dice: random.Random) -> str:
    """Two demonstrations, in 15,000 characters or so."""
    lines = [
        (
            "Here are some examples of conversations succeeded by a follow-up question answered"
            " correctly:"
        )
    ]
    for _ in range(2):
        lines.append("======EXAMPLE======")
        for piece in dice.sample(texts.pieces, 4):
            request = f"write a {dice.choice(KINDS)} about {dice.choice(texts.topics)}"
            lines += [f"User: {request}", f"Assistant: {piece.text}"]
        lines.append("======END EXAMPLE======")
    return "\n\n".join(lines)


def _message(role: str, content: str) -> str:
    return f'{{"role": "{role}", "content": {content}}}'


def _ordinal(position: int) -> str:
    return f"{position}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(position, 'th') }"


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    """One file, by the defaults of pyarrow, which are those of pandas."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({name: [row[name] for row in rows] for name in rows[0]})
    partial = path.with_suffix(".partial")
    pq.write_table(table, partial)
    partial.replace(path)


def describe(path: Path) -> str:
    """A line about a shard: rows, row groups, megabytes of prompts before and after snappy."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    group = file.metadata.row_group(0)
    prompts = group.column(file.schema_arrow.names.index("prompt"))
    before, after = prompts.total_uncompressed_size, prompts.total_compressed_size
    return (
        f"{path}: {file.metadata.num_rows} rows in {file.metadata.num_row_groups} row group(s),"
        f" prompts {before / 1e6:.0f} MB, on disk {after / 1e6:.0f} MB ({after / before:.2f})"
    )


def main() -> int:
    """Write the shards and say what they are."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shards", type=int, default=1, choices=range(1, 7))
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for path in fixture(
        options.folder, shards=options.shards, rows=options.rows, seed=options.seed
    ):
        print(describe(path))
    return 0


if __name__ == "__main__":
    sys.exit(main())
