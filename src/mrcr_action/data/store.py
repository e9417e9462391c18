"""One shard's rows as a bundle and the cache hold them: an index, and texts that one read brings.

Beside each other lie ``NAME.json``, what is known of every row of the shard, and ``NAME.rows``, the
prompts and answers of those rows whose texts are kept, one after the other as they came, in
UTF-8. A row whose text is not kept has no offset. Texts are only ever added at the end, and the
index is replaced whole after them, so that a reader never sees half of anything.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import msgspec

from mrcr_action.cache import locked, replace
from mrcr_action.errors import DataError, OutputError
from mrcr_action.sample import Sample, content_hash

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

STORE_FORMAT = 1
"""Raised when an older reader could not read what is written."""


class Row(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is known of a row without its text."""

    n_needles: int
    n_chars: int
    total_messages: int
    desired_msg_index: int
    nonce: str
    answer_chars: int
    prompt_tokens: int | None = None
    """o200k tokens of the prompt's contents; None until they were counted."""
    answer_tokens: int | None = None
    sha256: str | None = None
    """`mrcr_action.sample.content_hash`; None until the text was read."""
    fault: str = ""
    """The invariant that the row breaks, as far as its text was read."""
    offset: int | None = None
    """Where the prompt begins in ``NAME.rows``; None where its text is not kept."""
    prompt_bytes: int = 0
    answer_bytes: int = 0
    """Length of the answer, which follows the prompt."""

    @property
    def chars(self) -> int:
        """Characters of prompt and answer: what a bin's tokens are made of."""
        return self.n_chars + self.answer_chars

    @property
    def tokens(self) -> int | None:
        """o200k tokens of prompt and answer, the dataset card's measure; None if not counted."""
        if self.prompt_tokens is None or self.answer_tokens is None:
            return None
        return self.prompt_tokens + self.answer_tokens


class ShardIndex(msgspec.Struct, kw_only=True, omit_defaults=True):
    """``NAME.json``: every row of one shard, by its index there."""

    format: int = STORE_FORMAT
    shard: str
    rows: list[Row]
    source_sha256: str | None = None
    """Of the parquet file that the rows came from, where it was taken."""
    verified: bool | None = None
    """Whether that hash is the one known for the dataset; None for files of one's own."""
    orders: dict[str, list[int]] = {}
    """Row numbers as the vllm protocol considers them, by `mrcr_action.data.order.order_name`."""
    bytes: int = 0
    """Length of ``NAME.rows`` that the offsets speak of."""


class Text(msgspec.Struct, frozen=True):
    """A row's prompt, JSON in UTF-8, and its answer."""

    prompt: bytes
    answer: bytes

    @property
    def sha256(self) -> str:
        """The content hash of the row."""
        return content_hash(self.prompt, self.answer)


class ShardStore:
    """The two files of one shard. Reads are safe from several threads."""

    def __init__(self, folder: Path, name: str) -> None:
        self.index_path = folder / f"{name}.json"
        self.rows_path = folder / f"{name}.rows"
        self._index: ShardIndex | None = None
        self._file: int | None = None
        self._lock = threading.Lock()

    def __del__(self) -> None:
        if self._file is not None:
            os.close(self._file)

    @property
    def exists(self) -> bool:
        """Whether there is an index."""
        return self.index_path.is_file()

    @property
    def is_whole(self) -> bool:
        """Whether all the texts that the index speaks of can be there."""
        try:
            return self.rows_path.stat().st_size >= self.index.bytes
        except OSError:
            return self.index.bytes == 0

    @property
    def index(self) -> ShardIndex:
        """The index, read once.

        Raises:
            DataError: it is damaged, or of another format.
        """
        if self._index is None:
            self._index = self._read_index()
        return self._index

    def refresh(self) -> None:
        """Read the index anew when it is looked at next."""
        self._index = None

    def begin(self, index: ShardIndex) -> None:
        """Write a first index, without texts."""
        self._write(index)

    def read(self, row: int) -> Text:
        """The texts of a row, in one read.

        Raises:
            DataError: they are not kept here, or the file is cut.
        """
        entry = self.index.rows[row]
        if entry.offset is None:
            raise DataError(f"{self.rows_path}: row {row} is not in it")
        size = entry.prompt_bytes + entry.answer_bytes
        try:
            data = os.pread(self._opened(), size, entry.offset)
        except (OSError, ValueError, OverflowError, MemoryError) as error:
            reason = getattr(error, "strerror", None) or error
            raise DataError(f"{self.rows_path}: cannot be read: {reason}") from error
        if len(data) != size:
            raise DataError(
                f"{self.rows_path}: row {row} is cut off: expected {size} bytes, found {len(data)}",
                hint="Fetch the bundle again, or remove this file from the cache.",
            )
        return Text(data[: entry.prompt_bytes], data[entry.prompt_bytes :])

    def load(self, row: int) -> Sample:
        """A row as a sample, its text compared with the hash that the index holds.

        Raises:
            DataError: as `read`; or the text is not what was stored, or is no prompt.
        """
        entry, text = self.index.rows[row], self.read(row)
        sample = sample_of(entry, text, shard=self.index.shard, row=row)
        if sample.id.sha256 != entry.sha256:
            raise DataError(
                f"{self.rows_path}: row {row} is damaged: expected SHA-256 {entry.sha256},"
                f" found {sample.id.sha256}",
                hint="Fetch the bundle again, or remove this file from the cache.",
            )
        return sample

    def learn(
        self, facts: Iterable[tuple[int, Row]], texts: Iterable[tuple[int, Text]] = ()
    ) -> None:
        """Keep what was found out about rows, and texts of some.

        Args:
            facts: rows with what is known of them now; their places are not looked at.
            texts: texts to be kept, in any order; those of rows that have one are passed over.

        Raises:
            OutputError: the disk is full, or the like.
        """
        try:
            with locked(self.index_path):
                # Another run may have learned something in the meantime.
                index = self._read_index()
                for row, found in facts:
                    known = index.rows[row]
                    index.rows[row] = msgspec.structs.replace(
                        found,
                        offset=known.offset,
                        prompt_bytes=known.prompt_bytes,
                        answer_bytes=known.answer_bytes,
                    )
                with self.rows_path.open("ab") as file:
                    for row, text in texts:
                        entry = index.rows[row]
                        if entry.offset is not None:
                            continue
                        entry.offset = file.tell()
                        entry.prompt_bytes = len(text.prompt)
                        entry.answer_bytes = len(text.answer)
                        file.write(text.prompt)
                        file.write(text.answer)
                    index.bytes = file.tell()
                self._write(index)
        except OSError as error:
            raise OutputError(
                f"{self.rows_path}: cannot be written: {error.strerror}",
                hint="Make room there, or name another folder: MRCR_CACHE for the cache, --to for a"
                " bundle.",
            ) from error

    def _write(self, index: ShardIndex) -> None:
        self.index_path.parent.mkdir(parents=True, exist_ok=True)
        replace(self.index_path, msgspec.json.encode(index))
        self._index = index

    def _read_index(self) -> ShardIndex:
        try:
            index = msgspec.json.decode(self.index_path.read_bytes(), type=ShardIndex)
        except (OSError, msgspec.MsgspecError) as error:
            raise DataError(
                f"{self.index_path}: cannot be read: {error}",
                hint="Fetch the bundle again, or remove this file from the cache.",
            ) from error
        if index.format != STORE_FORMAT:
            raise DataError(
                f"{self.index_path}: written by another version of mrcr (format {index.format},"
                f" not {STORE_FORMAT})",
                hint="Fetch the bundle again with this version.",
            )
        return index

    def _opened(self) -> int:
        with self._lock:
            if self._file is None:
                self._file = os.open(self.rows_path, os.O_RDONLY | os.O_CLOEXEC)
            return self._file


def sample_of(entry: Row, text: Text, *, shard: str, row: int) -> Sample:
    """A row as a sample.

    Raises:
        DataError: the prompt is not a JSON list of messages, or not UTF-8.
    """
    try:
        return Sample.from_row(
            {
                "prompt": text.prompt,
                "answer": text.answer,
                "random_string_to_prepend": entry.nonce,
                "n_needles": entry.n_needles,
                "desired_msg_index": entry.desired_msg_index,
                "n_chars": entry.n_chars,
            },
            shard=shard,
            index=row,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{shard}, row {row}: {error}") from error
