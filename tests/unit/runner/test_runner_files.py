"""The stand-in for GitHub's runner reads the files of a step as the runner does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.container.runner_files import (
    SUMMARY_LIMIT,
    FileCommandError,
    parse_pairs,
    read_pairs,
    read_summary,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", {}),
        ("a=b\n\nc=d=e", {"a": "b", "c": "d=e"}),
        ("a=b<<c\n", {"a": "b<<c"}),
        ("a<<E\nb\n\nc=d\nE\ne=f\n", {"a": "b\n\nc=d", "e": "f"}),
        ("a<<E\nE\n", {"a": ""}),
        ("a<<E\n E\nE", {"a": " E"}),
        ("a<<E\nb\r\nE\n", {"a": "b\r"}),
        ("a=1\na=2\n", {"a": "2"}),
    ],
)
def test_pairs_are_read(text: str, pairs: dict[str, str]) -> None:
    assert parse_pairs(text) == pairs


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a<<E\nb\n", "Matching delimiter not found 'E'"),
        ("a<<E\nE\r\n", "Matching delimiter not found 'E'"),
        ("nothing\n", "Invalid format 'nothing'"),
        ("=b\n", "must not be empty"),
        ("a<<\n", "must not be empty"),
    ],
)
def test_what_is_malformed_is_refused(text: str, said: str) -> None:
    with pytest.raises(FileCommandError, match=said):
        parse_pairs(text)


def test_files_that_are_gone_hold_nothing(tmp_path: Path) -> None:
    assert read_pairs(tmp_path / "gone") == {}
    assert read_summary(tmp_path / "gone") == ""


def test_a_summary_is_shown_up_to_its_limit_and_not_at_all_beyond(tmp_path: Path) -> None:
    path = tmp_path / "summary"
    path.write_bytes(b"\xef\xbb\xbf" + b"x" * (SUMMARY_LIMIT - 3))
    assert len(read_summary(path)) == SUMMARY_LIMIT - 3

    path.write_bytes(b"x" * (SUMMARY_LIMIT + 1))
    with pytest.raises(FileCommandError, match="up to a size of 1024k"):
        read_summary(path)
