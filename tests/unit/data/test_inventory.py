"""What `mrcr data stats` counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.handmade import row, write_rows

from mrcr_action.bins import Bin
from mrcr_action.data.fetch import write_bundle
from mrcr_action.data.inventory import Entry, inventory_of, inventory_table, shards_in
from mrcr_action.data.selection import Selection
from mrcr_action.data.shards import Shards
from mrcr_action.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path


def entries(folder: Path) -> tuple[list[Entry], list[str]]:
    """Every row, and what was told meanwhile."""
    told: list[str] = []
    found = inventory_of(Shards(str(folder), "main"), shards_in(folder), report=told.append)
    return found, told


def entry(n_needles: int, tokens: int, *, has_text: bool = True) -> Entry:
    bins = [b for b in (Bin(4096, 8192), Bin(8192, 16384)) if tokens in b]
    return Entry(
        where="",
        n_needles=n_needles,
        bin=bins[0] if bins else None,
        tokens=tokens,
        chars=5 * tokens,
        messages=2 * n_needles + 2,
        has_text=has_text,
        fault="",
    )


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    rows = [row(2, number, size) for number, size in enumerate((4096, 9000, 8192, 5000))]
    rows += [row(8, number, 600) for number in range(3)]
    return write_rows(tmp_path / "dataset", rows)


def test_every_row_of_every_shard_is_counted_with_its_place(dataset: Path) -> None:
    found, told = entries(dataset)
    assert [(e.where, e.n_needles, str(e.bin), e.tokens) for e in found] == [
        ("2needle/2needle_0.parquet, row 0", 2, "4K-8K", 4096),
        ("2needle/2needle_0.parquet, row 1", 2, "4K-8K", 8192),
        ("2needle/2needle_1.parquet, row 0", 2, "8K-16K", 9000),
        ("2needle/2needle_1.parquet, row 1", 2, "4K-8K", 5000),
        ("8needle/8needle_0.parquet, row 0", 8, "512-1K", 600),
        ("8needle/8needle_0.parquet, row 1", 8, "512-1K", 600),
        ("8needle/8needle_1.parquet, row 0", 8, "512-1K", 600),
    ]
    assert [line.partition(": ")[2] for line in told] == [f"{n} rows counted" for n in (2, 2, 2, 1)]
    assert all(e.has_text and not e.fault for e in found)
    assert {(e.n_needles, e.messages) for e in found} == {(2, 6), (8, 18)}


def test_shards_are_listed_by_number_and_other_files_are_passed_over(tmp_path: Path) -> None:
    for name in ("16needle/16needle_1", "2needle/2needle_1", "2needle/2needle_0", "3needle/x"):
        path = tmp_path / f"{name}.parquet"
        path.parent.mkdir(exist_ok=True)
        path.touch()
    (tmp_path / "4needle" / "4needle_0.parquet").mkdir(parents=True)
    (tmp_path / "notes.txt").touch()
    assert shards_in(tmp_path) == [
        "2needle/2needle_0.parquet",
        "2needle/2needle_1.parquet",
        "16needle/16needle_1.parquet",
    ]


def test_a_folder_without_shards_is_an_error_that_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no shard, such as 2needle/2needle_0\.parquet"):
        entries(tmp_path)


def test_a_bundle_tells_the_rows_that_it_holds_no_text_of(dataset: Path, tmp_path: Path) -> None:
    selection = Selection(protocol="openai", needles=(2,), bins=("4K-8K",))
    write_bundle(Shards(str(dataset), "main"), tmp_path / "bundle", selection)
    shards = Shards(str(tmp_path / "bundle"), "main")
    told: list[str] = []
    found = inventory_of(shards, selection.shards(), report=told.append)
    assert [(e.tokens, e.has_text) for e in found] == [
        (4096, True),
        (8192, True),
        (9000, False),
        (5000, True),
    ]
    assert told == []


def test_the_table_has_a_line_for_each_cell_with_rows_and_one_for_all() -> None:
    table = inventory_table(
        [
            entry(8, 8192),
            entry(2, 9000, has_text=False),
            entry(2, 4096),
            entry(2, 8192),
            entry(2, 5001),
            entry(2, 4095),
        ]
    )
    assert table[1:] == [
        ("n2/4K-8K", "3", "3", "4,096  5,001  8,192", "20,480  25,005  40,960", "6"),
        ("n2/8K-16K", "1", "0", "9,000  9,000  9,000", "45,000  45,000  45,000", "6"),
        ("n2/no bin", "1", "1", "4,095  4,095  4,095", "20,475  20,475  20,475", "6"),
        ("n8/4K-8K", "1", "1", "8,192  8,192  8,192", "40,960  40,960  40,960", "18"),
        ("all", "6", "5", "4,095  6,596  9,000", "20,475  32,982  45,000", "6"),
    ]
    assert {len(line) for line in table} == {6}


def test_a_row_that_is_no_conversation_is_counted_as_faulty(tmp_path: Path) -> None:
    rows = [row(2, 0, 500), row(2, 1, 500)]
    rows[0]["prompt"] = "[]"
    (first, second), _ = entries(write_rows(tmp_path / "rows", rows))
    assert (first.bin, first.fault) == (None, "the prompt is not a list of messages")
    assert (str(second.bin), second.fault) == ("0-512", "")
