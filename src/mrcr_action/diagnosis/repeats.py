"""Text that is none: one piece over and over, or characters that no writer uses."""

from __future__ import annotations

import unicodedata

from mrcr_action.diagnosis.evidence import Repeat

LONGEST_PERIOD = 512
"""Characters of a piece that is looked for."""

LEAST_TIMES = 4
LEAST_CHARS = 60
"""Of what is repeated, in all; a refrain is shorter or comes less often."""

SHOWN = 40
"""Characters of the piece that are kept."""

STRANGE = 0.05
"""From this share of strange characters on, a response is no text."""

LOOKED_AT = 4096
"""Characters that are searched for strange ones and for where the repetition begins to show."""


def repeat_at_end(text: str) -> Repeat | None:
    """What a text ends in saying over and over; None if it does not.

    The shortest piece counts. The last one need not be whole: the text may have been cut within it.
    """
    end = len(text)
    for period in range(1, min(LONGEST_PERIOD, end // LEAST_TIMES) + 1):
        # Most periods are ruled out by one look.
        if text[end - 1] != text[end - 1 - period]:
            continue
        needed = max(LEAST_TIMES * period, LEAST_CHARS)
        if end < needed or text[end - needed + period :] != text[end - needed : end - period]:
            continue
        begin = _begin(text, period, end - needed)
        return Repeat(
            text=text[begin : begin + min(period, SHOWN)],
            period=period,
            times=(end - begin) // period,
            offset=begin,
        )
    return None


def _begin(text: str, period: int, begin: int) -> int:
    """Where the repetition begins that is known from ``begin`` on."""

    def reaches(size: int) -> bool:
        low = begin - size
        return low >= 0 and text[low:begin] == text[low + period : begin + period]

    size = 1
    while reaches(size):
        begin, size = begin - size, 2 * size
    while size := size // 2:
        if reaches(size):
            begin -= size
    return begin


def strange_share(text: str) -> float:
    """Share of a text's first characters that are no text."""
    looked = text[:LOOKED_AT]
    return sum(map(_is_strange, looked)) / len(looked) if looked else 0.0


def _is_strange(char: str) -> bool:
    # Controls, lone surrogates, unassigned and private characters.
    return char == "\ufffd" or (
        char not in "\t\n\r" and unicodedata.category(char) in {"Cc", "Cs", "Cn", "Co"}
    )
