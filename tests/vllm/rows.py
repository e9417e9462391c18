"""The rows that real vLLM is asked on a CPU: some shorter than 512 tokens, some longer.

A token of the probe is a byte. Synthetic rows start at some 1,200 bytes, so that the short ones are
made here; both have short answers, because a CPU decodes slowly. Run as a script, it writes them:

    python tests/vllm/rows.py DIR
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrcr_action.bins import parse_bin
from mrcr_action.data.writer import write_parquet
from mrcr_action.synthetic import question, request, synthetic_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

SHORT_LIMIT = 480
"""Bytes; with the answer and the template, a short row stays within 512 tokens."""

LONG_BINS = {2: "256-512", 4: "512-1K", 8: "1K-2K"}
"""o200k tokens; in each, the pieces of that many needles are short."""

PER_KIND = 2
"""Short rows and long rows, each, per needle count."""

_ENDS = ("Red fur.", "At dusk.", "Two cubs.", "It runs.", "No sound.", "Snow.", "Gone.", "Home.")


def rows() -> Iterator[dict[str, Any]]:
    """Short and long rows of every needle count."""
    for n_needles, text in LONG_BINS.items():
        for index in range(PER_KIND):
            yield short_row(n_needles, index)
        yield from synthetic_rows([n_needles], [parse_bin(text)], PER_KIND, 7)


def short_row(n_needles: int, index: int) -> dict[str, Any]:
    """A row with the dataset's columns and order of turns, but hardly a preamble."""
    wanted = (n_needles - 1) - index
    nonce = f"sh0rt{n_needles}n{index:03d}"
    messages = [{"role": "user", "content": "Hello."}]
    for end in itertools.islice(_ENDS, n_needles):
        messages += [
            {"role": "user", "content": request("poem", "foxes")},
            {"role": "assistant", "content": end},
        ]
    messages.append({"role": "user", "content": question(nonce, wanted + 1, "poem", "foxes")})
    size = sum(len(m["content"]) for m in messages)
    assert size <= SHORT_LIMIT, size
    return {
        "prompt": json.dumps(messages),
        "answer": nonce + _ENDS[wanted],
        "random_string_to_prepend": nonce,
        "n_needles": n_needles,
        "desired_msg_index": 1 + 2 * wanted,
        "total_messages": len(messages),
        "n_chars": size,
        "date_added": "11-30-2026",
    }


if __name__ == "__main__":
    write_parquet(rows(), Path(sys.argv[1]))
