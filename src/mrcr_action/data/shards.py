"""Shards of the dataset through the ``datasets`` library: from the hub, or local parquet.

Rows are memory-mapped, so that a shard of 390 MB costs no memory and a row is read when it is
asked for. The library keeps its files in its own cache (``HF_HOME``).
"""

from __future__ import annotations

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

        Raises:
            DataError: see `check_parquet`.
        """
        if self.folder is not None:
            for shard in shards:
                check_parquet(self.folder / shard)

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
        if self.folder is not None:
            path = self.folder / shard
            check_parquet(path)
            name, files, revision = "parquet", str(path), None
        else:
            name, files, revision = self.dataset, shard, self.revision
        import datasets

        if self.folder is not None:
            # Nothing is fetched, so that its bars would only flicker by; and the library would
            # report every load to its makers, and wait for that where there is no network.
            datasets.disable_progress_bars()
            datasets.config.HF_UPDATE_DOWNLOAD_COUNTS = False
        try:
            rows = datasets.load_dataset(
                name,
                data_files=files,
                revision=revision,
                split="train",
                # The card counts the rows of all files, of which this is one.
                verification_mode="no_checks",
            )
        except Exception as error:  # the library raises a wide family of errors
            raise DataError(
                f"{self.dataset}: {shard} cannot be loaded: {_first_line(error)}",
                hint="Without internet, pass a folder with --dataset; a rate limit of the hub"
                " shows as a missing file, and HF_TOKEN lifts it.",
            ) from error
        _check_columns(f"{self.dataset}: {shard}", rows.column_names)
        return rows


def shards_of(n_needles: int, parts: Iterable[int]) -> list[str]:
    """Paths of the shards of a needle count, within the dataset."""
    return [shard_path(n_needles, part) for part in parts]


def check_parquet(path: Path) -> None:
    """Whether a local file is parquet with the dataset's columns.

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
        columns = pa.parquet.read_schema(path).names
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: not a parquet file: {_first_line(error)}") from error
    _check_columns(str(path), columns)


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
