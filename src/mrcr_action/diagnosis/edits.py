"""How two texts differ: where first, by how many edits, and how alike they are, in bounded time."""

from __future__ import annotations

import difflib_fast

COMPARED = 8192
"""Characters of a text that are compared; difflib-fast's memory grows with the square of it on one
letter over and over (121 MB)."""

MOST_EDITS = 64
"""Edits that are counted; the time grows with the square of it."""


def common(first: str, second: str) -> int:
    """Length of the common beginning of two texts, in characters."""
    low, high = 0, min(len(first), len(second))
    size = 64
    while low < high and first[low : low + size] == second[low : low + size]:
        low, size = min(low + size, high), 2 * size
    high = min(high, low + size)
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def alike(first: str, second: str) -> float:
    """``SequenceMatcher(None, first, second, autojunk=False).ratio()`` of what is compared.

    Of each text the first `COMPARED` characters; half a surrogate pair counts as a question mark.
    """
    return difflib_fast.ratio(_plain(first[:COMPARED]), _plain(second[:COMPARED]))


def edits(first: str, second: str, most: int = MOST_EDITS) -> int | None:
    """Levenshtein's distance of two texts in characters; None for more than ``most``.

    The furthest reach on each diagonal, by the number of edits: time grows with ``most`` squared,
    not with the product of the lengths (E. Ukkonen, Information and Control 64, 1985).
    """
    rows, columns = len(first), len(second)
    if abs(columns - rows) > most:
        return None
    # By diagonal, column minus row: the furthest row that so many edits reach.
    reach: dict[int, int] = {}
    for count in range(most + 1):
        now: dict[int, int] = {}
        for diagonal in range(-count, count + 1):
            if not -rows <= diagonal <= columns:
                continue
            row = 0 if count == 0 else _step(reach, diagonal)
            row = min(row, rows, columns - diagonal)
            row += _run(first, row, second, row + diagonal)
            if row == rows and row + diagonal == columns:
                return count
            now[diagonal] = row
        reach = now
    return None


def _step(reach: dict[int, int], diagonal: int) -> int:
    """The furthest row that one more edit reaches: a replacement, an insertion or a deletion."""
    replaced = reach.get(diagonal, -1) + 1
    inserted = reach.get(diagonal - 1, -1)
    deleted = reach.get(diagonal + 1, -1) + 1
    return max(replaced, inserted, deleted, 0)


def _run(first: str, row: int, second: str, column: int) -> int:
    """How many characters agree from there on."""
    if first[row : row + 1] != second[column : column + 1]:
        return 0
    size = 32
    while True:
        found = common(first[row : row + size], second[column : column + size])
        if found < size:
            return found
        size *= 8


def _plain(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
