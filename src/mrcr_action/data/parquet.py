"""One parquet file of MRCR rows: its columns, its short fields, and the prompts that are wanted.

A prompt has up to 5 MB, a file 400 of them, and the dataset's files hold all in one row group and
often in a single page, which no reader can enter in the middle. So prompts are read in one pass
that keeps only those asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mrcr_action.data.layout import SCHEMA
from mrcr_action.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

SHORT_COLUMNS = (
    "n_needles",
    "n_chars",
    "total_messages",
    "desired_msg_index",
    "random_string_to_prepend",
    "answer",
)

_BATCH_ROWS = 4
_READ_BYTES = 1 << 20


def check_parquet(path: Path) -> int:
    """Number of rows of a local file, which is parquet with the dataset's columns.

    Raises:
        DataError: it is missing, not parquet, or lacks columns, which are named.
    """
    import pyarrow as pa
    import pyarrow.parquet

    if not path.is_file():
        raise DataError(
            f"{path}: no such file",
            hint="A local dataset holds 2needle/2needle_0.parquet and so on, as on the hub;"
            " `mrcr synth` writes one.",
        )
    try:
        file = pa.parquet.read_metadata(path)
        columns = file.schema.to_arrow_schema().names
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: not a parquet file: {_first_line(error)}") from error
    _check_columns(str(path), columns)
    return int(file.num_rows)


def read_short(path: Path) -> dict[str, list[Any]]:
    """Every column that a run needs but the prompts, by name.

    Raises:
        DataError: the file cannot be read, or a column is of another type or not filled.
    """
    import pyarrow as pa
    import pyarrow.parquet

    check_parquet(path)
    try:
        table = pa.parquet.read_table(path, columns=list(SHORT_COLUMNS)).cast(
            pa.schema([SCHEMA.field(name) for name in SHORT_COLUMNS])
        )
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: cannot be read: {_first_line(error)}") from error
    for name in SHORT_COLUMNS:
        if table[name].null_count:
            raise DataError(f"{path}: the column {name} is empty in some rows")
    return {name: table[name].to_pylist() for name in SHORT_COLUMNS}


def read_prompts(path: Path, rows: Collection[int]) -> Iterator[tuple[int, bytes]]:
    """The prompts of some rows, as JSON in UTF-8, in the order of the file.

    Raises:
        DataError: the file cannot be read, or a prompt is missing.
    """
    import pyarrow as pa
    import pyarrow.parquet

    wanted, at = set(rows), 0
    if not wanted:
        return
    try:
        with pa.parquet.ParquetFile(path, buffer_size=_READ_BYTES, pre_buffer=False) as file:
            batches = file.iter_batches(_BATCH_ROWS, columns=["prompt"], use_threads=False)
            for batch in batches:
                column = batch.column(0)
                for place in range(len(column)):
                    if at + place in wanted:
                        prompt = column[place]
                        if not prompt.is_valid:
                            raise DataError(f"{path}: row {at + place} has no prompt")
                        yield at + place, prompt.cast(pa.binary()).as_py()
                        wanted.discard(at + place)
                at += len(column)
                if not wanted:
                    return
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: cannot be read: {_first_line(error)}") from error


def _check_columns(where: str, columns: Iterable[str]) -> None:
    missing = [name for name in SCHEMA.names if name not in set(columns)]
    if missing:
        raise DataError(
            f"{where}: not MRCR rows: the columns {', '.join(missing)} are missing",
            hint="Expected the columns of openai/mrcr.",
        )


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
