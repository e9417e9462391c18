"""What a dataset's name stands for, and which cached rows may be used for it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.unit.handmade import row, write_rows

from mrcr_action.data.paths import shards_of
from mrcr_action.data.source import Source, kind_of
from mrcr_action.errors import DataError

if TYPE_CHECKING:
    from mrcr_action.data.store import ShardStore

FIRST, SECOND = shards_of(2, range(2))


def opened(folder: Path | str, shard: str = FIRST) -> ShardStore:
    return Source(str(folder), "main", allow_unverified=False, report=None).open(shard)


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "dataset", [row(2, number, 300) for number in range(4)])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("openai/mrcr", "hub"),
        ("someone/mrcr-fork", "hub"),
        ("./a/b", "folder"),
        ("../mrcr", "folder"),
        ("/data", "folder"),
        ("~/mrcr", "folder"),
        ("mrcr-data", "folder"),
        ("a/b/c", "folder"),
    ],
)
def test_a_name_that_is_nowhere_here_is_the_hubs_only_if_it_looks_so(
    name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert kind_of(name) == (kind, None if kind == "hub" else Path(name))


def test_what_is_here_goes_before_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "openai" / "mrcr").mkdir(parents=True)
    assert kind_of("openai/mrcr") == ("folder", Path("openai/mrcr"))
    (tmp_path / "openai" / "mrcr" / "bundle.json").touch()
    assert kind_of("openai/mrcr") == ("bundle", Path("openai/mrcr"))


def test_a_folder_of_that_name_makes_no_bundle(tmp_path: Path) -> None:
    (tmp_path / "bundle.json").mkdir()
    assert kind_of(str(tmp_path))[0] == "folder"


@pytest.mark.parametrize("name", ["x" * 300, "./" + "y/" * 3000])
def test_a_name_that_no_file_can_have_is_an_error_and_no_fault_of_the_program(name: str) -> None:
    with pytest.raises(DataError, match="cannot be read: File name too long"):
        kind_of(name)


def test_rows_of_local_parquet_are_kept_until_the_file_changes(dataset: Path) -> None:
    kept = opened(dataset)
    kept.index.rows[0].prompt_tokens = 7
    kept.begin(kept.index)
    assert opened(dataset).index.rows[0].prompt_tokens == 7
    assert opened(dataset, SECOND).index.rows[0].prompt_tokens is None

    path = dataset / FIRST
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert opened(dataset).index.rows[0].prompt_tokens is None


def test_the_same_files_by_another_way_are_the_same(
    dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset.with_name("link").symlink_to(dataset)
    monkeypatch.chdir(dataset)
    places = {
        opened(name).index_path for name in (dataset, ".", "../dataset", dataset.with_name("link"))
    }
    assert len(places) == 1


@pytest.mark.parametrize("damage", [b"", b"{", b'{"format": 99, "shard": "x", "rows": []}'])
def test_a_damaged_entry_of_the_cache_is_found_out_once_more(dataset: Path, damage: bytes) -> None:
    kept = opened(dataset)
    kept.index_path.write_bytes(damage)
    assert len(opened(dataset).index.rows) == 2


def test_a_row_in_the_file_of_another_needle_count_is_known_to_be_faulty(dataset: Path) -> None:
    (dataset / "4needle").mkdir()
    (dataset / FIRST).rename(dataset / "4needle" / "4needle_0.parquet")
    rows = opened(dataset, "4needle/4needle_0.parquet").index.rows
    assert {entry.fault for entry in rows} == {"n_needles is 2 in the file of 4 needles"}


def test_a_missing_shard_is_named_with_its_path(dataset: Path) -> None:
    (dataset / SECOND).unlink()
    with pytest.raises(DataError, match=rf"{dataset}/{SECOND}: cannot be read: No such file"):
        opened(dataset, SECOND)


def test_a_local_dataset_has_no_revision_and_nothing_is_verified(dataset: Path) -> None:
    source = Source(str(dataset), "main", allow_unverified=False, report=None)
    assert (source.kind, source.revision) == ("folder", None)
    index = source.open(FIRST).index
    assert (index.source_sha256, index.verified) == (None, None)
