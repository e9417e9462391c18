"""What will be asked: an ordered list of asks, and what was passed over on the way."""

from __future__ import annotations

from typing import Literal

import msgspec

Pass = Literal["cold"]
"""In which round a sample is asked; the same sample can be asked in several."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A row that may be asked, known without its text."""

    shard: str
    row: int
    n_needles: int
    n_chars: int


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One request for one sample in one pass."""

    index: int
    """Place in the plan, from 0; the journal refers to it."""
    pass_name: Pass = "cold"  # noqa: S105 - a round of asking, no password
    shard: str
    row: int
    sha256: str
    n_needles: int
    prompt_tokens: int
    """Length of the prompt in the server's tokens, with its chat template."""
    o200k_tokens: int
    """Prompt and answer in o200k tokens, the dataset card's measure of length."""


class Passed(msgspec.Struct, frozen=True, kw_only=True):
    """Why rows of one needle count were not planned, as far as the search went."""

    too_many_chars: int = 0
    """Left out by the character count alone."""
    too_many_tokens: int = 0
    """Left out by the server's own count."""
    invalid: int = 0
    """Left out because an invariant of the dataset does not hold."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The asks of a run, in the order they are sent."""

    asks: tuple[Ask, ...]
    max_prompt_tokens: int
    quotas: dict[int, int]
    """Samples wanted, by needle count."""
    passed: dict[int, Passed]
    """What was left out, by needle count."""
    counted_by: Literal["server", "o200k"]
    """Whose token count decided what fits."""
    notes: tuple[str, ...] = ()
    """Shortages and other warnings, each a sentence."""

    def planned(self, n_needles: int) -> int:
        """Asks of one needle count."""
        return sum(ask.n_needles == n_needles for ask in self.asks)
