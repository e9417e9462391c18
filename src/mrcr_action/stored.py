"""A result that was written before, read back; errors name the file and what to give instead."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mrcr_action.errors import DataError
from mrcr_action.result import SCHEMA_VERSION, decode_result

if TYPE_CHECKING:
    from mrcr_action.result import Result

RESULT_FILE = "result.json"

SUBFOLDERS_NAMED = 5


class _Version(msgspec.Struct):
    """The one field that every version of a result has."""

    schema_version: int


def file_of(name: str, *, wanted: str = "two") -> Path:
    """The file of a result that is named by itself or by its folder.

    Args:
        name: the file or the folder.
        wanted: of several folders with one, how many the hint asks for.

    Raises:
        DataError: it is a folder without one.
    """
    path = Path(name)
    # Unlike the method of a path, it takes a name that is too long for one.
    if not os.path.isdir(path):  # noqa: PTH112
        return path
    if not (path / RESULT_FILE).exists():
        several = sorted(found.parent.name for found in path.glob(f"*/{RESULT_FILE}"))
        named = ", ".join(several[:SUBFOLDERS_NAMED])
        more = ", …" if len(several) > SUBFOLDERS_NAMED else ""
        raise DataError(
            f"{path}: no {RESULT_FILE} in this folder",
            hint=f"Its folders have one: {named}{more}. Name {wanted}."
            if several
            else "Name the output folder of a run, or the file itself.",
        )
    return path / RESULT_FILE


def files_in(name: str) -> list[tuple[str, Path]]:
    """Every result that a name stands for, with the subfolder that it lies in; "" for none.

    A run of several configurations has a subfolder for each; they come in the order in which the
    configurations were run, as far as that can be told.

    Raises:
        DataError: it is a folder without one.
    """
    path = Path(name)
    several: list[Path] = []
    # As in `file_of`: a name may be too long for the methods of a path.
    if os.path.isdir(path) and not (path / RESULT_FILE).exists():  # noqa: PTH112
        several = sorted(path.glob(f"*/{RESULT_FILE}"))
    if not several:
        return [("", file_of(name, wanted="one"))]
    dated = [(_began(file), _modified(file), file.parent.name, file) for file in several]
    return [(folder, file) for _, _, folder, file in sorted(dated)]


class _Began(msgspec.Struct):
    started: str


def _began(path: Path) -> str:
    """When a run began; of what is no result, which is refused later, nothing."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Began).started
    except (OSError, ValueError, RecursionError):
        return ""


def _modified(path: Path) -> int:
    """Tells runs of one second apart, where nobody copied the files."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def read_result(path: Path) -> Result:
    """The result in a file.

    Raises:
        DataError: it cannot be read, is none, or is of another schema version.
    """
    text = text_of(path)
    version = version_of(path, text)
    if version != SCHEMA_VERSION:
        newer = "a newer" if version > SCHEMA_VERSION else "an older"
        raise DataError(
            f"{path}: schema_version: {version}, and this mrcr reads {SCHEMA_VERSION}",
            hint=f"It was written by {newer} mrcr; take one that reads it.",
        )
    return decoded(path, text)


def text_of(path: Path) -> bytes:
    """The content of a file.

    Raises:
        DataError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:  # the latter for a name that can be none
        raise DataError(
            f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}",
            hint="Name the output folder of a run, or its result.json.",
        ) from error


def version_of(path: Path, text: bytes) -> int:
    """The schema version of a result, whether or not this program can read it.

    Raises:
        DataError: it is no result.
    """
    try:
        return msgspec.json.decode(text, type=_Version).schema_version
    except (ValueError, RecursionError) as error:
        raise _not_a_result(path, error) from error


def decoded(path: Path, text: bytes) -> Result:
    """The result in the content of a file.

    Raises:
        DataError: it is none, or of another schema version.
    """
    try:
        return decode_result(text)
    except (ValueError, RecursionError) as error:
        raise _not_a_result(path, error) from error


def _not_a_result(path: Path, error: Exception) -> DataError:
    return DataError(
        f"{path}: not a result that this mrcr can read: {error}",
        hint=f"It reads what `mrcr run` writes as {RESULT_FILE}, of schema version"
        f" {SCHEMA_VERSION}.",
    )
