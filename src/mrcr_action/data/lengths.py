"""Which bin each row lies in: counted near the edges, by its characters where that is plain.

Counting 2.3 GB of prompts takes a while, and most of it would tell nothing new: rows of one dataset
have much the same number of characters to a token. Some are counted to learn that number, and then
all whose bin it leaves open. Every row counted later, such as one that was chosen, is a test of the
range; one that lies outside widens it, and then more rows are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrcr_action.bins import ALL_BINS, bin_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mrcr_action.bins import Bin
    from mrcr_action.data.shards import Shards
    from mrcr_action.data.store import Row
    from mrcr_action.plan import Candidate

FIRST_COUNTED = 8
"""Rows of a needle count that are counted to learn how many characters a token has."""

USUAL_CHARS_PER_TOKEN = (3.8, 5.6)
"""Fewest and most characters of an o200k token, as seen in OpenAI's rows."""

MARGIN = 0.05
"""How far beyond the numbers seen those of other rows may lie."""


@dataclass(frozen=True, slots=True)
class Length:
    """A row with its length, exact or not."""

    candidate: Candidate
    row: Row
    bin: Bin | None
    """None for rows outside of all bins."""
    tokens: int
    """o200k tokens of prompt and answer."""
    prompt_tokens: int
    """o200k tokens of the prompt's contents."""
    exact: bool


class Lengths:
    """The lengths of the rows of some needle counts."""

    def __init__(self, shards: Shards, by_needles: dict[int, list[Candidate]]) -> None:
        self._shards = shards
        self.by_needles = by_needles

    def settle(self, wanted: Callable[[Bin], bool]) -> bool:
        """Count until every row's bin is known, as far as wanted bins are concerned.

        Args:
            wanted: whether it matters which rows lie in a bin.

        Returns:
            Whether anything was counted.

        Raises:
            DataError: rows cannot be read.
        """
        counted = False
        for candidates in self.by_needles.values():
            unknown = [c for c in candidates if self._row(c).tokens is None]
            if unknown and not self._ratios(candidates):
                # With those that the usual numbers leave open, since every look at a file costs a
                # pass over all of it.
                few = _spread(unknown, self._row)
                self._count({*few, *self._open(candidates, wanted, USUAL_CHARS_PER_TOKEN)})
                counted = True
            while near := self._open(candidates, wanted, self._band(candidates)):
                self._count(near)
                counted = True
        return counted

    def of(self, n_needles: int) -> list[Length]:
        """Every row of a needle count, in the order of its candidates."""
        candidates = self.by_needles[n_needles]
        ratios = self._ratios(candidates)
        ratio = sum(ratios) / len(ratios) if ratios else 1.0
        return [self._length(candidate, ratio) for candidate in candidates]

    def _length(self, candidate: Candidate, ratio: float) -> Length:
        row = self._row(candidate)
        tokens, prompt = row.tokens, row.prompt_tokens
        if not tokens or not prompt:
            # Not counted, or of no text that could be: its characters tell where it belongs.
            tokens, prompt = round(row.chars / ratio), round(row.n_chars / ratio)
            return Length(candidate, row, bin_of(tokens), tokens, prompt, exact=False)
        return Length(candidate, row, bin_of(tokens), tokens, prompt, exact=True)

    def _band(self, candidates: Sequence[Candidate]) -> tuple[float, float]:
        """Fewest and most characters that a token of these rows may have."""
        ratios = self._ratios(candidates) or [*USUAL_CHARS_PER_TOKEN]
        return min(ratios) * (1 - MARGIN), max(ratios) * (1 + MARGIN)

    def _open(
        self,
        candidates: Sequence[Candidate],
        wanted: Callable[[Bin], bool],
        band: tuple[float, float],
    ) -> list[Candidate]:
        """Rows not counted yet that may or may not lie in a wanted bin."""
        least, most = band
        found = []
        for candidate in candidates:
            row = self._row(candidate)
            if row.tokens is None:
                low, high = int(row.chars / most), int(row.chars / least) + 1
                if bin_of(low) != bin_of(high) and any(
                    wanted(b) for b in ALL_BINS if b.low <= high and b.high >= low
                ):
                    found.append(candidate)
        return found

    def _ratios(self, candidates: Iterable[Candidate]) -> list[float]:
        rows = map(self._row, candidates)
        return [row.chars / row.tokens for row in rows if row.tokens and not row.fault]

    def _count(self, candidates: Iterable[Candidate]) -> None:
        wanted: dict[str, list[int]] = {}
        for candidate in candidates:
            wanted.setdefault(candidate.shard, []).append(candidate.row)
        self._shards.count(wanted)

    def _row(self, candidate: Candidate) -> Row:
        return self._shards.index(candidate.shard).rows[candidate.row]


def _spread(candidates: Sequence[Candidate], row_of: Callable[[Candidate], Row]) -> list[Candidate]:
    """Some rows, from short to long."""
    ordered = sorted(candidates, key=lambda c: row_of(c).chars)
    step = max(1, len(ordered) // FIRST_COUNTED)
    return ordered[::step][:FIRST_COUNTED]
