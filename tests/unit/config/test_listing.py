from pathlib import Path

import pytest

from mrcr_action.config.listing import expand, read_list, unique_names
from mrcr_action.errors import UsageError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    for name in ("a.yaml", "b.yml", "sub/c.yaml"):
        (tmp_path / name).write_text("model_name: m\n")
    return tmp_path


def write_list(folder: Path, text: str, name: str = "models.txt") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def test_comments_and_blank_lines_are_skipped(folder: Path) -> None:
    path = write_list(folder, "# models\n\n  a.yaml  \n   # another\n\t\nb.yml\n")
    assert read_list(path) == [folder / "a.yaml", folder / "b.yml"]


def test_windows_line_ends_and_a_byte_order_mark_are_no_part_of_a_name(folder: Path) -> None:
    assert read_list(write_list(folder, "\ufeffa.yaml\r\nb.yml\r\n")) == [
        folder / "a.yaml",
        folder / "b.yml",
    ]


def test_entries_are_relative_to_the_list_and_not_to_the_working_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_list(folder, "c.yaml\n../a.yaml\n", "sub/models.txt")
    monkeypatch.chdir("/")
    assert read_list(path) == [folder / "sub/c.yaml", folder / "sub/../a.yaml"]


def test_an_absolute_entry_stays_absolute(folder: Path) -> None:
    path = write_list(folder, f"{folder / 'a.yaml'}\n", "sub/models.txt")
    assert read_list(path) == [folder / "a.yaml"]


def test_a_missing_entry_is_named_with_its_line_and_never_dropped(folder: Path) -> None:
    path = write_list(folder, "a.yaml\n# more\nmissing.yaml\n")
    with pytest.raises(UsageError) as caught:
        read_list(path)
    assert str(caught.value) == f"{path}:3: missing.yaml: no such file"
    assert str(folder) in caught.value.hint


@pytest.mark.parametrize("text", ["", "\n\n", "# a.yaml\n"])
def test_a_list_that_names_nothing_is_an_error(folder: Path, text: str) -> None:
    path = write_list(folder, text)
    with pytest.raises(UsageError, match="names no configuration"):
        read_list(path)


def test_a_list_in_another_encoding_is_an_error(folder: Path) -> None:
    path = folder / "models.txt"
    path.write_bytes(b"\xff\xfea\0")
    with pytest.raises(UsageError) as caught:
        read_list(path)
    assert str(caught.value) == f"{path}: not text in UTF-8"


def test_a_folder_is_no_list(folder: Path) -> None:
    with pytest.raises(UsageError) as caught:
        expand([str(folder / "sub")])
    assert str(caught.value) == f"{folder / 'sub'}: Is a directory"


def test_files_and_lists_are_taken_in_the_order_given(folder: Path) -> None:
    path = write_list(folder, "b.yml\na.yaml\n")
    assert expand([str(folder / "sub/c.yaml"), str(path), str(folder / "b.yml")]) == [
        folder / "sub/c.yaml",
        folder / "b.yml",
        folder / "a.yaml",
        folder / "b.yml",
    ]


def test_a_configuration_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        expand([str(tmp_path / "missing.yaml")])
    assert str(caught.value) == f"{tmp_path / 'missing.yaml'}: no such file"
    assert caught.value.exit_code == 2


def test_a_name_that_occurred_before_gets_a_number() -> None:
    assert unique_names(["a", "b", "a", "a-2", "a"]) == ["a", "b", "a-2", "a-2-2", "a-3"]
