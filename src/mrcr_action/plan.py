"""What will be asked: an ordered list of asks, the cells they come from, and what was left out."""

from __future__ import annotations

from typing import Literal

import msgspec

from mrcr_action.bins import Bin
from mrcr_action.rounds import FIRST, Round

Dropped = Literal["too long", "invalid", "not in the bundle", "excluded", "unreadable"]
"""Why rows of a cell cannot be chosen."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A row that may be asked, known without its text."""

    shard: str
    row: int
    n_needles: int
    n_chars: int
    total_messages: int


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One request for one sample in one pass."""

    index: int
    """Place in the plan, from 0; the journal refers to it."""
    pass_name: str = FIRST
    """Name of its round; the same sample can be asked in several."""
    shard: str
    row: int
    sha256: str
    n_needles: int
    prompt_tokens: int
    """Length of the prompt in the server's tokens, with its chat template."""
    estimated: bool = False
    """Whether that is an estimate: the row is so far from the limit that nobody needed to count."""
    o200k_tokens: int
    """Prompt and answer in o200k tokens, the dataset card's measure of length."""
    follows: int | None = None
    """The ask, by its index, after which this one is sent at once; None where it starts a chain."""
    turn: int | None = None
    """Message, by its index, whose reply is asked for instead of the one that the row asks for."""
    padding: int = 0
    """Words that were added to the first turn, so that the prompt ends where it shall."""
    rank: int = 0
    """Place of the row in the order of its cell, from 0; 0 where samples are not chosen by cell."""


class Passed(msgspec.Struct, frozen=True, kw_only=True):
    """Why rows of one needle count were not planned, as far as the search went."""

    too_many_chars: int = 0
    """Left out by the character count alone."""
    too_many_tokens: int = 0
    """Left out by the server's own count."""
    invalid: int = 0
    """Left out because an invariant of the dataset does not hold."""


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """A needle count and a bin of the dataset: which of its rows there are, and which are asked."""

    n_needles: int
    low: int
    """Edges of the bin, in o200k tokens of prompt and answer."""
    high: int
    rows: int
    """Rows that the dataset holds."""
    fitting: int
    """Rows that the server's window has room for, as far as known without counting each."""
    planned: int
    """Rows that will be asked."""
    requested: bool = False
    """Whether the configuration names it, in ``bins`` or by a threshold: without a row that fits,
    there is no verdict."""
    dropped: dict[Dropped, int] = {}
    """Rows that cannot be asked, by reason."""
    by_length: int = 0
    """Rows, of all, whose bin follows from their characters, clear of every edge; the others were
    counted."""
    level: int = 0
    """Rows, the first in the order of the cell, of which those that fit are planned; 0 where a
    number of samples in all is shared out."""

    @property
    def bin(self) -> Bin:
        """The range of lengths."""
        return Bin(self.low, self.high)

    @property
    def name(self) -> str:
        """Such as ``n8/64K-128K``."""
        return f"n{self.n_needles}/{self.bin}"


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """A further look at a run: the samples that were added since its thresholds were undecided."""

    buckets: tuple[str, ...]
    """Those that were undecided, ``n8`` or ``n8/64K-128K@warm``."""
    level: int
    """Of the cells that have got the most: as in `Cell`."""
    samples: int
    """Samples that were added."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The asks of a run, in the order they are sent."""

    asks: tuple[Ask, ...]
    max_prompt_tokens: int
    quotas: dict[int, int]
    """Samples wanted, by needle count."""
    passed: dict[int, Passed] = {}
    """What was left out, by needle count, where samples are not chosen by cell."""
    cells: tuple[Cell, ...] = ()
    """Every cell of the dataset, planned or not; none where samples are not chosen by cell."""
    counted_by: Literal["server", "o200k"]
    """Whose token count decided what fits."""
    tokenized: int = 0
    """Rows that the server's /tokenize was asked about, or had been by an earlier run."""
    longest_o200k: int | None = None
    """About how many o200k tokens of prompt the limit is, by the rows compared; None unknown."""
    notes: tuple[str, ...] = ()
    """Shortages and other warnings, each a sentence."""
    rounds: tuple[Round, ...] = (Round(),)
    """In their order; the first one asks every sample once."""

    schedule: tuple[int, ...] = ()
    """What the level of a cell may be, one number a look; empty where there is one look only."""
    looks: tuple[Look, ...] = ()
    """The further looks that were taken, beyond the first one."""

    @property
    def samples(self) -> tuple[Ask, ...]:
        """The asks of the first round: every sample once."""
        return tuple(ask for ask in self.asks if ask.pass_name == FIRST)

    @property
    def next_stage(self) -> int:
        """Stage of a round that begins when all others are done."""
        return self.rounds[-1].stage + 1

    def noted(self, note: str) -> Plan:
        """The plan with one more warning, a sentence."""
        return msgspec.structs.replace(self, notes=(*self.notes, note))

    def round_of(self, ask: Ask) -> Round:
        """The round of an ask."""
        return next(round_ for round_ in self.rounds if round_.name == ask.pass_name)

    def planned(self, n_needles: int) -> int:
        """Samples of one needle count."""
        return sum(ask.n_needles == n_needles for ask in self.samples)
