from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mrcr_action.bins import Bin
from mrcr_action.data.layout import SCHEMA, shard_path, write_synthetic
from mrcr_action.data.shards import Shards, check_parquet, shards_of
from mrcr_action.errors import DataError

FIRST, SECOND = shards_of(2, range(2))


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "SLEEP_TIME_ON_THREADS_SHUTDOWN", 0)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def samples(folder: Path, rows: int = 1) -> Path:
    write_synthetic(folder, needles=[2], bins=[Bin(512, 1024)], per_cell=rows, seed=0)
    return folder


def test_an_empty_shard_has_no_rows(tmp_path: Path) -> None:
    shards = Shards(str(samples(tmp_path / "one")), "main")
    shards.check([FIRST, SECOND])
    assert [c.row for c in shards.candidates(FIRST, 2)] == [0]
    assert shards.candidates(SECOND, 2) == []


def test_shards_without_one_row_between_them_are_refused(tmp_path: Path) -> None:
    shards = Shards(str(samples(tmp_path / "one")), "main")
    with pytest.raises(DataError, match=r"2needle_1\.parquet: no rows$") as caught:
        shards.check([SECOND])
    assert "--needles" in caught.value.hint


def test_a_local_file_is_counted_once_its_columns_are_seen(tmp_path: Path) -> None:
    path = samples(tmp_path, rows=6) / FIRST
    assert check_parquet(path) == 3
    pq.write_table(pa.table({name: [] for name in SCHEMA.names[1:]}), path)
    with pytest.raises(DataError, match="the columns prompt are missing"):
        check_parquet(path)


@pytest.mark.parametrize("name", ["rows[1]", "a*", "a?", "[!a]", "**x", "{a,b}", ".hidden", "a b"])
def test_a_folder_is_never_taken_for_a_pattern(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples(tmp_path / "ab")
    folder = samples(tmp_path / name, rows=6)
    (folder / "inner").mkdir()
    monkeypatch.chdir(folder / "inner")
    for dataset in (str(folder), f"../../{name}", ".."):
        shards = Shards(dataset, "main")
        assert len(shards.candidates(shard_path(2, 0), 2)) == 3
        assert shards.load(FIRST, 2).n_needles == 2


def test_rows_of_a_local_file_are_mapped_into_memory(tmp_path: Path) -> None:
    assert Shards(str(samples(tmp_path / "rows[1]")), "main")._rows(FIRST).cache_files
