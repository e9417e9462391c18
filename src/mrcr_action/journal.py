"""``samples.jsonl``: one line a finished ask, on disk before it counts."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Self

import msgspec

from mrcr_action.errors import OutputError
from mrcr_action.result import Record, encode_line

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

JOURNAL_FILE = "samples.jsonl"
"""Its name in the folder of a run."""


class Journal:
    """A file of records, begun anew and then only added to; a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            if path.is_symlink():
                # A server before this one may have put it there, and it leads anywhere.
                path.unlink()
            self._file = path.open("wb")
        except OSError as error:
            raise OutputError(f"{path}: cannot be written: {error.strerror}") from error

    def append(self, record: Record) -> None:
        """Write one line and have it on disk.

        Raises:
            OutputError: the disk is full or gone, or the journal is closed.
        """
        try:
            self._file.write(encode_line(record) + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise OutputError(f"{self.path}: cannot be written: {reason}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # What counts is on disk; what could not be written is tried again here, in vain.
        with contextlib.suppress(OSError):
            self._file.close()


def read_journal(path: Path) -> list[Record]:
    """All records of a journal, in the order in which they were finished."""
    decoder = msgspec.json.Decoder(Record)
    return [decoder.decode(line) for line in path.read_bytes().splitlines()]
