"""One shard's index and texts on disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from mrcr_action.data.store import STORE_FORMAT, Row, ShardIndex, ShardStore, Text
from mrcr_action.errors import DataError, OutputError
from mrcr_action.sample import content_hash

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SHARD = "2needle/2needle_0.parquet"


def text(row: int) -> Text:
    """A prompt and an answer that tell their row, of different lengths, not all of ASCII."""
    prompt = json.dumps([{"role": "user", "content": f"prompt {row} é🙂" * (row + 1)}])
    return Text(prompt.encode(), f"nonce{row:05}answer ä".encode())


def entry(row: int, **changes: Any) -> Row:
    values: dict[str, Any] = {
        "n_needles": 2,
        "n_chars": 10 + row,
        "total_messages": 1,
        "desired_msg_index": 1,
        "nonce": f"nonce{row:05}",
        "answer_chars": 18,
    }
    return Row(**(values | changes))


def known(row: int) -> Row:
    """The entry of a row whose text was read."""
    prompt, answer = text(row).prompt.decode(), text(row).answer.decode()
    return entry(row, prompt_tokens=5, answer_tokens=6, sha256=content_hash(prompt, answer))


def begun(folder: Path, rows: int = 6) -> ShardStore:
    store = ShardStore(folder, "2needle_0")
    store.begin(ShardIndex(shard=SHARD, rows=[entry(row) for row in range(rows)]))
    return store


def learn(store: ShardStore, *rows: int) -> None:
    store.learn([(row, known(row)) for row in rows], [(row, text(row)) for row in rows])


def test_a_begun_store_knows_every_row_and_no_text(tmp_path: Path) -> None:
    store = begun(tmp_path / "new" / "folder")

    again = ShardStore(tmp_path / "new" / "folder", "2needle_0")
    assert again.exists
    assert again.index == store.index
    assert [row.n_chars for row in again.index.rows] == [10, 11, 12, 13, 14, 15]
    assert {row.offset for row in again.index.rows} == {None}
    assert again.index.rows[0].tokens is None
    assert not ShardStore(tmp_path, "2needle_1").exists


def test_what_was_learned_is_there_for_the_next_one(tmp_path: Path) -> None:
    learn(begun(tmp_path), 4, 1)

    store = ShardStore(tmp_path, "2needle_0")
    assert [store.read(row) for row in (1, 4)] == [text(1), text(4)]
    assert store.index.rows[4].tokens == 11
    assert store.index.bytes == store.rows_path.stat().st_size
    sample = store.load(4)
    assert (sample.id.shard, sample.id.row, sample.nonce) == (SHARD, 4, "nonce00004")
    assert sample.answer == text(4).answer.decode()
    assert sample.id.sha256 == store.index.rows[4].sha256


def test_texts_are_added_and_never_written_twice(tmp_path: Path) -> None:
    store = begun(tmp_path)
    learn(store, 3)
    before = store.rows_path.read_bytes()
    learn(store, 3, 2)
    learn(store, 2)

    after = store.rows_path.read_bytes()
    assert after == before + text(2).prompt + text(2).answer
    assert [store.read(row) for row in (2, 3)] == [text(2), text(3)]


def test_facts_without_a_text_are_kept_and_leave_a_text_where_it_is(tmp_path: Path) -> None:
    store = begun(tmp_path)
    learn(store, 0)
    store.learn([(0, entry(0, prompt_tokens=7, answer_tokens=1)), (5, known(5))])

    again = ShardStore(tmp_path, "2needle_0")
    assert again.read(0) == text(0)
    assert again.index.rows[0].tokens == 8
    assert (again.index.rows[5].tokens, again.index.rows[5].offset) == (11, None)


def test_a_row_costs_one_read_however_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = begun(tmp_path, rows=40)
    learn(store, *range(40))
    reads: list[tuple[int, int]] = []
    opened: list[Any] = []
    pread, open_ = os.pread, os.open

    def counted(file: int, size: int, offset: int) -> bytes:
        reads.append((size, offset))
        return pread(file, size, offset)

    def opening(*arguments: Any) -> int:
        opened.append(arguments)
        return open_(*arguments)

    monkeypatch.setattr("mrcr_action.data.store.os.pread", counted)
    monkeypatch.setattr("mrcr_action.data.store.os.open", opening)
    for row in (30, 2, 30):
        store.load(row)

    size = len(text(30).prompt) + len(text(30).answer)
    assert len(reads) == 3
    assert reads[0] == reads[2] == (size, store.index.rows[30].offset)
    assert len(opened) == 1


def test_a_row_without_a_text_is_told_with_file_and_row(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"2needle_0\.rows: row 2 is not in it$"):
        begun(tmp_path).load(2)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def remove(path: Path) -> None:
    path.unlink()


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(bytes(data))


def blank(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def no_text(path: Path) -> None:
    path.write_bytes(b"\xff" * path.stat().st_size)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut, r"2needle_0\.rows: row 1 is cut off: expected \d+ bytes, found \d+$"),
        (remove, r"2needle_0\.rows: cannot be read: No such file or directory$"),
        (flip, r"2needle_0\.rows: row 1 is damaged: expected SHA-256 [0-9a-f]{64}, found "),
        (blank, r"2needle_0.*row 1\b"),
        (no_text, r"2needle_0.*row 1\b"),
    ],
)
def test_a_damaged_text_is_told_with_file_and_row(
    tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    learn(begun(tmp_path), 0, 1)
    store = ShardStore(tmp_path, "2needle_0")
    damage(store.rows_path)

    with pytest.raises(DataError, match=message):
        store.load(1)


def test_a_text_of_another_row_is_no_text_of_this_one(tmp_path: Path) -> None:
    store = begun(tmp_path)
    learn(store, 0, 1)
    index = store.index
    first, second = index.rows[0], index.rows[1]
    index.rows[0] = msgspec.structs.replace(
        first,
        offset=second.offset,
        prompt_bytes=second.prompt_bytes,
        answer_bytes=second.answer_bytes,
    )
    store.begin(index)

    with pytest.raises(DataError, match="row 0 is damaged"):
        ShardStore(tmp_path, "2needle_0").load(0)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"shard": 1, "rows": []}', b'{"rows": [{}]}'],
)
def test_a_damaged_index_is_told_with_its_file(tmp_path: Path, content: bytes) -> None:
    store = begun(tmp_path)
    store.index_path.write_bytes(content)

    with pytest.raises(DataError, match=r"2needle_0\.json: cannot be read: ") as caught:
        _ = ShardStore(tmp_path, "2needle_0").index
    assert caught.value.hint


def test_an_index_of_another_format_is_told_with_both_numbers(tmp_path: Path) -> None:
    store = begun(tmp_path)
    later = msgspec.structs.replace(store.index, format=STORE_FORMAT + 1)
    store.index_path.write_bytes(msgspec.json.encode(later))

    with pytest.raises(
        DataError, match=rf"another version of mrcr \(format {STORE_FORMAT + 1}, not {STORE_FORMAT}"
    ):
        _ = ShardStore(tmp_path, "2needle_0").index


def test_a_field_of_a_later_version_is_passed_over(tmp_path: Path) -> None:
    store = begun(tmp_path)
    document = json.loads(store.index_path.read_bytes()) | {"added_later": [1]}
    store.index_path.write_text(json.dumps(document))

    assert ShardStore(tmp_path, "2needle_0").index == store.index


def test_two_that_learn_in_turn_lose_nothing(tmp_path: Path) -> None:
    first = begun(tmp_path)
    second = ShardStore(tmp_path, "2needle_0")
    assert second.index.rows[0].offset is None
    learn(first, 0)
    learn(second, 1)
    learn(first, 2)

    for store in (first, ShardStore(tmp_path, "2needle_0")):
        assert [store.read(row) for row in (0, 1, 2)] == [text(0), text(1), text(2)]


def test_processes_that_learn_at_once_lose_nothing(tmp_path: Path) -> None:
    rows = 60
    begun(tmp_path, rows=rows)
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from mrcr_action.data.store import ShardStore\n"
        "from tests.unit.data.test_store import learn\n"
        "store = ShardStore(Path(sys.argv[1]), '2needle_0')\n"
        "store.index\n"
        "for row in range(int(sys.argv[2]), int(sys.argv[3]), 2):\n"
        "    learn(store, row)\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, tmp_path, str(first), str(rows)])
        for first in (0, 1)
    ]
    assert [process.wait(60) for process in running] == [0, 0]

    store = ShardStore(tmp_path, "2needle_0")
    assert [store.read(row) for row in range(rows)] == [text(row) for row in range(rows)]
    assert store.index.bytes == sum(
        len(text(row).prompt) + len(text(row).answer) for row in range(rows)
    )
    assert {row.tokens for row in store.index.rows} == {11}


def test_a_full_disk_is_told_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = begun(tmp_path)
    learn(store, 0)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mrcr_action.data.store.replace", full)
    with pytest.raises(OutputError, match=r"2needle_0\.rows: cannot be written: No space") as error:
        learn(store, 1)
    assert "MRCR_CACHE" in error.value.hint

    monkeypatch.undo()
    # What was written without its index does no harm.
    again = ShardStore(tmp_path, "2needle_0")
    learn(again, 2, 1)
    assert [again.read(row) for row in (0, 1, 2)] == [text(0), text(1), text(2)]


def test_no_file_stays_open_once_a_store_is_gone(tmp_path: Path) -> None:
    store = begun(tmp_path)
    learn(store, 0)
    store.read(0)
    opened = store._file
    assert opened is not None

    del store

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened)
