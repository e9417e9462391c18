"""Where things are kept between runs."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mrcr_action.cache import (
    KEPT_DAYS,
    cache_folder,
    entry,
    locked,
    remove_temporary,
    replace,
)

DAY = 24 * 60 * 60


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"MRCR_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, "/a"),
        ({"MRCR_CACHE": "rel"}, "rel"),
        ({"MRCR_CACHE": " ", "XDG_CACHE_HOME": "/b"}, "/b/mrcr-action"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/mrcr-action"),
        ({"XDG_CACHE_HOME": "rel"}, "~/.cache/mrcr-action"),
        ({"XDG_CACHE_HOME": ""}, "~/.cache/mrcr-action"),
        ({"MRCR_CACHE": "~/x"}, "~/x"),
        ({}, "~/.cache/mrcr-action"),
    ],
)
def test_the_folder_is_the_variables_else_the_users_own(
    environ: dict[str, str], expected: str
) -> None:
    assert cache_folder(environ) == Path(expected).expanduser()


def test_an_entry_is_a_folder_that_is_there_again(own_cache: Path) -> None:
    folder = entry("rows", "key")
    (folder / "file").write_text("kept")

    assert folder == own_cache / "rows" / "key"
    assert (entry("rows", "key") / "file").read_text() == "kept"
    assert entry("rows", "other") != folder
    assert [path.name for path in folder.iterdir()] == ["file"]


def test_an_entry_that_nobody_used_for_long_is_removed(own_cache: Path) -> None:
    now = time.time()
    for key, days in (("old", KEPT_DAYS + 1), ("used", KEPT_DAYS - 1)):
        (entry("rows", key) / "file").write_text("")
        os.utime(own_cache / "rows" / key, (now - days * DAY,) * 2)
    (entry("tokenize", "old") / "file").write_text("")
    os.utime(own_cache / "tokenize" / "old", (0, 0))

    entry("rows", "new")

    assert sorted(path.name for path in (own_cache / "rows").iterdir()) == ["new", "used"]
    # Of another kind, which nobody asked for.
    assert (own_cache / "tokenize" / "old").is_dir()


def test_an_old_entry_is_kept_by_being_used_once_more(own_cache: Path) -> None:
    folder = entry("rows", "old")
    (folder / "file").write_text("kept")
    os.utime(folder, (0, 0))

    assert (entry("rows", "old") / "file").read_text() == "kept"
    entry("rows", "new")
    assert (folder / "file").read_text() == "kept"


def test_what_does_not_belong_there_and_cannot_be_removed_is_no_obstacle(own_cache: Path) -> None:
    (own_cache / "rows").mkdir(parents=True)
    (own_cache / "rows" / "a file").write_text("")
    os.utime(own_cache / "rows" / "a file", (0, 0))

    assert entry("rows", "key").is_dir()


def test_where_the_cache_cannot_be_an_entry_lasts_as_long_as_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MRCR_CACHE", str(tmp_path / "file" / "below"))

    folder = entry("rows", "key")

    assert folder.is_dir()
    assert tmp_path not in folder.parents
    program = "from mrcr_action.cache import entry; print(entry('rows', 'key'))"
    printed = subprocess.run(
        [sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    assert not Path(printed.strip()).exists()


def test_a_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "index.json"
    inside: list[int] = []
    most: list[int] = []

    def work(number: int) -> None:
        with locked(path):
            inside.append(number)
            most.append(len(inside))
            time.sleep(0.005)
            inside.remove(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert most == [1] * 8
    assert not path.exists()


def test_a_file_is_replaced_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "index.json"
    replace(path, b"one")
    replace(path, b"two")

    assert path.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_written_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "index.json"
    replace(path, b"one")

    def full(self: Path, content: bytes) -> None:
        with self.open("wb") as file:
            file.write(content[:1])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        replace(path, b"two")

    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refuse)
    with locked(tmp_path / "index.json"):
        replace(tmp_path / "index.json", b"{}")
    assert (tmp_path / "index.json").read_bytes() == b"{}"


def test_who_has_no_home_has_a_temporary_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MRCR_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def homeless(_: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", homeless)
    folder = entry("rows", "key")
    assert folder.is_dir()
    remove_temporary()
    assert not folder.exists()
