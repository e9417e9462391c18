"""What a dataset holds: its rows by needle count and length, all counted."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrcr_action.bins import ALL_BINS, Bin, bin_of
from mrcr_action.data.paths import PARTS, needles_of, shard_path
from mrcr_action.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from mrcr_action.data.shards import Shards

COLUMNS = (
    "cell",
    "rows",
    "with text",
    "o200k tokens (min, median, max)",
    "characters (min, median, max)",
    "messages (median)",
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One row."""

    where: str
    """Shard and row number, for a person."""
    n_needles: int
    bin: Bin | None
    """None for rows outside of all bins."""
    tokens: int
    chars: int
    messages: int
    has_text: bool
    fault: str


def shards_in(folder: Path) -> list[str]:
    """The shards of a local dataset, by needle count."""
    every = [shard_path(n, part) for n in range(1, 17) for part in range(PARTS)]
    return [shard for shard in every if (folder / shard).is_file()]


def inventory_of(
    shards: Shards, names: Sequence[str], *, report: Callable[[str], None]
) -> list[Entry]:
    """Every row of some shards, counted where it was not.

    Raises:
        DataError: there is no shard, or one cannot be read.
    """
    if not names:
        raise DataError(
            f"{shards.dataset}: holds no shard, such as {shard_path(2, 0)}",
            hint="Name a bundle of `mrcr data fetch`, or a folder with the dataset's layout;"
            " `mrcr synth` writes one.",
        )
    shards.check(names)
    found: list[Entry] = []
    for name in names:
        if shards.kind != "bundle":
            shards.count({name: range(len(shards.index(name).rows))})
            report(f"{name}: {len(shards.index(name).rows)} rows counted")
        for number, row in enumerate(shards.index(name).rows):
            tokens = row.tokens or 0
            found.append(
                Entry(
                    where=f"{name}, row {number}",
                    n_needles=needles_of(name),
                    bin=bin_of(tokens),
                    tokens=tokens,
                    chars=row.n_chars,
                    messages=row.total_messages,
                    has_text=shards.kind != "bundle" or row.offset is not None,
                    fault=row.fault,
                )
            )
    return found


def inventory_table(entries: Sequence[Entry]) -> list[tuple[str, ...]]:
    """A header, a row for each cell, and the sum."""
    table: list[tuple[str, ...]] = [COLUMNS]
    for n_needles in sorted({entry.n_needles for entry in entries}):
        for bin_ in (*ALL_BINS, None):
            own = [e for e in entries if e.n_needles == n_needles and e.bin == bin_]
            if own:
                table.append(_line(f"n{n_needles}/{bin_ or 'no bin'}", own))
    table.append(_line("all", entries))
    return table


def _line(title: str, entries: Sequence[Entry]) -> tuple[str, ...]:
    return (
        title,
        f"{len(entries):,}",
        f"{sum(e.has_text for e in entries):,}",
        _spread([e.tokens for e in entries]),
        _spread([e.chars for e in entries]),
        f"{statistics.median(e.messages for e in entries):,.0f}",
    )


def _spread(values: Sequence[int]) -> str:
    return f"{min(values):,}  {statistics.median(values):,.0f}  {max(values):,}"
