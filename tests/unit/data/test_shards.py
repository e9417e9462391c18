"""Rows of local files, read once and kept in the cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.handmade import row, write_rows

from mrcr_action.bins import Bin
from mrcr_action.data.fetch import write_bundle
from mrcr_action.data.parquet import check_parquet
from mrcr_action.data.paths import shard_path, shards_of
from mrcr_action.data.selection import Selection
from mrcr_action.data.shards import Shards
from mrcr_action.data.store import ShardStore, Text
from mrcr_action.data.writer import SCHEMA, write_synthetic
from mrcr_action.errors import DataError
from mrcr_action.sample import Sample
from mrcr_action.tokens import count_sample_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

FIRST, SECOND = shards_of(2, range(2))


def samples(folder: Path, rows: int = 1) -> Path:
    write_synthetic(folder, needles=[2], bins=[Bin(512, 1024)], per_cell=rows, seed=0)
    return folder


def first_shard(folder: Path, rows: Sequence[dict[str, Any]]) -> Shards:
    """A dataset whose first shard holds these rows."""
    path = folder / FIRST
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows), schema=SCHEMA), path)
    return Shards(str(folder), "main")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The rows of every pass over a parquet file's prompts."""
    from mrcr_action.data import parquet

    passes: list[list[int]] = []
    read = parquet.read_texts

    def counted(path: Path, rows: Any) -> Iterator[tuple[int, Text]]:
        passes.append(sorted(rows))
        return read(path, rows)

    monkeypatch.setattr(parquet, "read_texts", counted)
    return passes


def test_an_empty_shard_has_no_rows(tmp_path: Path) -> None:
    shards = Shards(str(samples(tmp_path / "one")), "main")
    shards.check([FIRST, SECOND])
    assert [c.row for c in shards.candidates(FIRST)] == [0]
    assert shards.candidates(SECOND) == []


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
        assert len(shards.candidates(shard_path(2, 0))) == 3
        assert shards.load(FIRST, 2).n_needles == 2


def test_a_row_is_the_one_of_the_file(tmp_path: Path) -> None:
    rows = [row(2, number, 500 + number) for number in range(5)]
    shards = first_shard(tmp_path, rows)

    for number in (3, 0):
        assert shards.load(FIRST, number) == Sample.from_row(
            rows[number], shard=FIRST, index=number
        )
    assert shards.kind == "folder"
    assert shards.verified is None


def test_candidates_are_known_without_reading_a_prompt(
    tmp_path: Path, reads: list[list[int]]
) -> None:
    shards = first_shard(tmp_path, [row(2, number, 500 + number) for number in range(3)])

    candidates = shards.candidates(FIRST)

    assert [(c.row, c.n_needles, c.total_messages) for c in candidates] == [
        (number, 2, 6) for number in range(3)
    ]
    assert len({c.n_chars for c in candidates}) == 3
    assert all(shards.has_text(c) for c in candidates)
    assert reads == []


def test_counted_rows_have_the_tokens_of_prompt_and_answer_and_no_text(
    tmp_path: Path, own_cache: Path
) -> None:
    rows = [row(2, number, 500 + number) for number in range(4)]
    shards = first_shard(tmp_path, rows)

    shards.count({FIRST: [1, 3]})

    entries = shards.index(FIRST).rows
    assert [entry.tokens for entry in entries] == [None, 501, None, 503]
    sample = Sample.from_row(rows[3], shard=FIRST, index=3)
    assert (entries[3].prompt_tokens, entries[3].answer_tokens) == count_sample_parts(sample)
    assert entries[3].sha256 == sample.id.sha256
    assert entries[3].offset is None
    assert [path for path in own_cache.rglob("*.rows") if path.stat().st_size] == []


def test_rows_are_kept_in_one_pass_and_then_never_read_again(
    tmp_path: Path, reads: list[list[int]]
) -> None:
    shards = first_shard(tmp_path, [row(2, number, 500) for number in range(6)])

    shards.keep({FIRST: [4, 1]})
    shards.keep({FIRST: [1]})
    shards.load(FIRST, 4)
    shards.count({FIRST: [4, 1]})
    assert reads == [[1, 4]]

    shards.keep({FIRST: [1, 2, 3]})
    assert reads == [[1, 4], [2, 3]]


def test_a_row_can_be_kept_without_counting_it_and_counted_later_from_there(
    tmp_path: Path, reads: list[list[int]]
) -> None:
    shards = first_shard(tmp_path, [row(2, number, 500) for number in range(4)])

    shards.keep({FIRST: [2]}, count=False)
    sample = shards.load(FIRST, 2)

    entry = shards.index(FIRST).rows[2]
    assert (entry.tokens, entry.sha256) == (None, sample.id.sha256)
    shards.keep({FIRST: [2]})
    assert shards.index(FIRST).rows[2].tokens == 500
    assert reads == [[2]]


def test_what_one_run_has_read_the_next_one_has(tmp_path: Path, reads: list[list[int]]) -> None:
    shards = first_shard(tmp_path, [row(2, number, 500) for number in range(4)])
    shards.keep({FIRST: [2]})
    before = shards.load(FIRST, 2)

    again = Shards(str(tmp_path), "main")
    assert again.load(FIRST, 2) == before
    assert again.index(FIRST).rows[2].tokens == 500
    assert reads == [[2]]


def test_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    before = first_shard(tmp_path, [row(2, number, 500) for number in range(4)]).load(FIRST, 2)

    after = first_shard(tmp_path, [row(2, 100 + number, 500) for number in range(4)])

    assert after.load(FIRST, 2).nonce == "0200000102" != before.nonce


def test_a_touched_file_is_not_taken_for_the_one_that_was_read(
    tmp_path: Path, reads: list[list[int]]
) -> None:
    shards = first_shard(tmp_path, [row(2, number, 500) for number in range(4)])
    shards.load(FIRST, 2)
    os.utime(tmp_path / FIRST, ns=(1, 1))

    Shards(str(tmp_path), "main").load(FIRST, 2)

    assert reads == [[2], [2]]


def test_the_same_rows_in_another_folder_are_another_dataset(
    tmp_path: Path, reads: list[list[int]]
) -> None:
    for name in ("a", "b"):
        first_shard(tmp_path / name, [row(2, 0, 500)]).load(FIRST, 0)

    assert reads == [[0], [0]]


def test_a_cache_that_cannot_be_written_costs_the_reading_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: list[list[int]]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MRCR_CACHE", str(tmp_path / "file" / "cache"))
    shards = first_shard(tmp_path, [row(2, number, 500) for number in range(4)])

    assert shards.load(FIRST, 1) == shards.load(FIRST, 1)
    assert reads == [[1]]
    Shards(str(tmp_path), "main").load(FIRST, 1)
    assert reads == [[1], [1]]


def test_a_temporary_cache_is_gone_when_the_process_ends(tmp_path: Path) -> None:
    first_shard(tmp_path, [row(2, number, 500) for number in range(4)])
    (tmp_path / "file").write_text("")
    (tmp_path / "tmp").mkdir()
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from mrcr_action.data.shards import Shards\n"
        f"Shards(sys.argv[1], '').load({FIRST!r}, 1)\n"
        "assert list(Path(sys.argv[2]).iterdir())\n"
    )
    environ = os.environ | {
        "MRCR_CACHE": str(tmp_path / "file" / "cache"),
        "TMPDIR": str(tmp_path / "tmp"),
    }
    subprocess.run(
        [sys.executable, "-c", program, tmp_path, tmp_path / "tmp"], check=True, env=environ
    )

    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("damage", ["cut", "removed", "index"])
def test_a_damaged_cache_is_made_good_from_the_file(
    tmp_path: Path, own_cache: Path, damage: str
) -> None:
    before = first_shard(tmp_path, [row(2, number, 500) for number in range(4)]).load(FIRST, 2)
    (texts,) = own_cache.rglob("*.rows")
    (index,) = own_cache.rglob("2needle_0.json")
    if damage == "cut":
        texts.write_bytes(texts.read_bytes()[:-5])
    elif damage == "removed":
        texts.unlink()
    else:
        index.write_bytes(b"{")

    assert Shards(str(tmp_path), "main").load(FIRST, 2) == before


def test_a_text_that_changed_in_the_cache_is_never_asked(tmp_path: Path, own_cache: Path) -> None:
    first_shard(tmp_path, [row(2, number, 500) for number in range(4)]).load(FIRST, 2)
    (texts,) = own_cache.rglob("*.rows")
    texts.write_bytes(texts.read_bytes().replace(b"lamp", b"lump"))

    with pytest.raises(DataError, match=r"2needle_0\.rows: row 2 is damaged: expected SHA-256"):
        Shards(str(tmp_path), "main").load(FIRST, 2)


@pytest.mark.parametrize(
    "prompt",
    [
        "no JSON",
        "",
        "null",
        "[]",
        '{"role": "user"}',
        json.dumps([{"role": "tool", "content": "x"}]),
        json.dumps([{"role": "user", "content": 5}]),
        '[{"role": "user", "content": "\\ud800"}]',
        "[" * 100_000,
    ],
    ids=lambda text: ascii(text[:30]),
)
def test_a_row_that_cannot_be_parsed_has_a_fault_and_ends_nothing(
    tmp_path: Path, prompt: str
) -> None:
    rows = [row(2, number, 500) for number in range(3)]
    rows[1]["prompt"] = prompt
    shards = first_shard(tmp_path, rows)

    shards.keep({FIRST: [0, 1, 2]})

    faults = [entry.fault for entry in shards.index(FIRST).rows]
    assert faults[0] == faults[2] == ""
    assert faults[1]
    assert "\n" not in faults[1]
    with pytest.raises(DataError, match="row 1"):
        shards.load(FIRST, 1)


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        ("answer", "0200000001 another", "the answer is not the nonce followed by"),
        ("desired_msg_index", 9, "desired_msg_index 9 lies outside the 6 messages"),
        ("n_chars", 1, "n_chars is 1, the contents hold"),
        ("n_needles", 3, "n_needles is 3 in the file of 2 needles"),
    ],
)
def test_a_row_that_breaks_an_invariant_has_a_fault(
    tmp_path: Path, key: str, value: Any, fault: str
) -> None:
    rows = [row(2, number, 500) for number in range(2)]
    rows[1][key] = value
    shards = first_shard(tmp_path, rows)

    shards.count({FIRST: [0, 1]})

    found = shards.index(FIRST).rows
    assert found[0].fault == ""
    if key == "n_needles":
        # Whatever its text is like.
        assert found[1].fault
    else:
        assert found[1].fault.startswith(fault)


def test_threads_that_read_at_once_read_what_is_there(
    tmp_path: Path, reads: list[list[int]]
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    rows = [row(2, number, 500) for number in range(12)]
    shards = first_shard(tmp_path, rows)
    shards.keep({FIRST: range(6)})

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: shards.load(FIRST, number % 12), range(48)))

    assert [sample.nonce for sample in found] == [
        rows[number % 12]["random_string_to_prepend"] for number in range(48)
    ]
    assert sorted(number for passed in reads for number in passed) == list(range(12))


def test_two_runs_at_once_share_what_they_read(tmp_path: Path) -> None:
    rows = [row(2, number, 500) for number in range(12)]
    one, other = first_shard(tmp_path, rows), Shards(str(tmp_path), "main")
    one.candidates(FIRST)
    other.candidates(FIRST)

    one.keep({FIRST: [0, 1]})
    other.keep({FIRST: [1, 2]})
    one.keep({FIRST: [3]})

    for shards in (one, other, Shards(str(tmp_path), "main")):
        assert [shards.load(FIRST, number).nonce[-1] for number in range(4)] == list("0123")


def test_a_missing_file_is_told_by_its_path(tmp_path: Path) -> None:
    folder = write_rows(tmp_path, [row(2, number, 500) for number in range(4)])
    (folder / SECOND).unlink()

    with pytest.raises(DataError, match=r"2needle_1\.parquet"):
        Shards(str(folder), "main").candidates(SECOND)


def test_a_store_is_begun_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = first_shard(tmp_path, [row(2, 0, 500)])
    begun: list[ShardStore] = []
    begin = ShardStore.begin

    def counted(self: ShardStore, index: Any) -> None:
        begun.append(self)
        begin(self, index)

    monkeypatch.setattr(ShardStore, "begin", counted)
    for each in (shards, shards, Shards(str(tmp_path), "main")):
        each.candidates(FIRST)

    assert len(begun) == 1


def test_a_prompt_without_any_text_is_a_fault_and_ends_no_count(tmp_path: Path) -> None:
    empty = row(2, 0, 500)
    turns = [{"role": turn["role"], "content": ""} for turn in json.loads(empty["prompt"])]
    empty |= {"prompt": json.dumps(turns), "n_chars": 0, "answer": empty["answer"][:10]}
    shards = first_shard(tmp_path, [empty])

    shards.count({FIRST: [0]})

    assert shards.index(FIRST).rows[0].fault == "the prompt holds no text"


def test_rows_that_a_file_no_longer_has_are_told_instead_of_looked_for_again(
    tmp_path: Path,
) -> None:
    rows = [row(2, number, 500) for number in range(4)]
    shards = first_shard(tmp_path, rows)
    assert len(shards.index(FIRST).rows) == 4
    first_shard(tmp_path, rows[:2])

    with pytest.raises(DataError, match="was it changed while it was read"):
        shards.count({FIRST: range(4)})


def test_counting_makes_no_damaged_text_right(tmp_path: Path, own_cache: Path) -> None:
    shards = first_shard(tmp_path, [row(2, number, 500) for number in range(2)])
    shards.keep({FIRST: [0]}, count=False)
    (texts,) = own_cache.rglob("*.rows")
    texts.write_bytes(texts.read_bytes().replace(b"lamp", b"lump"))

    with pytest.raises(DataError, match="row 0 is damaged"):
        shards.count({FIRST: [0]})


def test_a_fault_is_told_in_a_few_words_however_long_a_row_makes_it(tmp_path: Path) -> None:
    long = row(2, 0, 500) | {"prompt": json.dumps([{"role": "x" * 10_000, "content": ""}])}
    shards = first_shard(tmp_path, [long])

    shards.count({FIRST: [0]})

    assert 0 < len(shards.index(FIRST).rows[0].fault) <= 300


def test_an_edited_index_of_a_bundle_is_not_believed(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows", [row(2, number, 500) for number in range(4)])
    selection = Selection(protocol="openai", needles=(2,))
    write_bundle(Shards(str(rows), "main"), tmp_path / "bundle", selection)
    index = tmp_path / "bundle" / "2needle" / "2needle_0.json"
    index.write_bytes(index.read_bytes().replace(b'"nonce":"0200000000"', b'"nonce":"0200000009"'))

    with pytest.raises(DataError, match=r"2needle_0\.json: is damaged: expected SHA-256"):
        Shards(str(tmp_path / "bundle"), "main").index(FIRST)
