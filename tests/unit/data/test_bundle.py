"""Bundles: what is in them, that they replace each other whole, and that every damage is named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.unit.handmade import row, write_rows

from mrcr_action.cache import CACHE_VARIABLE, sha256_of
from mrcr_action.data.bundle import Bundle, check_bundle, read_bundle
from mrcr_action.data.fetch import write_bundle
from mrcr_action.data.paths import shards_of
from mrcr_action.data.selection import Selection
from mrcr_action.data.shards import Shards
from mrcr_action.data.store import ShardStore
from mrcr_action.errors import DataError, OutputError

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST, SECOND = shards_of(2, range(2))
SIZES = (300, 600, 900, 4096, 8192, 1500)
"""o200k tokens of the rows, which go to the two shards in turn."""

SHORT = Selection(protocol="openai", needles=(2,), bins=("0-512", "512-1K"))
CARD = Selection(protocol="openai", needles=(2,), bins=("4K-8K",))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [row(2, number, size) for number, size in enumerate(SIZES)]
    return write_rows(tmp_path_factory.mktemp("rows") / "dataset", rows)


@pytest.fixture
def shards(dataset: Path) -> Shards:
    return Shards(str(dataset), "main")


@pytest.fixture(scope="module")
def written(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(folder / "cache"))
        write_bundle(Shards(str(dataset), "main"), folder / "bundle", SHORT)
    return folder / "bundle"


@pytest.fixture
def bundle(written: Path, tmp_path: Path) -> Path:
    """A bundle of a test's own."""
    return shutil.copytree(written, tmp_path / "bundle")


def texts(folder: Path) -> list[tuple[str, int]]:
    """The rows that a bundle has texts of."""
    return [
        (shard.path, number)
        for shard in read_bundle(folder).shards
        for number, entry in enumerate(Shards(str(folder), "main").index(shard.path).rows)
        if entry.offset is not None
    ]


def edit(folder: Path, change: Callable[[dict[str, Any]], object], file: str) -> None:
    """Change a JSON file of a bundle."""
    content = json.loads((folder / file).read_bytes())
    change(content)
    (folder / file).write_text(json.dumps(content))


def test_only_selected_rows_have_texts_and_all_rows_are_counted(
    bundle: Path, shards: Shards
) -> None:
    assert texts(bundle) == [(FIRST, 0), (FIRST, 1), (SECOND, 0)]
    held = Shards(str(bundle), "main")
    counted = [entry.tokens for path in (FIRST, SECOND) for entry in held.index(path).rows]
    assert counted == [300, 900, 8192, 600, 4096, 1500]
    assert read_bundle(bundle).shards[0].texts == 2
    assert held.load(FIRST, 1) == shards.load(FIRST, 1)


def test_a_row_that_was_left_out_says_how_to_have_it(bundle: Path) -> None:
    with pytest.raises(DataError, match=rf"{FIRST}, row 2 is not in this bundle") as caught:
        Shards(str(bundle), "main").load(FIRST, 2)
    assert "mrcr data fetch" in caught.value.hint
    with pytest.raises(DataError, match=r"4needle_0\.parquet is not in this bundle") as caught:
        Shards(str(bundle), "main").index("4needle/4needle_0.parquet")
    assert "mrcr data fetch" in caught.value.hint


def test_a_bundle_is_whole_when_it_was_written_also_from_a_warm_cache(
    bundle: Path, shards: Shards, tmp_path: Path
) -> None:
    shards.keep({FIRST: [1], SECOND: [0, 1]})
    write_bundle(Shards(str(shards.dataset), "main"), tmp_path / "warm", SHORT)
    assert check_bundle(bundle) == check_bundle(tmp_path / "warm") == []
    assert texts(tmp_path / "warm") == texts(bundle)


def test_an_earlier_bundle_is_replaced_whole(bundle: Path, shards: Shards) -> None:
    (bundle / "4needle").mkdir()
    (bundle / "4needle" / "4needle_0.json").write_text("of an earlier fetch")
    write_bundle(shards, bundle, CARD)
    assert texts(bundle) == [(FIRST, 2), (SECOND, 1)]
    assert sorted(path.name for path in bundle.iterdir()) == ["2needle", "README.md", "bundle.json"]
    assert [path.name for path in bundle.parent.iterdir() if path.name.startswith(".")] == []


def test_an_empty_folder_is_used_and_one_with_other_files_is_not(
    shards: Shards, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    write_bundle(shards, tmp_path / "empty", SHORT)
    assert check_bundle(tmp_path / "empty") == []
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("precious")
    with pytest.raises(OutputError, match="holds other files and no bundle"):
        write_bundle(shards, tmp_path / "home", SHORT)
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["thesis.tex"]


def test_a_file_a_mount_and_the_working_folder_are_never_replaced(
    shards: Shards, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("precious")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for place, complaint in (
        (tmp_path / "file", "is no folder"),
        (Path(), "cannot be replaced"),
        (Path("/"), "holds other files"),
        (tmp_path / "file" / "below", "cannot be written"),
    ):
        with pytest.raises(OutputError, match=complaint) as caught:
            write_bundle(shards, place, SHORT)
        assert "--to" in caught.value.hint
    assert (tmp_path / "file").read_text() == "precious"
    assert list((tmp_path / "here").iterdir()) == []


def test_a_place_that_cannot_be_written_is_an_error_that_names_it(shards: Shards) -> None:
    with pytest.raises(OutputError, match="/proc/mrcr: cannot be written"):
        write_bundle(shards, Path("/proc/mrcr"), SHORT)


def test_a_link_stays_a_link(shards: Shards, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for _ in range(2):
        write_bundle(shards, tmp_path / "link", SHORT)
    assert (tmp_path / "link").readlink() == Path("real")
    assert check_bundle(tmp_path / "real") == []


def test_folders_above_are_made(shards: Shards, tmp_path: Path) -> None:
    write_bundle(shards, tmp_path / "a" / "b" / "c", SHORT)
    assert check_bundle(tmp_path / "a" / "b" / "c") == []


def test_nothing_selected_is_an_error_and_leaves_the_earlier_bundle(
    bundle: Path, shards: Shards
) -> None:
    nothing = Selection(protocol="openai", needles=(2,), bins=("64K-128K",))
    for place in (bundle, bundle.with_name("other")):
        with pytest.raises(DataError, match="no row of the dataset is of use") as caught:
            write_bundle(shards, place, nothing)
        assert "bins" in caught.value.hint
    assert check_bundle(bundle) == []
    assert not bundle.with_name("other").exists()
    assert list(bundle.parent.glob(".*")) == []


def test_an_error_in_the_second_shard_leaves_no_bundle(dataset: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(dataset, tmp_path / "broken")
    (broken / SECOND).write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match="2needle_1"):
        write_bundle(Shards(str(broken), "main"), tmp_path / "bundle", SHORT)
    assert not (tmp_path / "bundle").exists()
    assert list(tmp_path.glob(".*")) == []


def test_what_a_killed_fetch_left_is_removed_by_the_next_and_what_another_writes_is_not(
    shards: Shards, tmp_path: Path
) -> None:
    stale = tmp_path / ".bundle.0123abcd.partial"
    (stale / "2needle").mkdir(parents=True)
    seen: list[list[Path]] = []

    def meanwhile(_line: str) -> None:
        # The folder that is being written belongs to a fetch that lives.
        if not seen:
            seen.append(list(tmp_path.glob(".bundle.*.partial")))
            write_bundle(shards, tmp_path / "bundle", CARD)

    write_bundle(shards, tmp_path / "bundle", SHORT, report=meanwhile)
    assert len(seen[0]) == 1
    assert stale not in seen[0]
    assert texts(tmp_path / "bundle") == [(FIRST, 0), (FIRST, 1), (SECOND, 0)]
    assert list(tmp_path.glob(".*")) == []


def test_an_empty_second_shard_is_bundled(tmp_path: Path) -> None:
    one = write_rows(tmp_path / "one", [row(2, 0, 500)])
    write_bundle(Shards(str(one), "main"), tmp_path / "bundle", SHORT)
    assert check_bundle(tmp_path / "bundle") == []
    assert [shard.rows for shard in read_bundle(tmp_path / "bundle").shards] == [1, 0]


def faulty(folder: Path) -> Shards:
    """Four rows in the first shard: right, a wrong answer, no conversation, and too long."""
    rows = [row(2, number, 500) for number in range(7)]
    rows[2]["answer"] = "another one"
    rows[4]["prompt"] = '{"role": "user"}'
    rows[6] = row(2, 6, 5_000)
    return Shards(str(write_rows(folder, rows)), "main")


def test_faulty_rows_are_not_bundled_but_listed(tmp_path: Path) -> None:
    write_bundle(faulty(tmp_path / "rows"), tmp_path / "bundle", SHORT)
    assert [where for where in texts(tmp_path / "bundle") if where[0] == FIRST] == [(FIRST, 0)]
    entries = Shards(str(tmp_path / "bundle"), "main").index(FIRST).rows
    assert [entry.fault for entry in entries] == [
        "",
        "the answer is not the nonce followed by the wanted reply",
        "the prompt is not a list of messages: Expected `array`, got `object`",
        "",
    ]
    assert check_bundle(tmp_path / "bundle") == []


def test_for_the_vllm_protocol_a_faulty_row_is_bundled_as_it_is(tmp_path: Path) -> None:
    shards = faulty(tmp_path / "rows")
    vllm = Selection(protocol="vllm", needles=(2,), max_prompt_tokens=2_000)
    write_bundle(shards, tmp_path / "bundle", vllm)
    assert texts(tmp_path / "bundle") == [(FIRST, 0), (FIRST, 1)]
    assert Shards(str(tmp_path / "bundle"), "main").load(FIRST, 1) == shards.load(FIRST, 1)
    assert check_bundle(tmp_path / "bundle") == []


def test_a_row_of_another_needle_count_is_not_bundled(tmp_path: Path) -> None:
    shards = Shards(str(write_rows(tmp_path / "rows", [row(2, n, 500) for n in range(4)])), "main")
    other = write_rows(tmp_path / "other", [row(4, n, 500) for n in range(4)])
    shutil.copy(other / "4needle" / "4needle_1.parquet", tmp_path / "rows" / SECOND)
    write_bundle(shards, tmp_path / "bundle", SHORT)
    assert {path for path, _ in texts(tmp_path / "bundle")} == {FIRST}


def test_a_flipped_byte_is_named_with_its_row(bundle: Path) -> None:
    path = bundle / "2needle" / "2needle_0.rows"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    first, second = check_bundle(bundle)
    assert first.startswith(f"{path}: expected SHA-256 ")
    assert second.startswith(f"{path}: row 1 is damaged: expected SHA-256 ")
    with pytest.raises(DataError, match="row 1 is damaged"):
        Shards(str(bundle), "main").load(FIRST, 1)
    Shards(str(bundle), "main").load(FIRST, 0)


def test_a_cut_file_is_named_with_the_rows_that_are_gone(bundle: Path) -> None:
    path = bundle / "2needle" / "2needle_1.rows"
    with path.open("r+b") as file:
        file.truncate(100)
    faults = check_bundle(bundle)
    assert [fault.split(": ")[0] for fault in faults] == [str(path)] * 2
    assert faults[1].startswith(f"{path}: row 0 is cut off: expected ")
    assert faults[1].endswith(" bytes, found 100")


@pytest.mark.parametrize("name", ["2needle_0.json", "2needle_1.rows"])
def test_a_missing_file_is_named(bundle: Path, name: str) -> None:
    (bundle / "2needle" / name).unlink()
    faults = check_bundle(bundle)
    assert f"{bundle / '2needle' / name}: cannot be read: No such file or directory" in faults
    assert all(name.partition(".")[0] in fault for fault in faults)


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row.update(sha256="0" * 64),
        lambda row: row.update(offset=-5),
        lambda row: row.update(prompt_bytes=-5),
        lambda row: row.update(prompt_bytes=10**15),
        lambda row: row.update(prompt_tokens=7),
        lambda row: row.update(nonce="AAAAAAAAAA"),
        lambda row: row.pop("offset"),
        lambda row: row.pop("n_chars"),
    ],
)
def test_an_edited_index_is_named(bundle: Path, change: Callable[[dict[str, Any]], object]) -> None:
    edit(bundle, lambda index: change(index["rows"][1]), "2needle/2needle_0.json")
    (fault,) = check_bundle(bundle)
    assert fault.startswith(f"{bundle}/2needle/2needle_0.json: expected SHA-256 ")


def test_an_index_that_was_edited_with_its_hash_is_named_by_what_it_says(bundle: Path) -> None:
    edit(
        bundle, lambda index: index["rows"][0].update(nonce="AAAAAAAAAA"), "2needle/2needle_0.json"
    )
    hash_ = sha256_of(bundle / "2needle" / "2needle_0.json")
    edit(bundle, lambda told: told["shards"][0].update(index_sha256=hash_), "bundle.json")
    (fault,) = check_bundle(bundle)
    assert fault == f"{FIRST}, row 0: the answer is not the nonce followed by the wanted reply"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda told: told["shards"].pop(), "expected the shards"),
        (lambda told: told["shards"].clear(), "expected the shards .* found none"),
        (lambda told: told["shards"].reverse(), "expected the shards"),
        (lambda told: told["shards"][1].update(rows=9), "rows is 9, but 3 in the index"),
        (lambda told: told["shards"][1].update(texts=9), "texts is 9, but 1 in the index"),
        (lambda told: told["shards"][1].update(rows_bytes=9), "rows_bytes is 9, but "),
        (lambda told: told["shards"][1].update(rows_sha256="0"), "expected SHA-256 0, found"),
        (lambda told: told["shards"][1].update(verified=True), "verified is True, but None"),
        (lambda told: told["shards"][1].update(source_sha256="0"), "source_sha256 is 0, but None"),
        (lambda told: told.update(dataset="openai/mrcr"), "expected the key"),
        (lambda told: told.update(revision="a" * 40), "expected the key"),
        (lambda told: told.update(key="mrcr-data-1-0"), "expected the key"),
        (lambda told: told["selection"].update(bins=["4K-8K"]), "expected the key"),
        (lambda told: told["selection"].update(needles=[4]), "expected the shards 4needle"),
    ],
)
def test_an_edited_description_is_named(
    bundle: Path, change: Callable[[dict[str, Any]], object], complaint: str
) -> None:
    edit(bundle, change, "bundle.json")
    faults = check_bundle(bundle)
    with pytest.raises(AssertionError, match=complaint):
        assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda told: told.update(format=2), r"another version of mrcr \(format 2, not 1\)"),
        (lambda told: told.update(dataset=5), "cannot be read: Expected `str`"),
        (lambda told: told.pop("shards"), "cannot be read: .*shards"),
        (lambda told: told["shards"][0].update(path="../../x"), "'../../x' is no shard of MRCR"),
        (lambda told: told["shards"][0].update(path="xneedle/2needle_0.parquet"), "is no shard"),
    ],
)
def test_a_description_that_cannot_be_used_is_an_error(
    bundle: Path, change: Callable[[dict[str, Any]], object], complaint: str
) -> None:
    edit(bundle, change, "bundle.json")
    for read in (check_bundle, read_bundle):
        with pytest.raises(DataError, match=complaint) as caught:
            read(bundle)
        assert caught.value.hint.startswith("Fetch it again")


def test_an_index_of_another_format_is_named(bundle: Path) -> None:
    edit(bundle, lambda index: index.update(format=2), "2needle/2needle_0.json")
    with pytest.raises(DataError, match=r"2needle_0\.json: written by another version of mrcr"):
        Shards(str(bundle), "main").index(FIRST)


def test_a_folder_without_a_description_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file") as caught:
        read_bundle(tmp_path)
    assert "mrcr data fetch" in caught.value.hint


def test_a_bundle_says_what_it_was_taken_from(bundle: Path, dataset: Path) -> None:
    told: Bundle = read_bundle(bundle)
    assert (told.dataset, told.revision, told.selection) == (str(dataset), None, SHORT)
    assert told.licence == "the dataset's own"
    info = Shards(str(bundle), "main").info()
    assert (info.kind, info.origin, info.revision) == ("bundle", str(dataset), None)
    note = (bundle / "README.md").read_text()
    assert str(dataset) in note
    assert "the licence of the dataset that it was taken from" in note
    assert "MIT" not in note


def test_the_shards_of_a_bundle_are_read_in_place(bundle: Path) -> None:
    store = ShardStore(bundle, FIRST.removesuffix(".parquet"))
    before = sorted((path, path.stat().st_mtime_ns) for path in bundle.rglob("*"))
    assert store.load(0).n_needles == 2
    Shards(str(bundle), "main").check([FIRST, SECOND])
    assert sorted((path, path.stat().st_mtime_ns) for path in bundle.rglob("*")) == before
