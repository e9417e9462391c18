from pathlib import Path

import pytest

from mrcr_action.errors import OutputError
from mrcr_action.github.files import write_outputs, write_summary


def read_outputs(path: Path) -> dict[str, str]:
    """As the runner reads them: ``name<<word``, lines, the word."""
    found = {}
    rest = path.read_text().split("\n")
    while rest and rest[0]:
        name, _, word = rest.pop(0).partition("<<")
        end = rest.index(word)
        found[name] = "\n".join(rest[:end])
        rest = rest[end + 1 :]
    return found


def test_a_value_cannot_end_itself_and_begin_another_output(tmp_path: Path) -> None:
    path = tmp_path / "out"
    hostile = "a\nEOF\npassed=true\npassed<<EOF\ntrue\nEOF\n"
    write_outputs({"GITHUB_OUTPUT": str(path)}, {"reason": hostile, "passed": "false"})

    assert read_outputs(path) == {"reason": hostile, "passed": "false"}


def test_the_word_is_another_one_for_every_value(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write_outputs({"GITHUB_OUTPUT": str(path)}, {"a": "1", "b": "1"})

    words = [line.partition("<<")[2] for line in path.read_text().splitlines() if "<<" in line]
    assert len(set(words)) == 2


def test_what_other_steps_wrote_stays(tmp_path: Path) -> None:
    path = tmp_path / "summary"
    path.write_text("theirs\n")
    write_summary({"GITHUB_STEP_SUMMARY": str(path)}, "ours \ud800\n")

    assert path.read_text() == "theirs\nours ?\n"


def test_without_a_runner_there_is_nobody_to_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_outputs({}, {"a": "1"})
    write_summary({"GITHUB_STEP_SUMMARY": ""}, "text")

    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"GITHUB_OUTPUT: .*cannot be written: Is a directory"):
        write_outputs({"GITHUB_OUTPUT": str(tmp_path)}, {"a": "1"})
