import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest

from mrcr_action.config import RunConfig
from mrcr_action.errors import OutputError
from mrcr_action.journal import Journal
from mrcr_action.report.files import (
    REPORTS,
    locked,
    prepare_file,
    prepare_folder,
    remove_reports,
    write,
    write_overview,
    write_page,
    write_pages,
    write_result,
)
from mrcr_action.result import Measured, Result, decode_result

MakeResult = Callable[..., Result]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_is_made_with_its_parents_and_left_empty(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    prepare_folder(folder)
    assert names(folder) == []
    prepare_folder(folder)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    folder = tmp_path / "file" / "out"
    with pytest.raises(OutputError) as caught:
        prepare_folder(folder)
    assert str(caught.value) == f"{folder}: cannot be written: Not a directory"
    assert "--output-dir" in caught.value.hint


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_without_permission_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    with pytest.raises(OutputError) as caught:
        prepare_folder(folder)
    assert str(caught.value) == f"{folder}: cannot be written: Permission denied"


def test_a_folder_that_refuses_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, data: bytes) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(OutputError) as caught:
        prepare_folder(tmp_path)
    assert str(caught.value) == f"{tmp_path}: cannot be written: Permission denied"


def test_a_file_is_replaced_as_a_whole_and_nothing_stays_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "report"
    assert write(path, b"first, and longer") == path
    write(path, b"second")
    assert path.read_bytes() == b"second"
    assert names(tmp_path) == ["report"]


def test_a_file_is_on_disk_before_it_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, replace = os.fsync, Path.replace

    def watched_sync(number: int) -> None:
        done.append("sync")
        sync(number)

    def watched_replace(path: Path, target: Path) -> Path:
        done.append(f"{path.name} -> {target.name}")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", watched_sync)
    monkeypatch.setattr(Path, "replace", watched_replace)
    write(tmp_path / "report", b"x")
    assert done == ["sync", "report.part -> report"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "report"
    write(path, b"old")

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os if step == "fsync" else Path, step, fail)
    with pytest.raises(OutputError) as caught:
        write(path, b"new")
    assert str(caught.value) == f"{path}: cannot be written: No space left on device"
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["report"]


@pytest.mark.parametrize("name", ["missing/report", "file/report", "x" * 300, "folder"])
def test_a_place_that_cannot_be_written_is_an_output_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError) as caught:
        write(tmp_path / name, b"x")
    assert str(caught.value).startswith(f"{tmp_path / name}: cannot be written: ")
    assert names(tmp_path) == ["file", "folder"]


def test_a_run_writes_its_result(tmp_path: Path, make_result: MakeResult) -> None:
    result = make_result()
    assert write_result(result, tmp_path) == [tmp_path / "result.json"]
    assert decode_result((tmp_path / "result.json").read_bytes()) == result


def test_a_file_in_vllms_own_form_is_written_on_demand(
    tmp_path: Path, make_result: MakeResult
) -> None:
    place = tmp_path / "vllm.json"
    config = RunConfig(num_samples=3, save_results=str(place))
    result = make_result(config=config, model="m\ud800")
    assert write_result(result, tmp_path) == [tmp_path / "result.json", place]
    document = json.loads(place.read_bytes())
    assert list(document) == list(Measured.__struct_fields__)
    assert msgspec.convert(document, Measured) == Measured(
        **{name: getattr(result, name) for name in Measured.__struct_fields__} | {"model": "m?"}
    )


@pytest.mark.parametrize("journal", [None, b"", b"{}\n", b"not JSON", b"\xff"])
def test_a_journal_that_cannot_be_read_costs_the_page_its_texts_only(
    tmp_path: Path, make_result: MakeResult, journal: bytes | None
) -> None:
    if journal is not None:
        (tmp_path / "samples.jsonl").write_bytes(journal)
    assert write_page(make_result(), tmp_path) == tmp_path / "report.html"
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert 'id="rows"' in page
    assert 'id="texts-0"' not in page


def test_the_page_of_a_run_has_the_texts_of_its_journal(
    tmp_path: Path, make_result: MakeResult
) -> None:
    result = make_result()
    texts = {"nonce": "n", "answer": "na", "response": "nb"}
    with Journal(tmp_path / "samples.jsonl") as journal:
        for record in result.records:
            journal.append(msgspec.structs.replace(record, **texts))
    write_page(result, tmp_path)
    assert 'id="texts-0"' in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_several_configurations_have_a_page_each_and_one_above(
    tmp_path: Path, make_result: MakeResult
) -> None:
    results, folders = [make_result(name="a"), make_result(name="b")], []
    for name in ("a", "b"):
        folders.append(tmp_path / name)
        folders[-1].mkdir()
        write_pages(results[: len(folders)], folders, tmp_path)
    assert names(tmp_path) == ["a", "b", "report.html"]
    assert names(tmp_path / "a") == names(tmp_path / "b") == ["report.html"]
    above = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert 'href="./a/report.html"' in above
    assert 'href="./b/report.html"' in above


def test_one_configuration_has_one_page(tmp_path: Path, make_result: MakeResult) -> None:
    assert write_pages([make_result()], [tmp_path], tmp_path) == [tmp_path / "report.html"]
    assert 'id="rows"' in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_fault_of_the_page_is_an_output_error(tmp_path: Path, make_result: MakeResult) -> None:
    result = msgspec.structs.replace(make_result(), verdict=None)
    with pytest.raises(OutputError, match=r"report\.html: internal error: AttributeError: "):
        write_page(result, tmp_path)
    assert names(tmp_path) == []


def test_the_overview_covers_every_result(tmp_path: Path, make_result: MakeResult) -> None:
    results = [make_result(name="a"), make_result(name="b\ud800")]
    junit, summary = write_overview(results, tmp_path)
    assert names(tmp_path) == ["junit.xml", "summary.md"]
    suites = ET.parse(junit).getroot().findall("testsuite")  # noqa: S314 - written here
    assert [suite.get("name") for suite in suites] == ["mrcr a", "mrcr b"]
    assert summary.read_text(encoding="utf-8").count("## 📏 MRCR measured, nothing gated: ") == 2


def test_reports_of_an_earlier_run_go_and_other_files_stay(tmp_path: Path) -> None:
    for name in (*REPORTS, "notes.txt"):
        (tmp_path / name).write_text("old")
    remove_reports(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_report_that_cannot_be_removed_is_named(tmp_path: Path) -> None:
    (tmp_path / "junit.xml").mkdir()
    with pytest.raises(OutputError, match=r"junit\.xml: cannot be removed: "):
        remove_reports(tmp_path)


def test_a_folder_has_one_run_at_a_time(tmp_path: Path) -> None:
    with (
        locked(tmp_path),
        pytest.raises(OutputError, match="another run writes its reports there"),
        locked(tmp_path),
    ):
        pass
    with locked(tmp_path):
        pass


@pytest.mark.parametrize("name", ["result.json", "./junit.xml", "folder"])
def test_a_further_file_is_neither_a_report_nor_a_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError) as caught:
        prepare_file(tmp_path / name, beside=tmp_path)
    assert caught.value.hint == "Name another file for --save-results."


def test_a_further_file_of_an_earlier_run_goes(tmp_path: Path) -> None:
    (tmp_path / "saved.json").write_text("old")
    prepare_file(tmp_path / "saved.json", beside=tmp_path)
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", [".mrcr-write-check", "summary.md.part", "summary.md"])
def test_nothing_is_written_through_a_link(tmp_path: Path, name: str) -> None:
    precious, folder = tmp_path / "precious", tmp_path / "reports"
    precious.write_text("precious")
    folder.mkdir()
    (folder / name).symlink_to(precious)
    prepare_folder(folder)
    write(folder / "summary.md", b"new")

    assert precious.read_text() == "precious"
    assert names(folder) == ["summary.md"]
    assert (folder / "summary.md").read_bytes() == b"new"
    assert not (folder / "summary.md").is_symlink()


def test_a_further_file_takes_the_place_of_files_only(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OutputError, match=r"pipe: is no ordinary file"):
        prepare_file(pipe, beside=tmp_path)

    assert pipe.is_fifo()
