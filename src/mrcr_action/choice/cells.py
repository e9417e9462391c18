"""The openai protocol's choice: so many rows of every cell (needle count x bin) that fits.

Within a cell, rows stand in the order of a hash of the seed and the row. The first so many are
chosen, and those of them that fit are asked: a row that is too long is not replaced by another, so
that a larger sample contains every smaller one, and a longer window every shorter one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from mrcr_action.bins import ALL_BINS, Bin, known_bin
from mrcr_action.choice.fit import MARGIN, by_shard
from mrcr_action.choice.notes import faults, nothing_readable, shortages, unreadable, untested
from mrcr_action.choice.shares import level
from mrcr_action.config.faults import parse_excluded
from mrcr_action.daemon_thread import in_daemon_thread
from mrcr_action.errors import DataError, MrcrError, NothingFits, UsageError
from mrcr_action.looks import schedule_of
from mrcr_action.plan import Ask, Candidate, Cell, Dropped, Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mrcr_action.choice.fit import Fit
    from mrcr_action.config import RunConfig
    from mrcr_action.data.lengths import Length, Lengths
    from mrcr_action.data.shards import Shards
    from mrcr_action.sample import Sample

COMPARED = 3
"""Rows of a needle count, the shortest, that the server counts to learn how its tokens compare."""


@dataclass(slots=True)
class _Cell:
    """A cell with its rows in order of choice, as known at one moment."""

    n_needles: int
    bin: Bin
    allowed: bool
    lengths: list[Length] = field(default_factory=list)
    """Those without a known fault, in order of choice."""
    faulty: list[Length] = field(default_factory=list)
    dropped: Counter[Dropped] = field(default_factory=Counter)
    rows: int = 0
    by_length: int = 0


class CellChoice:
    """The choice for one configuration; made anew for every limit that is tried."""

    def __init__(
        self,
        config: RunConfig,
        shards: Shards,
        lengths: Lengths,
        cannot_read: Callable[[Sample], str | None] | None = None,
    ) -> None:
        self._config = config
        self._cannot_read = cannot_read
        self._judged: dict[Candidate, str | None] = {}
        """Why the model cannot read a row, for those that were looked at; None if it can."""
        self._shards = shards
        self._lengths = lengths
        self._bins = None if config.bins is None else {known_bin(text) for text in config.bins}
        self._excluded = [parse_excluded(text) for text in config.exclude]
        self._bounded = {bound.place for bound in config.bounds}
        self._levels: Mapping[str, int] = {}

    async def choose(
        self,
        fit: Fit,
        progress: Callable[[int, int], None],
        levels: Mapping[str, int] | None = None,
    ) -> Plan:
        """Choose, reading and counting as little as it takes.

        Args:
            fit: what the limit is and how to measure against it.
            progress: told how many samples are chosen, of how many.
            levels: how many of the first rows of a cell to take, by its name, where it is not
                ``samples_per_cell``.

        Raises:
            DataError: not one row fits; or rows cannot be read.
            ApiError: the server is in trouble.
        """
        self._levels = levels or {}
        await fit.begin()
        while True:
            # Whatever is found out may change the choice, which is then made again from the start.
            if await in_daemon_thread(partial(self._lengths.settle, self._matters(fit))):
                continue
            if await self._compare(fit):
                continue
            cells = self._cells()
            if uncounted := self._uncounted(cells, fit):
                # A row that breaks an invariant has no place in the order, whether it fits or not.
                likely = [x.candidate for x in uncounted if fit.fits(x) is not False]
                others = [x.candidate for x in uncounted if fit.fits(x) is False]
                await in_daemon_thread(partial(self._shards.keep, by_shard(likely)))
                await in_daemon_thread(partial(self._shards.count, by_shard(others)))
                continue
            taken, unsure = self._take(cells, fit)
            progress(sum(map(len, taken)) - len(unsure), sum(map(len, taken)))
            if unsure:
                await self._count(unsure, fit)
                continue
            if unread := [x.candidate for rows in taken for x in rows if not self._is_kept(x)]:
                await in_daemon_thread(partial(self._shards.keep, by_shard(unread)))
                continue
            if not await in_daemon_thread(partial(self._judge, taken)):
                break
        fit.save()
        return self._plan(cells, taken, fit)

    def _judge(self, taken: Sequence[Sequence[Length]]) -> bool:
        """Look whether the model can read some rows; whether there is one that it cannot."""
        if self._cannot_read is None:
            return False
        new = [x.candidate for rows in taken for x in rows if x.candidate not in self._judged]
        for candidate in new:
            sample = self._shards.load(candidate.shard, candidate.row)
            self._judged[candidate] = self._cannot_read(sample)
        return any(self._judged[candidate] for candidate in new)

    def _matters(self, fit: Fit) -> Callable[[Bin], bool]:
        """Whether rows of a bin could be asked: not if even its shortest one is far too long."""
        if self._bins is not None:
            return self._bins.__contains__
        longest = fit.longest_o200k(
            x for n in self._lengths.by_needles for x in self._lengths.of(n)
        )
        return lambda bin_: longest is None or bin_.low <= longest * (1 + MARGIN)

    async def _compare(self, fit: Fit) -> bool:
        """Have the server count a few short rows; whether that told anything new."""
        compared: list[Length] = []
        for n_needles in self._lengths.by_needles:
            rows = [x for x in self._lengths.of(n_needles) if self._usable(x) and x.bin is not None]
            compared += sorted(rows, key=lambda x: x.tokens)[:COMPARED]
        # Without a server they are read all the same, for one that comes up later.
        unknown = [x for x in compared if fit.known(x) is None or not self._is_kept(x)]
        if unknown:
            await self._count(unknown, fit)
        fit.compare(compared)
        return bool(unknown)

    async def _count(self, rows: Sequence[Length], fit: Fit) -> None:
        """Have rows counted exactly, apart from those that turn out to be faulty."""
        await in_daemon_thread(partial(self._shards.keep, by_shard(x.candidate for x in rows)))
        await fit.count(
            x.candidate
            for x in rows
            if not self._shards.index(x.candidate.shard).rows[x.candidate.row].fault
        )

    def _cells(self) -> list[_Cell]:
        cells: list[_Cell] = []
        for n_needles in self._lengths.by_needles:
            by_bin = {
                bin_: _Cell(n_needles, bin_, self._allows(n_needles, bin_)) for bin_ in ALL_BINS
            }
            for length in self._lengths.of(n_needles):
                if length.bin is None:
                    continue
                cell = by_bin[length.bin]
                cell.rows += 1
                cell.by_length += not length.exact
                if length.row.fault:
                    cell.dropped["invalid"] += 1
                    cell.faulty.append(length)
                elif not cell.allowed:
                    cell.dropped["excluded"] += 1
                elif self._judged.get(length.candidate):
                    cell.dropped["unreadable"] += 1
                else:
                    cell.lengths.append(length)
            cells += [c for c in by_bin.values() if c.rows or self._is_requested(c)]
        return cells

    def _uncounted(self, cells: Sequence[_Cell], fit: Fit) -> list[Length]:
        """The first rows of each cell that matters, as far as they were not read yet."""
        if self._config.per_cell is None:
            return []
        matters = self._matters(fit)
        first = [x for cell in cells if matters(cell.bin) for x in self._first(cell)]
        return [x for x in first if not x.exact]

    def _take(self, cells: Sequence[_Cell], fit: Fit) -> tuple[list[list[Length]], list[Length]]:
        """The rows of each cell that are chosen and fit or may fit; those of them that only may."""
        first = [self._first(cell) for cell in cells]
        for x in (x for rows in first for x in rows):
            fit.rely(x)
        verdicts = [[(x, fit.fits(x)) for x in rows] for rows in first]
        possible = [[(x, fits) for x, fits in rows if fits is not False] for rows in verdicts]
        if self._config.per_cell is None:
            wanted = self._shared_out(cells, [len(rows) for rows in possible])
            possible = [rows[:count] for rows, count in zip(possible, wanted, strict=True)]
        self._check_texts(cells, possible)
        unsure = [x for rows in possible for x, fits in rows if fits is None]
        return [[x for x, _ in rows] for rows in possible], unsure

    def _level(self, cell: _Cell) -> int | None:
        """How many of the first rows of a cell are taken; None for all."""
        return self._levels.get(f"n{cell.n_needles}/{cell.bin}", self._config.per_cell)

    def _first(self, cell: _Cell) -> list[Length]:
        return cell.lengths[: self._level(cell)]

    def _check_texts(
        self, cells: Sequence[_Cell], possible: Sequence[Sequence[tuple[Length, bool | None]]]
    ) -> None:
        """See that a bundle holds what is chosen; other rows in their place would be others.

        Raises:
            DataError: it does not.
        """
        lacking = [
            f"n{cell.n_needles}/{cell.bin} ({missing} of {len(rows)})"
            for cell, rows in zip(cells, possible, strict=True)
            if (missing := sum(not self._has_text(x) for x, _ in rows))
        ]
        if lacking:
            raise DataError(
                f"{self._config.dataset}: this bundle lacks samples that are chosen:"
                f" {', '.join(lacking)}",
                hint="Fetch one for this configuration and window: mrcr data fetch CONFIG --window"
                " TOKENS --to DIR. Or name what it holds with --needles and --bins.",
            )

    def _shared_out(self, cells: Sequence[_Cell], possible: Sequence[int]) -> list[int]:
        """How many rows of each cell to take where there is a number of samples in all."""
        wanted: list[int] = []
        for n_needles, quota in self._config.quotas().items():
            own = [
                n for n, cell in zip(possible, cells, strict=True) if cell.n_needles == n_needles
            ]
            wanted += level(quota, own)
        return wanted

    def _plan(self, cells: Sequence[_Cell], taken: Sequence[list[Length]], fit: Fit) -> Plan:
        asks: list[Ask] = []
        found: list[Cell] = []
        for cell, rows in zip(cells, taken, strict=True):
            fitting = [x for x in cell.lengths if fit.seems_to_fit(x)]
            cell.dropped["too long"] += len(cell.lengths) - len(fitting)
            cell.dropped["not in the bundle"] += sum(not self._has_text(x) for x in fitting)
            found.append(
                Cell(
                    n_needles=cell.n_needles,
                    low=cell.bin.low,
                    high=cell.bin.high,
                    rows=cell.rows,
                    fitting=len(fitting),
                    planned=len(rows),
                    requested=self._is_requested(cell),
                    dropped={reason: n for reason, n in cell.dropped.items() if n},
                    by_length=cell.by_length,
                    level=self._level(cell) or 0,
                )
            )
            ranks = {id(x): rank for rank, x in enumerate(self._first(cell))}
            for length in rows:
                count = fit.rely(length)
                asks.append(
                    Ask(
                        index=len(asks),
                        shard=length.candidate.shard,
                        row=length.candidate.row,
                        sha256=str(length.row.sha256),
                        n_needles=cell.n_needles,
                        prompt_tokens=fit.estimate(length) if count is None else count,
                        estimated=count is None or fit.unit != "server",
                        o200k_tokens=length.tokens,
                        rank=ranks[id(length)],
                    )
                )
        every = [x for cell in cells for x in cell.lengths]
        longest = fit.longest_o200k(every)
        if not asks:
            raise self._nothing(cells, fit)
        return Plan(
            asks=tuple(asks),
            max_prompt_tokens=fit.limit,
            quotas=self._quotas(found),
            cells=tuple(found),
            counted_by=fit.unit,
            tokenized=fit.tokenized,
            longest_o200k=longest,
            schedule=schedule_of(self._config),
            notes=(
                *fit.notes,
                *faults(x for cell in cells for x in cell.faulty),
                *self._unreadable(),
                *shortages(self._config, found, fit.limit),
                *untested(found, longest),
            ),
        )

    def _nothing(self, cells: Sequence[_Cell], fit: Fit) -> MrcrError:
        """Why there is no sample at all."""
        allowed = [cell for cell in cells if cell.allowed]
        if not any(cell.rows for cell in allowed):
            there = dict.fromkeys(str(cell.bin) for cell in cells if cell.rows)
            return UsageError(
                f"bins and exclude leave no row of {self._config.dataset}, which has rows of"
                f" {', '.join(there) or 'no bin'} with"
                f" {', '.join(map(str, self._config.needles))} needles",
            )
        if told := self._unreadable():
            return nothing_readable(self._config, fit.limit, told[0])
        return NothingFits(fit.limit)

    def _unreadable(self) -> list[str]:
        return unreadable(reason for reason in self._judged.values() if reason)

    def _quotas(self, cells: Sequence[Cell]) -> dict[int, int]:
        if self._config.per_cell is None:
            return self._config.quotas()
        return {
            n: sum(cell.planned for cell in cells if cell.n_needles == n)
            for n in self._config.needles
        }

    def _allows(self, n_needles: int, bin_: Bin) -> bool:
        named = self._bins is None or bin_ in self._bins
        return named and not any(
            bin_ == excluded and n in {None, n_needles} for n, excluded in self._excluded
        )

    def _is_requested(self, cell: _Cell) -> bool:
        named = self._bins is not None and cell.bin in self._bins and cell.allowed
        return named or (cell.n_needles, cell.bin) in self._bounded

    def _is_kept(self, length: Length) -> bool:
        return length.row.offset is not None

    def _has_text(self, length: Length) -> bool:
        return self._shards.has_text(length.candidate)

    def _usable(self, length: Length) -> bool:
        return not length.row.fault and self._has_text(length)
