"""Shards of the dataset through the ``datasets`` library: from the hub, or local parquet.

Rows are memory-mapped, so that a shard of 390 MB costs no memory and a row is read when it is
asked for. The library keeps its files in its own cache (``HF_HOME``).
"""

from __future__ import annotations

import glob
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrcr_action.data.layout import SCHEMA, shard_path
from mrcr_action.errors import DataError
from mrcr_action.plan import Candidate
from mrcr_action.sample import Sample

if TYPE_CHECKING:
    from collections.abc import Iterable


class Shards:
    """The dataset's rows by shard and index; files are opened on first use."""

    def __init__(self, dataset: str, revision: str) -> None:
        """Point at a dataset.

        Args:
            dataset: name on the hub, or a folder with the dataset's layout.
            revision: commit, tag or branch on the hub; unused for a folder.
        """
        self.folder = Path(dataset) if Path(dataset).exists() or _looks_local(dataset) else None
        self.dataset = dataset
        self.revision = None if self.folder else revision
        self._open: dict[str, Any] = {}
        self._lock = threading.Lock()

    def check(self, shards: Iterable[str]) -> None:
        """Whether local shards are there and hold MRCR's columns; nothing for the hub's.

        One of them may be empty, as the second of a single row is, but not all.

        Raises:
            DataError: see `check_parquet`; or there is not one row.
        """
        if self.folder is None:
            return
        paths = [self.folder / shard for shard in shards]
        if not sum([check_parquet(path) for path in paths]):
            raise DataError(
                f"{' and '.join(map(str, paths))}: no rows",
                hint="Leave its needle count out of --needles, or write samples with `mrcr synth`.",
            )

    def load(self, shard: str, row: int) -> Sample:
        """Read one row.

        Raises:
            DataError: its prompt is not a list of messages.
        """
        try:
            return Sample.from_row(self._rows(shard)[row], shard=shard, index=row)
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{self.dataset}: {shard}, row {row}: {error}") from error

    def candidates(self, shard: str, n_needles: int) -> list[Candidate]:
        """Every row of a shard in the shard's order, without reading its text."""
        lengths = self._rows(shard).select_columns(["n_chars"])["n_chars"]
        return [
            Candidate(shard=shard, row=row, n_needles=n_needles, n_chars=int(n_chars))
            for row, n_chars in enumerate(lengths)
        ]

    def _rows(self, shard: str) -> Any:
        # Rows are asked for by several threads; a shard is opened by one.
        with self._lock:
            return self._opened(shard)

    def _opened(self, shard: str) -> Any:
        if shard not in self._open:
            self._open[shard] = self._load_shard(shard)
        return self._open[shard]

    def _load_shard(self, shard: str) -> Any:
        where = f"{self.dataset}: {shard}"
        rows = (
            self._load_from_hub(shard, where)
            if self.folder is None
            else self._load_file(self.folder / shard, where)
        )
        _check_columns(where, rows.column_names)
        return rows

    def _load_file(self, path: Path, where: str) -> Any:
        import datasets

        if check_parquet(path) == 0:
            # The library knows no split without rows.
            return datasets.Dataset(SCHEMA.empty_table())
        # Nothing is fetched, so that its bars would only flicker by; and the library would
        # report every load to its makers, and wait for that where there is no network.
        datasets.disable_progress_bars()
        datasets.config.HF_UPDATE_DOWNLOAD_COUNTS = False
        return _load(
            "parquet",
            # It takes a path for a pattern, a relative one together with the current folder's
            # name; and no pattern finds anything behind "..".
            data_files=glob.escape(str(path.parent.resolve() / path.name)),
            where=where,
            hint="The file may be damaged, or the folder of the library's cache (HF_HOME) without"
            " room; `mrcr synth` writes other samples.",
        )

    def _load_from_hub(self, shard: str, where: str) -> Any:
        return _load(
            self.dataset,
            data_files=shard,
            revision=self.revision,
            where=where,
            hint="Without internet, pass a folder with --dataset; a rate limit of the hub shows as"
            " a missing file, and HF_TOKEN lifts it.",
        )


def shards_of(n_needles: int, parts: Iterable[int]) -> list[str]:
    """Paths of the shards of a needle count, within the dataset."""
    return [shard_path(n_needles, part) for part in parts]


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


def _load(name: str, *, data_files: str, where: str, hint: str, revision: str | None = None) -> Any:
    import datasets

    try:
        return datasets.load_dataset(
            name,
            data_files=data_files,
            revision=revision,
            split="train",
            # The card counts the rows of all files, of which this is one.
            verification_mode="no_checks",
        )
    except Exception as error:  # the library raises a wide family of errors
        # This one says only that something else went wrong.
        generic = isinstance(error, datasets.exceptions.DatasetGenerationError)
        reason = (error.__cause__ if generic else None) or error
        raise DataError(f"{where} cannot be loaded: {_first_line(reason)}", hint=hint) from error


def _check_columns(where: str, columns: Iterable[str]) -> None:
    missing = [name for name in SCHEMA.names if name not in set(columns)]
    if missing:
        raise DataError(
            f"{where}: not MRCR rows: the columns {', '.join(missing)} are missing",
            hint="Expected the columns of openai/mrcr.",
        )


def _looks_local(dataset: str) -> bool:
    return dataset.startswith(("/", "./", "../", "~")) or dataset.count("/") != 1


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
