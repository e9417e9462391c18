from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mrcr_action.data.parquet import COLUMNS, check_parquet, read_short, read_texts
from mrcr_action.data.writer import SCHEMA
from mrcr_action.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

ROWS = 9


def prompt(row: int) -> str:
    # Quotes, line ends, an escape and characters of two, three and four bytes.
    content = f'row {row}: "naïve"\n\\ — 🌾' * (row + 1)
    return json.dumps([{"role": "user", "content": content}], ensure_ascii=row % 2 == 0)


def table(**replaced: Any) -> pa.Table:
    columns = {
        "prompt": [prompt(row) for row in range(ROWS)],
        "answer": [f"nonce{row}é" for row in range(ROWS)],
        "random_string_to_prepend": ["abcdefghij"] * ROWS,
        "n_needles": [2] * ROWS,
        "desired_msg_index": list(range(1, 2 * ROWS, 2)),
        "total_messages": [20] * ROWS,
        "n_chars": list(range(100, 100 + ROWS)),
        "date_added": ["04-12-2025"] * ROWS,
    }
    columns |= replaced
    return pa.table({name: values for name, values in columns.items() if values is not None})


def written(path: Path, what: pa.Table | None = None, **options: Any) -> Path:
    pq.write_table(table() if what is None else what, path, **options)
    return path


def read_prompts(path: Path, rows: Collection[int]) -> Iterator[tuple[int, bytes]]:
    return ((row, text.prompt) for row, text in read_texts(path, rows))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return written(tmp_path / "2needle_0.parquet")


def test_the_columns_are_those_that_are_written() -> None:
    assert set(SCHEMA.names) == set(COLUMNS)


def test_an_answer_comes_with_its_prompt(file: Path) -> None:
    assert [text.answer for _, text in read_texts(file, [1, 4])] == [
        "nonce1é".encode(),
        "nonce4é".encode(),
    ]


def test_rows_come_in_the_order_of_the_file_and_only_those_asked_for(file: Path) -> None:
    found = list(read_prompts(file, [7, 2, 2, 5]))
    assert [(row, prompt(row).encode()) for row in (2, 5, 7)] == found


def test_every_row_can_be_asked_for(file: Path) -> None:
    assert [prompt(row).encode() for row in range(ROWS)] == [
        text for _, text in read_prompts(file, range(ROWS))
    ]


def test_rows_that_the_file_does_not_have_are_passed_over(file: Path) -> None:
    assert [row for row, _ in read_prompts(file, {8, ROWS, 1000})] == [8]


def test_without_a_row_asked_for_the_file_is_not_opened(tmp_path: Path) -> None:
    assert list(read_prompts(tmp_path / "missing", [])) == []


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"row_group_size": 2},
        {"row_group_size": 1},
        {"use_dictionary": False},
        {"use_dictionary": False, "data_page_size": 1, "write_batch_size": 1},
        {"dictionary_pagesize_limit": 1, "write_batch_size": 1},
        {"data_page_version": "2.0", "version": "1.0"},
        {"compression": "none"},
        {"compression": "zstd"},
        {"use_dictionary": False, "column_encoding": {"prompt": "DELTA_LENGTH_BYTE_ARRAY"}},
        {"write_page_index": True, "row_group_size": 4, "data_page_size": 1},
    ],
    ids=str,
)
def test_the_way_in_which_a_file_is_laid_out_makes_no_difference(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    path = written(tmp_path / "x.parquet", **options)
    assert check_parquet(path) == ROWS
    assert [(row, prompt(row).encode()) for row in (1, 6, 8)] == list(read_prompts(path, [1, 6, 8]))
    assert read_short(path)["desired_msg_index"] == list(range(1, 2 * ROWS, 2))


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())], ids=str
)
def test_every_type_of_text_is_read(tmp_path: Path, kind: pa.DataType) -> None:
    texts = pa.array([prompt(row) for row in range(ROWS)]).cast(kind)
    path = written(tmp_path / "x.parquet", table(prompt=texts))
    assert [(3, prompt(3).encode())] == list(read_prompts(path, [3]))


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.int32(), pa.uint64()], ids=str)
def test_every_type_of_whole_numbers_is_read(tmp_path: Path, kind: pa.DataType) -> None:
    path = written(tmp_path / "x.parquet", table(n_needles=pa.array([4] * ROWS, kind)))
    assert read_short(path)["n_needles"] == [4] * ROWS


def test_further_columns_and_another_order_are_no_trouble(tmp_path: Path) -> None:
    wider = table().append_column("rows", pa.array([1.5] * ROWS))
    path = written(tmp_path / "x.parquet", wider.select(sorted(wider.column_names)))
    assert check_parquet(path) == ROWS
    assert [(0, prompt(0).encode())] == list(read_prompts(path, [0]))


def test_the_short_columns_hold_plain_numbers_and_text(file: Path) -> None:
    assert read_short(file) == {
        "n_needles": [2] * ROWS,
        "n_chars": list(range(100, 100 + ROWS)),
        "total_messages": [20] * ROWS,
        "desired_msg_index": list(range(1, 2 * ROWS, 2)),
        "random_string_to_prepend": ["abcdefghij"] * ROWS,
        "answer": [f"nonce{row}é" for row in range(ROWS)],
    }


def test_repeated_prompts_are_each_given(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", table(prompt=["[]"] * ROWS))
    assert list(read_prompts(path, [2, 3])) == [(2, b"[]"), (3, b"[]")]


def test_a_file_without_rows_has_none(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", table().slice(0, 0))
    assert check_parquet(path) == 0
    assert set(read_short(path)) == set(COLUMNS) - {"prompt", "date_added"}
    assert list(read_prompts(path, [0])) == []


def test_a_missing_prompt_is_named_by_its_row_after_those_before_it(tmp_path: Path) -> None:
    texts = [None if row == 4 else prompt(row) for row in range(ROWS)]
    path = written(tmp_path / "x.parquet", table(prompt=texts))
    assert [row for row, _ in read_prompts(path, [3, 5])] == [3, 5]
    found = read_prompts(path, [3, 4])
    assert next(found)[0] == 3
    with pytest.raises(DataError, match=r"x\.parquet: row 4 has no prompt"):
        next(found)


@pytest.mark.parametrize("name", ["answer", "n_chars"])
def test_an_empty_field_is_named_by_its_column(tmp_path: Path, name: str) -> None:
    values = table()[name].to_pylist()
    path = written(tmp_path / "x.parquet", table(**{name: [*values[:-1], None]}))
    with pytest.raises(DataError, match=f"the column {name} is empty in some rows"):
        read_short(path)


def test_missing_columns_are_named(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", table(answer=None, n_chars=None))
    with pytest.raises(DataError, match="the columns answer, n_chars are missing"):
        check_parquet(path)


def test_a_column_of_another_case_is_another_column(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", table(prompt=None, Prompt=["[]"] * ROWS))
    with pytest.raises(DataError, match="the columns prompt are missing"):
        check_parquet(path)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("prompt", list(range(ROWS))),
        ("prompt", [[{"role": "user", "content": "x"}]] * ROWS),
        ("answer", [b"x"] * ROWS),
        ("n_needles", ["2"] * ROWS),
        ("n_chars", [2.0] * ROWS),
        ("total_messages", [True] * ROWS),
    ],
)
def test_a_column_of_another_type_is_named(tmp_path: Path, name: str, values: list[Any]) -> None:
    path = written(tmp_path / "x.parquet", table(**{name: values}))
    for read in (check_parquet, read_short, lambda path: list(read_prompts(path, [0]))):
        with pytest.raises(DataError, match=f"the column {name} is .*, not (text|whole numbers)"):
            read(path)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"<!DOCTYPE html>" * 9, b"PAR1" * 9])
def test_what_is_no_parquet_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(content)
    for read in (check_parquet, read_short, lambda path: list(read_prompts(path, [0]))):
        with pytest.raises(DataError, match=r"x\.parquet: not a parquet file: ."):
            read(path)


def test_a_file_that_ends_too_soon_is_named(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"2needle_0\.parquet: not a parquet file"):
        check_parquet(file)


def test_a_missing_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"x\.parquet: no such file") as caught:
        check_parquet(tmp_path / "x.parquet")
    assert "mrcr synth" in str(caught.value.hint)


def test_a_damaged_page_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", compression="snappy")
    content = bytearray(path.read_bytes())
    content[4:60] = bytes(56)
    path.write_bytes(content)
    assert check_parquet(path) == ROWS
    with pytest.raises(DataError, match=r"x\.parquet: cannot be read: ."):
        list(read_prompts(path, [0]))


def test_text_that_is_no_unicode_is_named(tmp_path: Path) -> None:
    offsets, data = pa.array([b"\xff\xfe"] * ROWS).buffers()[1:]
    texts = pa.Array.from_buffers(pa.string(), ROWS, [None, offsets, data])
    path = written(tmp_path / "x.parquet", table(prompt=texts))
    with pytest.raises(DataError, match=r"cannot be read: .*not valid UTF8"):
        list(read_prompts(path, [0]))


@pytest.mark.parametrize(
    "folder", ["a[1]", "b*", "c?", "it's", 'say "x"', "n=3", "%s {0} é", "a\\b"]
)
def test_a_path_is_taken_word_for_word(tmp_path: Path, folder: str) -> None:
    # What the path would match, were it a pattern.
    for other in ("a1", "bb", "cc"):
        (tmp_path / other).mkdir()
        written(tmp_path / other / "x.parquet", table(prompt=["[]"] * ROWS))
    (tmp_path / folder).mkdir()
    path = written(tmp_path / folder / "x.parquet")
    assert check_parquet(path) == ROWS
    assert [(1, prompt(1).encode())] == list(read_prompts(path, [1]))


def test_a_relative_path_that_looks_like_an_address_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:").mkdir()
    path = written(tmp_path / "s3:" / "x.parquet")
    assert check_parquet(path.relative_to(tmp_path)) == ROWS


def test_a_reader_that_stops_early_leaves_nothing_open(file: Path) -> None:
    found = read_prompts(file, range(ROWS))
    assert next(found)[0] == 0
    found.close()  # type: ignore[attr-defined]
    assert list(found) == []
    assert len(list(read_prompts(file, range(ROWS)))) == ROWS


def test_a_damaged_file_is_a_data_error_wherever_the_damage_is(tmp_path: Path) -> None:
    whole = written(tmp_path / "whole.parquet", use_dictionary=False).read_bytes()
    path = tmp_path / "x.parquet"
    dice = random.Random(1)
    failed = 0
    for _ in range(60):
        content = bytearray(whole)
        for _ in range(dice.choice((1, 5, 20))):
            content[dice.randrange(len(content))] = dice.randrange(256)
        path.write_bytes(content)
        try:
            read_short(path)
            list(read_prompts(path, range(ROWS)))
        except DataError as error:
            assert str(error).startswith(f"{path}: ")  # noqa: PT017 - it need not fail
            failed += 1
    assert failed > 20
