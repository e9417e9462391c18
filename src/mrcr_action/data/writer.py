"""Writing the dataset's files: parquet shards with its columns, in its layout."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from mrcr_action.data.paths import PARTS, shard_path
from mrcr_action.errors import OutputError
from mrcr_action.synthetic import synthetic_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from mrcr_action.bins import Bin

SCHEMA = pa.schema(
    [
        ("prompt", pa.string()),
        ("answer", pa.string()),
        ("random_string_to_prepend", pa.string()),
        ("n_needles", pa.int64()),
        ("desired_msg_index", pa.int64()),
        ("total_messages", pa.int64()),
        ("n_chars", pa.int64()),
        ("date_added", pa.string()),
    ]
)
"""Columns and types of every shard, in order."""

# Characters of the prompts gathered for one row group: all that is held of a shard at a time.
_GROUP_CHARS = 32 * 1024 * 1024


def write_parquet(rows: Iterable[dict[str, Any]], directory: Path) -> list[Path]:
    """Write rows with the dataset's columns in the dataset's layout, and return the shards.

    The rows of a needle count go to its two shards in turn, so that each shard holds every bin
    that has two rows: unlike in the real files, one shard alone is then a fair small set.
    The shards take their places after the last row; an error before that changes none of them.

    Raises:
        OutputError: the directory cannot be made or written.
    """
    shards: dict[int, list[_Shard]] = {}
    written: dict[int, int] = {}
    try:
        for row in rows:
            n_needles = row["n_needles"]
            if n_needles not in shards:
                written[n_needles] = 0
                shards[n_needles] = []
                for part in range(PARTS):
                    shards[n_needles].append(_Shard(directory / shard_path(n_needles, part)))
            shards[n_needles][written[n_needles] % PARTS].add(row)
            written[n_needles] += 1
        every = [shard for parts in shards.values() for shard in parts]
        for shard in every:
            shard.close()
        for shard in every:
            shard.publish()
    except OSError as error:
        raise OutputError(
            f"the samples cannot be written to {directory}: {error}",
            hint="name a directory that can be made and written, on a disk with room",
        ) from error
    finally:
        for parts in shards.values():
            for shard in parts:
                shard.discard()
    return [shard.path for shard in every]


def write_synthetic(
    directory: Path,
    *,
    needles: Sequence[int],
    bins: Sequence[Bin],
    per_cell: int,
    seed: int,
    non_latin: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> list[Path]:
    """Write ``per_cell`` synthetic rows for each needle count and bin; return the shards.

    ``non_latin`` is the percentage of pieces in other scripts than Latin. ``progress`` is
    told how many rows are made and how many there will be, after each of them.

    Raises:
        OutputError: the directory cannot be made or written.
        UsageError: a needle count, a bin or ``non_latin`` is out of range, or a needle count
            does not fit one of the bins.
        DataError: the o200k vocabulary is missing or not the one expected.
    """
    total = len(needles) * len(bins) * per_cell

    def reported() -> Iterable[dict[str, Any]]:
        rows = synthetic_rows(needles, bins, per_cell, seed, non_latin=non_latin)
        for done, row in enumerate(rows, start=1):
            yield row
            if progress is not None:
                progress(done, total)

    return write_parquet(reported(), directory)


class _Shard:
    """One parquet file, written beside its place and moved there when it is whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        self._writer = pq.ParquetWriter(self._partial, SCHEMA)
        self._rows: list[dict[str, Any]] = []
        self._chars = 0

    def add(self, row: dict[str, Any]) -> None:
        self._rows.append(row)
        self._chars += len(row["prompt"])
        if self._chars >= _GROUP_CHARS:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def publish(self) -> None:
        self._partial.replace(self.path)

    def discard(self) -> None:
        """Leave nothing half-written behind; does nothing to a published shard."""
        # On a full disk closing fails as writing did, and the first error is the one to tell.
        with suppress(OSError):
            if self._writer.is_open:
                self._writer.close()
        self._partial.unlink(missing_ok=True)

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(pa.Table.from_pylist(self._rows, schema=SCHEMA))
        self._rows, self._chars = [], 0
