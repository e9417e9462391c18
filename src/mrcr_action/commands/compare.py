"""``mrcr compare``: two results of one plan, sample by sample."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mrcr_action.comparison.comparable import refuse
from mrcr_action.comparison.verdict import EXIT_CODES, compare
from mrcr_action.errors import DataError
from mrcr_action.report.comparison import print_comparison
from mrcr_action.result import SCHEMA_VERSION, decode_result, encode_document

if TYPE_CHECKING:
    from mrcr_action.result import Result

RESULT_FILE = "result.json"

SUBFOLDERS_NAMED = 5


class _Version(msgspec.Struct):
    """The one field that every version of a result has."""

    schema_version: int


def compare_command(a: str, b: str, *, max_regression: float | None, as_json: bool) -> int:
    """Print what changed from one result to another.

    Args:
        a: a ``result.json``, or the folder with it; before.
        b: the same; after.
        max_regression: by how much a bucket's mean may fall; None leaves it to the test of chance.
        as_json: print the whole comparison as JSON.

    Raises:
        UsageError: the two cannot be compared.
        CannotJudge: one cannot be read, or no sample was graded in both.
    """
    paths = _file_of(a), _file_of(b)
    texts = _text_of(paths[0]), _text_of(paths[1])
    versions = _version_of(paths[0], texts[0]), _version_of(paths[1], texts[1])
    if versions[0] != versions[1]:
        refuse([("schema version", f"{versions[0]} in A, {versions[1]} in B")])
    comparison = compare(
        _result_of(paths[0], texts[0]),
        _result_of(paths[1], texts[1]),
        paths=(str(paths[0]), str(paths[1])),
        max_regression=max_regression,
    )
    if paths[0].samefile(paths[1]):
        notes = ("A and B are the same file.", *comparison.notes)
        comparison = msgspec.structs.replace(comparison, notes=notes)
    if as_json:
        print(encode_document(comparison).decode(), end="")
    else:
        print_comparison(comparison)
    return EXIT_CODES[comparison.conclusion]


def _file_of(name: str) -> Path:
    path = Path(name)
    if not path.is_dir():
        return path
    if not (path / RESULT_FILE).exists():
        several = sorted(found.parent.name for found in path.glob(f"*/{RESULT_FILE}"))
        more = ", …" if len(several) > SUBFOLDERS_NAMED else ""
        raise DataError(
            f"{path}: no {RESULT_FILE} in this folder",
            hint=f"Its folders have one: {', '.join(several[:SUBFOLDERS_NAMED])}{more}. Name two."
            if several
            else "Name the output folder of a run, or the file itself.",
        )
    return path / RESULT_FILE


def _text_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read: {error.strerror}",
            hint="Name the output folder of a run, or its result.json.",
        ) from error


def _version_of(path: Path, text: bytes) -> int:
    try:
        return msgspec.json.decode(text, type=_Version).schema_version
    except (ValueError, RecursionError) as error:
        raise _not_a_result(path, error) from error


def _result_of(path: Path, text: bytes) -> Result:
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
