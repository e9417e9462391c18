import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mrcr_action.bins import Bin
from mrcr_action.data import writer
from mrcr_action.data.paths import shard_path
from mrcr_action.data.writer import SCHEMA, write_parquet, write_synthetic
from mrcr_action.errors import OutputError, UsageError
from mrcr_action.sample import Sample
from mrcr_action.synthetic import synthetic_rows

SMALL = Bin(512, 1024)
LARGER = Bin(1024, 2048)


def read(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


def files(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_shards_lie_where_the_dataset_has_them(tmp_path: Path) -> None:
    rows = list(synthetic_rows([2, 8], [SMALL], 2, 0))
    written = write_parquet(rows, tmp_path / "new" / "folder")
    expected = [f"{n}needle/{n}needle_{part}.parquet" for n in (2, 8) for part in (0, 1)]
    assert expected == [str(path.relative_to(tmp_path / "new" / "folder")) for path in written]
    assert expected == files(tmp_path / "new" / "folder")
    assert shard_path(4, 1) == "4needle/4needle_1.parquet"


def test_columns_and_types_are_exactly_the_datasets(tmp_path: Path) -> None:
    (first, _) = write_parquet(synthetic_rows([2], [SMALL], 2, 0), tmp_path)
    assert pq.read_schema(first).equals(SCHEMA)
    assert [(f.name, f.type) for f in SCHEMA] == [
        ("prompt", pa.string()),
        ("answer", pa.string()),
        ("random_string_to_prepend", pa.string()),
        ("n_needles", pa.int64()),
        ("desired_msg_index", pa.int64()),
        ("total_messages", pa.int64()),
        ("n_chars", pa.int64()),
        ("date_added", pa.string()),
    ]


def test_rows_alternate_so_that_each_shard_holds_every_bin(tmp_path: Path) -> None:
    rows = list(synthetic_rows([4], [SMALL, LARGER], 5, 0))
    first, second = map(read, write_parquet(rows, tmp_path))
    assert first == rows[0::2]
    assert second == rows[1::2]


def test_one_row_leaves_an_empty_second_shard(tmp_path: Path) -> None:
    first, second = write_parquet(synthetic_rows([2], [SMALL], 1, 0), tmp_path)
    assert len(read(first)) == 1
    assert read(second) == []
    assert pq.read_schema(second).equals(SCHEMA)


def test_hostile_rows_survive_the_file(tmp_path: Path) -> None:
    rows = list(synthetic_rows([2], [LARGER], 6, 0, hostile=True))
    first, second = map(read, write_parquet(rows, tmp_path))
    assert first == rows[0::2]
    assert second == rows[1::2]


def test_long_shards_are_written_group_by_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_GROUP_CHARS", 6000)
    rows = list(synthetic_rows([2], [SMALL], 20, 0))
    first, _ = write_parquet(rows, tmp_path)
    assert pq.ParquetFile(first).num_row_groups > 1
    assert read(first) == rows[0::2]


def test_equal_arguments_give_equal_files(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        write_synthetic(tmp_path / folder, needles=[2], bins=[SMALL], per_cell=2, seed=0)
    for part in (0, 1):
        path = shard_path(2, part)
        assert (tmp_path / "a" / path).read_bytes() == (tmp_path / "b" / path).read_bytes()


def test_write_synthetic_fills_every_cell_and_reports_each_row(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    written = write_synthetic(
        tmp_path,
        needles=[2, 4, 8],
        bins=[SMALL, LARGER],
        per_cell=2,
        seed=0,
        progress=lambda done, total: told.append((done, total)),
    )
    assert told == [(done, 12) for done in range(1, 13)]
    assert len(written) == 6
    needles = Counter(row["n_needles"] for path in written for row in read(path))
    assert needles == {2: 4, 4: 4, 8: 4}
    for path in written:
        for at, row in enumerate(read(path)):
            assert Sample.from_row(row, shard=str(path), index=at).violations() == []


def test_an_error_halfway_leaves_the_old_files_and_no_remains(tmp_path: Path) -> None:
    write_synthetic(tmp_path, needles=[2], bins=[SMALL], per_cell=2, seed=0)
    before = {name: (tmp_path / name).read_bytes() for name in files(tmp_path)}

    def rows() -> Iterator[dict[str, Any]]:
        yield from synthetic_rows([2], [SMALL], 3, 1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_parquet(rows(), tmp_path)
    assert before == {name: (tmp_path / name).read_bytes() for name in files(tmp_path)}


def test_a_bin_too_small_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        write_synthetic(tmp_path, needles=[2], bins=[SMALL, Bin(1, 9)], per_cell=1, seed=0)
    assert files(tmp_path) == []


def test_a_file_in_the_way_is_an_output_error(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(OutputError, match="taken") as caught:
        write_synthetic(tmp_path / "taken", needles=[2], bins=[SMALL], per_cell=1, seed=0)
    assert caught.value.hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_an_output_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="cannot be written"):
        write_synthetic(tmp_path, needles=[2], bins=[SMALL], per_cell=1, seed=0)


def test_a_full_disk_is_an_output_error_though_closing_fails_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = pq.ParquetWriter.close

    def cannot_write(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    def cannot_close(writer: pq.ParquetWriter) -> None:
        close(writer)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", cannot_write)
    monkeypatch.setattr(pq.ParquetWriter, "close", cannot_close)
    with pytest.raises(OutputError, match="No space left"):
        write_synthetic(tmp_path, needles=[2], bins=[SMALL], per_cell=2, seed=0)
    assert files(tmp_path) == []


def test_no_rows_write_no_files(tmp_path: Path) -> None:
    assert write_parquet([], tmp_path) == []
