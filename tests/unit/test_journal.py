import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mrcr_action.errors import OutputError
from mrcr_action.grade import Grade
from mrcr_action.journal import Journal, read_journal
from mrcr_action.result import Record, encode_line

MakeRecord = Callable[..., Record]
FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")


def test_a_line_is_on_disk_before_append_returns(tmp_path: Path, make_record: MakeRecord) -> None:
    path = tmp_path / "samples.jsonl"
    with Journal(path) as journal:
        for i in range(3):
            journal.append(make_record(i))
            assert [r.ask for r in read_journal(path)] == list(range(i + 1))
            assert path.read_bytes().endswith(b"\n")


def test_records_are_read_back_as_they_were_appended(
    tmp_path: Path, make_record: MakeRecord, make_grade: Callable[..., Grade]
) -> None:
    records = [
        make_record(0, nonce="abc", answer="abc\nline\u2028\x85\r", response="abc 😀é\0"),
        make_record(1, None, outcome="rejected", reason="HTTP 400: too long"),
        make_record(2, grade=make_grade(0.1 + 0.2), attempts=3, reasoning_chars=7),
        make_record(3, prompt_tokens=None, seconds_to_first_token=None),
    ]
    with Journal(tmp_path / "j") as journal:
        for record in records:
            journal.append(record)
    assert read_journal(tmp_path / "j") == records
    assert len((tmp_path / "j").read_bytes().split(b"\n")) == 5


def test_half_a_surrogate_pair_does_not_stop_the_journal(
    tmp_path: Path, make_record: MakeRecord
) -> None:
    with Journal(tmp_path / "j") as journal:
        journal.append(make_record(0, response="a\ud83d"))
        journal.append(make_record(1))
    assert read_journal(tmp_path / "j") == [make_record(0, response="a?"), make_record(1)]


def test_what_is_at_its_default_is_not_written(make_record: MakeRecord) -> None:
    fields = json.loads(encode_line(make_record(0)))
    assert "reason" not in fields
    assert "response" not in fields
    assert fields["outcome"] == "scored"


def test_a_new_run_begins_a_new_journal(tmp_path: Path, make_record: MakeRecord) -> None:
    for i in range(2):
        with Journal(tmp_path / "j") as journal:
            journal.append(make_record(i))
    assert read_journal(tmp_path / "j") == [make_record(1)]


def test_a_journal_in_a_folder_that_is_not_there_is_an_output_error(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "j"
    with pytest.raises(OutputError) as caught:
        Journal(path)
    assert str(caught.value) == f"{path}: cannot be written: No such file or directory"


def test_appending_to_a_closed_journal_is_an_output_error(
    tmp_path: Path, make_record: MakeRecord
) -> None:
    with Journal(tmp_path / "j") as journal:
        pass
    with pytest.raises(OutputError, match="cannot be written"):
        journal.append(make_record())


@needs_full
def test_a_full_disk_is_an_output_error_that_the_end_does_not_replace(
    make_record: MakeRecord,
) -> None:
    with (
        pytest.raises(OutputError) as caught,
        Journal(FULL) as journal,
    ):
        journal.append(make_record())
    assert str(caught.value) == "/dev/full: cannot be written: No space left on device"


def test_a_journal_is_not_written_through_a_link(tmp_path: Path, make_record: MakeRecord) -> None:
    precious, path = tmp_path / "precious", tmp_path / "samples.jsonl"
    precious.write_text("precious")
    path.symlink_to(precious)
    with Journal(path) as journal:
        journal.append(make_record(0))

    assert precious.read_text() == "precious"
    assert len(read_journal(path)) == 1
