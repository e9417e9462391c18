"""The files through which an action hands over outputs and a job summary."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from mrcr_action.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Mapping

SUMMARY_LIMIT = 900_000
"""Bytes of a job summary; beyond 1,048,576 the runner drops the whole of it, and other tools may
have written to the same file."""


def write_outputs(environ: Mapping[str, str], outputs: Mapping[str, str]) -> None:
    """Hand over outputs; without a runner there is nobody to take them.

    Every value stands between lines of a random word, so that none can end itself and begin
    another output.

    Raises:
        OutputError: the file cannot be written.
    """
    _append(environ, "GITHUB_OUTPUT", "".join(_entry(*of) for of in outputs.items()))


def write_summary(environ: Mapping[str, str], text: str) -> None:
    """Hand over the job summary, Markdown of at most `SUMMARY_LIMIT` bytes.

    Raises:
        OutputError: the file cannot be written.
    """
    _append(environ, "GITHUB_STEP_SUMMARY", text)


def _entry(name: str, value: str) -> str:
    delimiter = f"mrcr_{secrets.token_hex(16)}"
    assert delimiter not in value
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"


def _append(environ: Mapping[str, str], variable: str, text: str) -> None:
    path = environ.get(variable)
    if not path:
        return
    try:
        with Path(path).open("ab") as file:
            file.write(text.encode("utf-8", "replace"))
    except OSError as error:
        raise OutputError(f"{variable}: {path}: cannot be written: {error.strerror}") from error
