"""One parquet file of MRCR rows: its columns, its short fields, and the texts that are wanted.

A prompt has up to 5 MB, a file 400 of them, and the dataset's files hold all in one row group and
one page, which no reader can enter in the middle. DuckDB unpacks such a page once and copies only
what is asked for; in pyarrow it costs twice the time and 400 MB more (docs/performance.md).
"""

from __future__ import annotations

import glob
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mrcr_action.data.store import Text
from mrcr_action.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    import duckdb

SHORT_COLUMNS = (
    "answer",
    "random_string_to_prepend",
    "n_needles",
    "desired_msg_index",
    "total_messages",
    "n_chars",
)

COLUMNS = ("prompt", *SHORT_COLUMNS, "date_added")
"""Those of openai/mrcr; a file may have more."""

_INTEGERS = frozenset(
    f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG")
) | {"INTEGER", "UINTEGER"}
_TEXT = frozenset({"VARCHAR"})
# date_added is not read.
_TYPES: Mapping[str, frozenset[str]] = {
    name: _TEXT if name in {"prompt", "random_string_to_prepend", "answer"} else _INTEGERS
    for name in ("prompt", *SHORT_COLUMNS)
}

_OPTIONS: Mapping[str, str | bool | int] = {
    # One file with one row group is no work for two.
    "threads": 1,
    # Sizes are rounded up to powers of two before they are compared with the limit, whose usual
    # value would then refuse a file that fits. Nothing is done here that could use a disk.
    "memory_limit": "1TB",
    "temp_directory": "",
    # Neither the network nor the user's own folder has a part in this.
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


def check_parquet(path: Path) -> int:
    """Number of rows of a local file, which is parquet with the dataset's columns.

    Raises:
        DataError: it is missing, not parquet, or lacks columns, which are named, or one has
            another type.
    """
    with _opened(path) as connection:
        (rows,) = connection.execute("SELECT count(*) FROM rows").fetchone() or (0,)
        return int(rows)


def read_short(path: Path) -> dict[str, list[Any]]:
    """Every column that a run needs but the prompts, by name.

    Raises:
        DataError: as `check_parquet`; or the file is damaged, or a column is empty in some row.
    """
    with _opened(path) as connection:
        found = connection.execute(f"SELECT {', '.join(SHORT_COLUMNS)} FROM rows").fetchall()  # noqa: S608
    columns = {name: [row[at] for row in found] for at, name in enumerate(SHORT_COLUMNS)}
    for name, values in columns.items():
        if None in values:
            raise DataError(f"{path}: the column {name} is empty in some rows")
    return columns


def read_texts(path: Path, rows: Collection[int]) -> Iterator[tuple[int, Text]]:
    """The prompts and answers of some rows, in the order of the file.

    Numbers beyond the file's last row are passed over.

    Raises:
        DataError: as `check_parquet`; or the file is damaged, or a text is missing.
    """
    wanted = sorted(set(rows))
    if not wanted:
        return
    with _opened(path) as connection:
        # The bounds let it pass over row groups.
        found = connection.execute(
            "SELECT file_row_number, prompt, answer FROM rows WHERE file_row_number BETWEEN ? AND ?"
            " AND file_row_number IN (SELECT unnest(?))",
            [wanted[0], wanted[-1], wanted],
        )
        while (row := found.fetchone()) is not None:
            number, prompt, answer = row
            if prompt is None or answer is None:
                raise DataError(f"{path}: row {number} has no prompt or no answer")
            yield number, Text(prompt.encode(), answer.encode())


@contextmanager
def _opened(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with the file as the view ``rows``, its columns checked."""
    import duckdb

    if not path.is_file():
        raise DataError(
            f"{path}: no such file",
            hint="A local dataset holds 2needle/2needle_0.parquet and so on, as on the hub;"
            " `mrcr synth` writes one.",
        )
    # The latter where its message would quote bytes of the file that are no text.
    faults = (duckdb.Error, RuntimeError)
    with duckdb.connect(config=dict(_OPTIONS)) as connection:
        connection.execute("SET enable_progress_bar = false")
        # Prefetching would hold the compressed page twice.
        connection.execute("SET disable_parquet_prefetching = true")
        try:
            # An absolute path is never taken for a URL, an escaped one never for a pattern.
            connection.read_parquet(
                glob.escape(str(path.absolute())), file_row_number=True, hive_partitioning=False
            ).create_view("rows")
            described = connection.execute("DESCRIBE rows").fetchall()
        except faults as error:
            _raise_interrupt(error)
            raise DataError(f"{path}: not a parquet file: {_first_line(error)}") from error
        _check_columns(path, {name: type_ for name, type_, *_ in described})
        try:
            yield connection
        except faults as error:
            _raise_interrupt(error)
            raise DataError(
                f"{path}: cannot be read: {_first_line(error)}",
                hint="The file may be damaged: copy or fetch it again.",
            ) from error


def _raise_interrupt(error: Exception) -> None:
    """Give back a signal that DuckDB has taken and that was meant for this program.

    Raises:
        KeyboardInterrupt: that is what the error is about.
    """
    if str(error).endswith("Query interrupted") or type(error).__name__ == "InterruptException":
        raise KeyboardInterrupt from error


def _check_columns(path: Path, types: Mapping[str, str]) -> None:
    if missing := [name for name in COLUMNS if name not in types]:
        raise DataError(
            f"{path}: not MRCR rows: the columns {', '.join(missing)} are missing",
            hint="Expected the columns of openai/mrcr.",
        )
    for name, expected in _TYPES.items():
        if types[name] not in expected:
            kind = "text" if expected is _TEXT else "whole numbers"
            raise DataError(
                f"{path}: not MRCR rows: the column {name} is {types[name]}, not {kind}",
                hint="Expected the columns of openai/mrcr.",
            )


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
