"""The files through which a step talks to the runner: outputs, state, environment, summary.

After actions/runner 2.336: FileCommandManager.cs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PREFIXES = {
    "env": "set_env_",
    "output": "set_output_",
    "path": "add_path_",
    "state": "save_state_",
    "step_summary": "step_summary_",
}
"""Each file's variable (``GITHUB_`` + this, in upper case) and how its name begins."""

SUMMARY_LIMIT = 1024 * 1024
"""Bytes beyond which the whole of a summary is dropped."""


class FileCommandError(Exception):
    """A file that the runner cannot process; the step fails for it."""


def parse_pairs(text: str) -> dict[str, str]:
    """Names and values: ``name=value``, or ``name<<WORD``, lines, and WORD alone on a line.

    Raises:
        FileCommandError: with the runner's own message.
    """
    pairs = {}
    # The end of the text ends its last line; unlike elsewhere, CR is part of a line.
    lines = iter(text.removesuffix("\n").split("\n"))
    for line in lines:
        if not line:
            continue
        equals, word_at = line.find("="), line.find("<<")
        if equals >= 0 and (word_at < 0 or equals < word_at):
            name, _, value = line.partition("=")
            if not name:
                raise FileCommandError(f"Invalid format '{line}'. Name must not be empty")
        elif word_at >= 0:
            name, _, word = line.partition("<<")
            if not name or not word:
                raise FileCommandError(
                    f"Invalid format '{line}'. Name must not be empty and delimiter must not be"
                    " empty"
                )
            value = "\n".join(_until(lines, word))
        else:
            raise FileCommandError(f"Invalid format '{line}'")
        pairs[name] = value
    return pairs


def _until(lines: Iterator[str], word: str) -> list[str]:
    found: list[str] = []
    for line in lines:
        if line == word:
            return found
        found.append(line)
    raise FileCommandError(f"Invalid value. Matching delimiter not found '{word}'")


def read_pairs(path: Path) -> dict[str, str]:
    """The pairs in a file, which may be gone.

    Raises:
        FileCommandError: it is malformed.
    """
    try:
        # .NET replaces what is no UTF-8, and skips a mark of the byte order.
        return parse_pairs(path.read_bytes().decode("utf-8-sig", "replace"))
    except FileNotFoundError:
        return {}


def read_summary(path: Path) -> str:
    """The summary as it is uploaded: nothing where the file is gone or empty.

    Raises:
        FileCommandError: it is too large, so that nothing of it is shown.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return ""
    if len(content) > SUMMARY_LIMIT:
        raise FileCommandError(
            f"$GITHUB_STEP_SUMMARY upload aborted, supports content up to a size of"
            f" {SUMMARY_LIMIT // 1024}k, got {len(content) // 1024}k."
        )
    return content.decode("utf-8-sig", "replace")
